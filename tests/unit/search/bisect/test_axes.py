"""The releases that a bisect can measure, and what it asks the package index for."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.errors import OutageError, ProvisionError, UsageError
from runner.core.model import Device
from runner.matrix import Environment, Matrix, parse
from runner.matrix.model_file import read_network
from runner.releases import index as package_index
from runner.releases.candidates import ReleaseCandidate, without_pin
from runner.search.bisect.axes import Axes
from runner.search.bisect.result import entry
from runner.search.bisect.state import CandidateEntry, Question
from tests.support.model_files import write_model

MATRIX = b"""\
version: 1
environments:
  torch-1.0: {framework: torch, release: "1.0.0", python: "3.6", requirements: [torch==1.0.0, numpy]}
  torch-1.2: {framework: torch, release: "1.2.0", image: "example/torch:1.2"}
  torch-1.12:
    framework: torch
    release: "1.12.1"
    python: "3.10"
    variants:
      cpu: {requirements: [torch==1.12.1, numpy<2]}
      cuda-11.3: {requirements: [torch==1.12.1], cuda: "11.3"}
      cuda-11.6: {requirements: [torch==1.12.1], cuda: "11.6"}
      cuda-11.7: {requirements: [torch==1.12.1], cuda: "11.7"}
  jax: {framework: jax, release: "0.*", python: "3.11", lock: jax.txt, requirements: [jax==0.4.36, jaxlib==0.4.36]}
workloads:
  rnn-step: {cases: [lstm-b32-h128]}
