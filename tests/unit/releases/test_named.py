"""Releases that are named on the command line: how they are read, and which environments they become."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from runner.core.errors import NothingSelectedError, UsageError
from runner.core.model import Device
from runner.matrix import Matrix, parse
from runner.matrix.fields import is_environment_id
from runner.releases.candidates import ReleaseCandidate
from runner.releases.index import Lister
from runner.releases.named import NamedRelease, parse_named, refuse_taken, split_selector, with_id
from runner.releases.named_environments import ReleaseFinder

MATRIX = """\
version: 1
environments:
  torch-1.0: {framework: torch, release: "1.0.0", python: "3.6", lock: a.txt, requirements: [torch==1.0.0, numpy]}
  torch-2.x:
    framework: torch
    release: "2.*"
    python: "3.11"
    variants:
      cpu: {base: "python:3.11", requirements: [torch==2.13.0+cpu, numpy, optax==0.2.8], index: "https://torch.test/cpu"}
      cuda: {requirements: [torch==2.13.0], cuda: "13.0"}
  tf-2.x: {framework: tensorflow, release: "2.21.0", python: "3.11", requirements: [tensorflow-cpu==2.21.0]}
workloads: {rnn-step: {}}
"""
TORCH_NIGHTLY = "https://download.pytorch.org/whl/nightly/cpu"
WHEELS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("torch", "3.11"): ("2.14.1", "2.9.1", "2.9.0"),
    ("torch", "3.6"): ("1.10.2", "1.0.0"),
    ("tensorflow-cpu", "3.11"): ("2.21.0", "2.18.0"),
    ("numpy", "3.11"): ("2.3.0", "1.26.4"),
}
NIGHTLY: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("torch", TORCH_NIGHTLY): ("2.16.0.dev20261102+cpu", "2.16.0.dev20261101+cpu", "2.15.0"),
    ("torch", "https://download.pytorch.org/whl/test/cpu"): ("2.15.0rc1+cpu",),
    ("tf-nightly", "default"): ("2.22.0.dev20261101", "2.22.0.dev20261031"),
    ("tensorflow-cpu", "default"): ("2.22.0rc0", "2.21.0"),
    ("jax", "https://us-python.pkg.dev/ml-oss-artifacts-published/jax/simple/"): ("0.11.0.dev20261101",),
}


def listed(package: str, python: str, nightly: str) -> tuple[tuple[str, ...], str]:
    """Return what the index has; see ``releases.index.versions``."""
    names = NIGHTLY.get((package, nightly), ()) if nightly else WHEELS.get((package, python), ())
    return names, "" if names else f"no {package}"


def wheels(_package: str, version: str) -> tuple[str, ...]:
    """Return the Pythons of a release; see ``releases.release_files.pythons_of``."""
    return ("2.7", "3.7") if version == "1.5.0" else ()


@pytest.fixture
def matrix() -> Matrix:
    return parse(MATRIX.encode(), "matrix.yaml")


def find(
    matrix: Matrix, text: str, device: Device = "cpu", versions: Lister = listed, *, has_wheel: str = ""
) -> ReleaseCandidate:
    named = parse_named(text)
    assert named is not None
    return ReleaseFinder(
        matrix=matrix,
        folder=Path("/nowhere"),
        device=device,
        versions=versions,
        pythons=wheels,
        has_wheel=lambda _package, _version, python: python == has_wheel,
    ).find(named)


def unlisted(*_: str) -> tuple[tuple[str, ...], str]:
    """Fail where versions are listed."""
    raise AssertionError


def test_versions_are_listed_only_where_the_index_has_no_wheel(matrix: Matrix) -> None:
    assert find(matrix, "numpy==2.9.9", versions=unlisted, has_wheel="3.11").environment.release == "2.9.9"
    with pytest.raises(AssertionError):
        find(matrix, "numpy==2.9.9", versions=unlisted)


def test_a_release_for_newer_pythons_alone_has_the_oldest_of_them(matrix: Matrix) -> None:
    assert find(matrix, "numpy==2.9.9", has_wheel="3.13").environment.python == "3.13"
    with pytest.raises(NothingSelectedError, match=r"for Python 3\.11"):
        find(matrix, "numpy==2.9.9")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("torch==2.9.1", NamedRelease("torch", "2.9.1")),
        ("tf==2.18.0", NamedRelease("tensorflow", "2.18.0")),
        ("tensorflow-cpu==2.18.0", NamedRelease("tensorflow", "2.18.0")),
        ("Torch==2.9.1+cu126", NamedRelease("torch", "2.9.1+cu126")),
        ("jax==0.8.1@py3.12", NamedRelease("jax", "0.8.1", (), "3.12")),
        ("torch==2.9.1,numpy==1.26.4", NamedRelease("torch", "2.9.1", ("numpy==1.26.4",))),
        ("torch@nightly-20261101", NamedRelease("torch", "", day="20261101")),
        ("tf-nightly==2.22.0.dev20261101", NamedRelease("tensorflow", "2.22.0.dev20261101")),
        ("jax@nightly-20261101,optax==0.2.4@py3.12", NamedRelease("jax", "", ("optax==0.2.4",), "3.12", "20261101")),
    ],
)
def test_a_release_is_a_package_with_its_version(text: str, named: NamedRelease) -> None:
    assert parse_named(text) == named


@pytest.mark.parametrize(
    "text",
    [
        "torch",
        "torch==2.*",
        "torch>=2.9",
        "flax==0.8",
        "torch==",
        "torch==x",
        "torch==2.9.1,numpy",
        "torch==2.9.1@3.10",
        "torch==2.9.1@py3.100",
        "torch==1!2.9.1",
        "torch==2..9",
        "torch==0.1.12_2",
        "torch==2.9.1,numpy-==1.26.4",
        "torch==2.9.1,numpy==1..2",
        "torch==2.9.1,numpy==1.26.4,",
        "torch==" + "9" * 5000,
        "torch==2.9.1\n",
        "torch==\uff12.9.1",
        "torch==2.9.1;touch x",
        "torch==2.9.1,../x==1",
        "torch@nightly",
        "torch@nightly-2026110",
        "flax@nightly-20261101",
    ],
)
def test_other_words_are_selectors(text: str) -> None:
    assert parse_named(text) is None


@pytest.mark.parametrize("day", ["20269999", "00000000", "20260229"])
def test_a_day_that_is_none_is_refused(day: str) -> None:
    with pytest.raises(UsageError, match=f"{day} is not a date"):
        parse_named(f"torch@nightly-{day}")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torch==2.9.1", "torch-2.9.1"),
        ("tf==2.18.0", "tensorflow-2.18.0"),
        ("torch==2.9.1+cu126", "torch-2.9.1-cu126"),
        ("torch==2.9.1,numpy==1.26.4@py3.10", "torch-2.9.1-numpy-1.26.4-py3.10"),
        ("torch==2.9.1,a..B_c==1.0", "torch-2.9.1-a-b-c-1.0"),
        ("torch==2.1", "torch-2.1.0"),
        ("torch==2rc1", "torch-2.0.0rc1"),
        ("torch==2.10", "torch-2.10.0"),
        ("torch@nightly-20261101", "torch-nightly-20261101"),
        ("tf-nightly==2.22.0.dev20261101", "tensorflow-2.22.0.dev20261101"),
    ],
)
def test_an_id_is_short_and_says_what_was_named(text: str, name: str) -> None:
    named = parse_named(text)
    assert named is not None
    assert named.id == name


def test_an_id_that_would_be_too_long_has_digits_for_the_rest() -> None:
    words = [f"torch==2.9.1,{'x' * 40}==1,{'y' * 40}=={number}" for number in (1, 2)]
    ids = [named.id for named in map(parse_named, words) if named is not None]
    assert [len(each) for each in ids] == [64, 64]
    assert ids[0] != ids[1]
    assert all(map(is_environment_id, ids))
    assert ids[0].startswith("torch-2.9.1-xxxxxx")


@pytest.mark.parametrize(
    "text", ["torch==2.9.1,torch==2.8.0", "torch==2.9.1,a.b==1,A_b==2", "tf==2.18.0,tensorflow-cpu==2.18.0"]
)
def test_a_package_has_one_version(text: str) -> None:
    with pytest.raises(UsageError, match="twice"):
        parse_named(text)


def test_an_environment_of_the_matrix_is_not_taken_for_a_release(matrix: Matrix) -> None:
    """The matrix has its own names; ``torch-2.9.1`` may be anything."""
    others = matrix.environments["torch-1.0"]
    only_gpu = matrix.environments["torch-2.x"]
    cuda = only_gpu.model_copy(update={"release": "2.9.1", "variants": {"cuda": only_gpu.variants["cuda"]}})
    named = parse_named("torch==2.9.1")
    assert named is not None
    for environment, taken in ((others, True), (only_gpu, True), (cuda, False)):
        other = matrix.with_environments({**matrix.environments, "torch-2.9.1": environment}, {}, {})
        with pytest.raises(UsageError, match=r"torch-2\.9\.1 is an environment") if taken else nullcontext():
            refuse_taken(other, named, "cpu")
    refuse_taken(matrix, named, "cpu")


def test_a_release_is_made_from_the_nearest_environment(matrix: Matrix) -> None:
    made = find(matrix, "torch==2.9.1")
    assert (made.name, made.release, made.source, made.template) == ("torch-2.9.1", "2.9.1", "index", "torch-2.x")
    variant = made.environment.variant("cpu")
    assert variant is not None
    assert variant.requirements == ("torch==2.9.1", "numpy", "optax==0.2.8")
    assert (variant.base, variant.index, variant.lock) == ("python:3.11", "https://torch.test/cpu", None)
    assert find(matrix, "torch==1.10.2").template == "torch-1.0"


def test_a_release_of_the_matrix_is_taken_as_it_is_unless_it_floats(matrix: Matrix) -> None:
    assert find(matrix, "torch==1.0").name == "torch-1.0"
    assert find(matrix, "tensorflow==2.21.0").name == "tf-2.x"
    assert find(matrix, "torch==1.0.0,numpy==1.19.5").source == "index"


def test_a_package_that_is_named_replaces_that_of_the_template(matrix: Matrix) -> None:
    variant = find(matrix, "torch==2.9.1,optax==0.2.4").environment.variant("cpu")
    assert variant is not None
    assert variant.requirements == ("torch==2.9.1", "numpy", "optax==0.2.4")


def test_a_framework_without_an_environment_has_its_package_alone(matrix: Matrix) -> None:
    made = find(matrix, "numpy==1.26.4")
    assert (made.name, made.environment.python) == ("numpy-1.26.4", "3.11")
    assert made.environment.requirements == ("numpy==1.26.4",)


def test_another_python_has_its_own_base_images(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WHEELS, ("torch", "3.12"), ("2.9.1",))
    made = find(matrix, "torch==2.9.1@py3.12")
    variant = made.environment.variant("cpu")
    assert variant is not None
    assert (made.name, made.environment.python, variant.base) == ("torch-2.9.1-py3.12", "3.12", "python:3.12")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("torch==2.9.2", "no wheel of torch 2.9.2 for Python 3.11, 3.6", "torch==2.9.1 or torch==2.14.1?"),
        ("torch==2.1.4", "no wheel of torch 2.1.4 for Python 3.11, 3.6", "torch==1.10.2 or torch==2.9.0?"),
        ("torch==2.20.0", "no wheel of torch 2.20.0 for Python 3.11, 3.6", "did you mean torch==2.14.1?"),
        ("torch==2.9.1@py3.13", "lists no release of torch: no torch", ""),
        ("torch==1.5.0", "no wheel of torch 1.5.0 for Python 3.6, 3.11", "for Python 2.7, 3.7: torch==1.5.0@py3.7"),
        ("torch==1.5.0@py3.12", "no wheel of torch 1.5.0 for Python 3.12", "torch==1.5.0@py3.7"),
        ("torch@nightly-20261120", "no wheel of torch nightly-20261120", "torch@nightly-20261102 or torch@nightly-202"),
    ],
)
def test_a_release_that_there_is_not_has_its_neighbours_in_the_hint(
    text: str, message: str, hint: str, matrix: Matrix
) -> None:
    with pytest.raises(NothingSelectedError) as caught:
        find(matrix, text)
    (problem,) = caught.value.problems
    assert message in problem.message
    assert hint in (problem.hint or "")


def test_selectors_keep_what_stands_beside_a_release(matrix: Matrix) -> None:
    assert split_selector("!jax==0.8.1@py3.12@env:A=1") == ("!", "jax==0.8.1@py3.12", "@env:A=1")
    assert with_id("torch==1.0.0@20261120-104500-aaaa", matrix) == "torch-1.0@20261120-104500-aaaa"
    assert with_id("torch==2.9.1/nn-lstm/*", matrix) == "torch-2.9.1/nn-lstm/*"
    assert with_id("torch>=2", matrix) == "torch>=2"
    assert split_selector("torch@nightly-20261101,a==1@py3.12@env:A=1/x") == (
        "",
        "torch@nightly-20261101,a==1@py3.12",
        "@env:A=1/x",
    )
    assert with_id("torch@nightly-20261101/nn-lstm/*", matrix) == "torch-nightly-20261101/nn-lstm/*"


@pytest.mark.parametrize(
    ("text", "name", "requirement", "index"),
    [
        ("torch@nightly-20261101", "torch-nightly-20261101", "torch==2.16.0.dev20261101", TORCH_NIGHTLY),
        ("torch==2.16.0.dev20261102", "torch-2.16.0.dev20261102", "torch==2.16.0.dev20261102", TORCH_NIGHTLY),
        ("torch==2.15.0rc1", "torch-2.15.0rc1", "torch==2.15.0rc1", "https://download.pytorch.org/whl/test/cpu"),
        ("tf@nightly-20261031", "tensorflow-nightly-20261031", "tf-nightly==2.22.0.dev20261031", None),
        ("tf-nightly==2.22.0.dev20261101", "tensorflow-2.22.0.dev20261101", "tf-nightly==2.22.0.dev20261101", None),
        ("tf==2.22.0rc0", "tensorflow-2.22.0rc0", "tensorflow-cpu==2.22.0rc0", None),
    ],
)
def test_a_build_that_is_no_release_is_of_the_index_that_has_it(
    text: str, name: str, requirement: str, index: str | None, matrix: Matrix
) -> None:
    made = find(matrix, text)
    variant = made.environment.variant("cpu")
    assert variant is not None
    assert (made.name, variant.requirements[0], variant.index) == (name, requirement, index)


def test_a_nightly_build_of_jax_has_the_jaxlib_of_its_day(matrix: Matrix) -> None:
    assert find(matrix, "jax@nightly-20261101").environment.requirements == (
        "jax==0.11.0.dev20261101",
        "jaxlib<=0.11.0.dev20261101",
    )


def test_builds_of_a_framework_that_are_not_named_by_their_day_are_refused(matrix: Matrix) -> None:
    with pytest.raises(UsageError, match="nightly builds of numpy"):
        find(matrix, "numpy@nightly-20261101")


def test_what_is_named_with_a_release_is_exact(matrix: Matrix) -> None:
    assert find(matrix, "torch==2.9.1,optax==0.2.4").exact == ("optax==0.2.4",)