"""
JAX_LOCK = "\n".join(
    f"{name}=={version} --hash=sha256:{'ab' * 32}"
    for name, version in (("jax", "0.4.36"), ("nvidia-cudnn-cu12", "9.8.0.87"))
)
LISTED = {
    ("torch", "3.6"): ("1.4.0", "1.3.1", "1.2.0", "1.1.0", "1.0.0"),
    ("torch", "3.10"): ("2.0.0", "1.13.0", "1.12.1", "1.11.0"),
    ("jax", "3.11"): ("0.4.36", "0.4.35", "0.4.34"),
    ("nvidia-cudnn-cu12", "3.11"): ("9.10.0.56", "9.9.0.52", "9.8.0.87", "9.1.0.70"),
}


def versions(package: str, python: str, nightly: str) -> tuple[tuple[str, ...], str]:
    """Stand in for the package index."""
    if nightly:
        return ("2.10.0.dev20251003", "2.10.0.dev20251002", "2.10.0.dev20251001", "2.9.0"), ""
    listed = LISTED.get((package, python), ())
    return listed, "" if listed else "no such package"


@pytest.fixture
def matrix() -> Matrix:
    """The matrix of this file."""
    return parse(MATRIX, "matrix.yaml")


def axes(matrix: Matrix, folder: Path, device: Device = "cpu") -> Axes:
    """Return axes in a folder with a lock."""
    (folder / "jax.txt").write_text(JAX_LOCK)
    return Axes(matrix=matrix, folder=folder, device=device, versions=versions, notes=[])


def question(good: str, bad: str, axis: str = "release", environment: str = "") -> Question:
    """Return a question about a cell."""
    return Question(
        cell="nn-lstm/rnn-step/lstm-b32-h128/forward/fp32",
        good=good,
        bad=bad,
        axis=axis,
        every=False,
        environment=environment,
        device="cpu",
        backend="venv",
    )


def names(candidates: tuple[ReleaseCandidate, ...]) -> list[str]:
    return [candidate.name for candidate in candidates]


def test_environments_and_releases_of_the_index_come_in_the_order_of_release(matrix: Matrix, tmp_path: Path) -> None:
    chosen = axes(matrix, tmp_path).candidates(question("torch-1.0", "torch-1.12"))
    releases = ["1.0.0", "1.1.0", "1.2.0", "1.3.1", "1.4.0", "1.11.0", "1.12.1"]
    assert [candidate.release for candidate in chosen] == releases
    assert names(chosen)[2:4] == ["torch-1.2", "torch-1.3.1"]  # the matrix has 1.2.0: it is not made again


def test_a_release_is_made_from_the_nearest_environment_whose_python_has_a_wheel(
    matrix: Matrix, tmp_path: Path
) -> None:
    by_name = {each.name: each for each in axes(matrix, tmp_path).candidates(question("torch-1.0", "2.0.0"))}
    old, new = by_name["torch-1.4.0"], by_name["torch-1.11.0"]
    assert (old.template, old.environment.python) == ("torch-1.0", "3.6")
    assert (new.template, new.environment.python) == ("torch-1.12", "3.10")
    variant = new.environment.variant("cpu")
    assert variant is not None
    assert variant.requirements == ("torch==1.11.0", "numpy<2")
    assert variant.lock is None


def test_ends_may_be_versions_and_the_search_may_go_back(matrix: Matrix, tmp_path: Path) -> None:
    chosen = axes(matrix, tmp_path).candidates(question("torch-1.12", "1.3.1"))
    assert [candidate.release for candidate in chosen] == ["1.12.1", "1.11.0", "1.4.0", "1.3.1"]


def test_ends_may_be_named_as_releases_are_on_the_command_line(matrix: Matrix, tmp_path: Path) -> None:
    chosen = axes(matrix, tmp_path).candidates(question("torch==1.3.1", "pytorch==1.11.0"))
    assert [candidate.release for candidate in chosen] == ["1.3.1", "1.4.0", "1.11.0"]


def test_the_library_that_belongs_to_a_release_is_not_newer(matrix: Matrix, tmp_path: Path) -> None:
    (_, candidate, _) = axes(matrix, tmp_path).candidates(question("0.4.34", "jax"))
    assert candidate.environment.requirements == ("jax==0.4.35", "jaxlib<=0.4.35")


def test_a_floating_release_is_that_of_its_lock(matrix: Matrix, tmp_path: Path) -> None:
    assert axes(matrix, tmp_path).candidates(question("0.4.34", "jax"))[-1].release == "0.4.36"


@pytest.mark.parametrize("end", ["torch-9", "1.5.0", "text"])
def test_an_end_that_does_not_exist_is_refused(end: str, matrix: Matrix, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no environment and no release"):
        axes(matrix, tmp_path).candidates(question("torch-1.0", end))


def test_equal_ends_are_refused(matrix: Matrix, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="same version"):
        axes(matrix, tmp_path).candidates(question("torch-1.0", "1.0.0"))


def test_without_an_index_the_matrix_alone_is_searched(matrix: Matrix, tmp_path: Path) -> None:
    axes_of_file = axes(matrix, tmp_path)
    axes_of_file = Axes(
        matrix=matrix, folder=tmp_path, device="cpu", versions=lambda *_: ((), "no answer"), notes=axes_of_file.notes
    )
    assert names(axes_of_file.candidates(question("torch-1.0", "torch-1.12"))) == [
        "torch-1.0",
        "torch-1.2",
        "torch-1.12",
    ]
    assert "no answer" in axes_of_file.notes[0]


def test_nightly_builds_are_those_of_the_nightly_index(matrix: Matrix, tmp_path: Path) -> None:
    chosen = axes(matrix, tmp_path).candidates(
        question("2.10.0.dev20251001", "2.10.0.dev20251003", "nightly", "torch-1.12")
    )
    assert [candidate.release for candidate in chosen] == [f"2.10.0.dev2025100{day}" for day in (1, 2, 3)]
    variant = chosen[1].environment.variant("cpu")
    assert variant is not None
    assert variant.index is not None
    assert variant.index.endswith("/nightly/cpu")


@pytest.mark.parametrize("axis", ["cuda", "cudnn"])
def test_what_needs_a_gpu_says_so_on_a_cpu(axis: str, matrix: Matrix, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs an NVIDIA GPU"):
        axes(matrix, tmp_path).candidates(question("11.3", "11.7", axis, "torch-1.12"))


def test_cuda_builds_are_the_variants_between_two_versions(matrix: Matrix, tmp_path: Path) -> None:
    axes_of_file = axes(matrix, tmp_path, "cuda")
    requested = question("11.3", "11.7", "cuda", "torch-1.12")
    chosen = axes_of_file.candidates(requested)
    assert names(chosen) == ["torch-1.12-cuda-11.3", "torch-1.12-cuda-11.6", "torch-1.12-cuda-11.7"]
    variant = chosen[1].environment.variant("cuda")
    assert variant is not None
    assert variant.cuda == "11.6"
    with pytest.raises(UsageError, match=r"no build for CUDA 12\.0"):
        axes_of_file.candidates(question("11.3", "12.0", "cuda", "torch-1.12"))


@pytest.mark.parametrize(
    ("axis", "good", "bad", "environment"),
    [
        ("release", "torch-1.0", "torch-1.12", ""),
        ("nightly", "2.10.0.dev20251001", "2.10.0.dev20251003", "torch-1.12"),
        ("release", "0.4.34", "jax", ""),
    ],
)
def test_stored_candidates_are_the_same_without_the_index(
    axis: str, good: str, bad: str, environment: str, matrix: Matrix, tmp_path: Path
) -> None:
    requested, axes_of_file = question(good, bad, axis, environment), axes(matrix, tmp_path)
    chosen = axes_of_file.candidates(requested)
    assert axes_of_file.stored(requested, [entry(each) for each in chosen]) == chosen


def test_stored_candidates_that_the_matrix_has_no_more_are_refused(matrix: Matrix, tmp_path: Path) -> None:
    entries: list[CandidateEntry] = [{"name": "torch-gone", "release": "1.0", "source": "matrix", "template": ""}]
    for axis in ("release", "cuda"):
        with pytest.raises(UsageError, match="torch-gone"):
            axes(matrix, tmp_path, "cuda").stored(question("torch-1.0", "torch-1.12", axis, "torch-1.12"), entries)


def test_an_index_that_does_not_answer_is_no_index_without_releases(matrix: Matrix, tmp_path: Path) -> None:
    def away(*_: str) -> tuple[tuple[str, ...], str]:
        raise ProvisionError("index", "no answer", passing=True)

    for requested in (question("torch-1.0", "torch-1.12"), question("a", "b", "cudnn", "jax")):
        device: Device = "cuda" if requested.axis == "cudnn" else "cpu"
        with pytest.raises(OutageError, match="no answer"):
            replace(axes(matrix, tmp_path, device), versions=away).candidates(requested)


def test_pip_lists_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], *_: object) -> "subprocess.CompletedProcess[str]":
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "torch (1.4.0)\nAvailable versions: 1.4.0, 1.0.1.post2, x\n", "")

    monkeypatch.setattr(package_index, "run_client", run)
    assert package_index.versions("torch", "3.6") == (("1.4.0", "1.0.1.post2"), "")
    assert commands[0][commands[0].index("--python-version") + 1] == "3.6.99"
    assert "--pre" not in commands[0]


def test_a_problem_of_pip_is_returned_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess[str](
        [], 1, "", "ERROR: no answer of https://ann:secret@index.example/simple\n"
    )
    monkeypatch.setattr(package_index, "run_client", lambda *_: failed)
    assert package_index.versions("torch", "3.6") == ((), "no answer of https://****@index.example/simple")


def test_an_answer_that_crashes_pip_says_nothing_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("ERROR: Exception:\nTraceback\nAttributeError: no get\n", "MemoryError\n")
    for text, reason in zip(texts, ("pip failed: AttributeError", "answers with too much"), strict=True):
        failed = subprocess.CompletedProcess[str]([], 2, "", text)
        monkeypatch.setattr(package_index, "run_client", lambda *_, failed=failed: failed)
        with pytest.raises(ProvisionError, match=reason) as caught:
            package_index.versions("numpy", "3.11")
        assert caught.value.passing


def test_a_pin_is_taken_off_and_a_limit_is_not() -> None:
    assert without_pin("optax==0.2.8") == "optax"
    assert without_pin("numpy<2") == "numpy<2"


WITH_PACKAGES = b"""\
version: 1
environments:
  jax-old: {framework: jax, release: "0.4.34", python: "3.11", requirements: [jax==0.4.34, optax==0.2.4, "flax>=0.10"]}
  jax: {framework: jax, release: "0.4.36", python: "3.11", lock: jax.txt, requirements: [jax==0.4.36, optax==0.2.8]}
  jax-mid: {framework: jax, release: "0.4.35", python: "3.11", requirements: [jax==0.4.35, optax==0.2.8]}
  jax-flax: {extends: jax, add: [flax, tqdm]}
workloads: {rnn-step: {cases: [lstm-b32-h128]}}
"""


def test_a_candidate_has_the_packages_of_the_ends(tmp_path: Path) -> None:
    with_packages = axes(parse(WITH_PACKAGES, "matrix.yaml"), tmp_path)
    (_, candidate, _) = chosen = with_packages.candidates(question("jax-old", "jax-flax"))
    assert (candidate.name, candidate.template) == ("jax-0.4.35", "jax-old")  # jax-mid lacks Flax
    variant = candidate.environment.variant("cpu")
    assert variant is not None
    assert variant.requirements == ("jax==0.4.35", "jaxlib<=0.4.35", "optax==0.2.4", "flax>=0.10", "tqdm")
    assert candidate.environment.extends is None
    assert with_packages.stored(question("jax-old", "jax-flax"), [entry(each) for each in chosen]) == chosen


def test_without_packages_an_environment_of_the_matrix_is_a_candidate(tmp_path: Path) -> None:
    chosen = axes(parse(WITH_PACKAGES, "matrix.yaml"), tmp_path).candidates(question("0.4.34", "jax"))
    assert names(chosen) == ["jax-old", "jax-mid", "jax"]


def test_a_template_that_is_no_end_gets_the_packages_of_the_ends(matrix: Matrix, tmp_path: Path) -> None:
    variants = {"cpu": {"requirements": ["torch==1.12.1", "numpy<2", "timm==1.0"]}}
    written = {"framework": "torch", "release": "1.12.1", "python": "3.10", "extends": "torch-1.12", "add": ["timm"]}
    nets = Environment.model_validate({**written, "variants": variants})
    changed = matrix.with_environments({**matrix.environments, "torch-nets": nets}, {}, {})
    by_name = {each.name: each for each in axes(changed, tmp_path).candidates(question("1.3.1", "torch-nets"))}
    old = by_name["torch-1.4.0"].environment.variant("cpu")
    assert old is not None
    assert old.requirements == ("torch==1.4.0", "numpy", "timm")


def test_the_only_class_of_a_network_names_the_framework(tmp_path: Path) -> None:
    write_model(tmp_path, "class JaxModel:\n    def forward(self): ...\n", "net.py")
    network = read_network(tmp_path / "net.py")
    with_network = parse(WITH_PACKAGES, "matrix.yaml").with_networks({"rnn-step": network})
    assert names(axes(with_network, tmp_path).candidates(question("0.4.34", "0.4.36"))) == ["jax-old", "jax-mid", "jax"]
