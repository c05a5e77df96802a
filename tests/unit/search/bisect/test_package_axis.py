"""The versions of a package next to the framework that a search can measure."""

from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.core.model import Device
from runner.matrix import parse
from runner.releases import named_environments
from runner.search.bisect.axes import Axes
from runner.search.bisect.result import entry
from runner.search.bisect.state import Question

MATRIX = b"""\
version: 1
environments:
  jax: {framework: jax, release: "0.*", python: "3.11", lock: jax.txt, requirements: [jax==0.4.36, jaxlib==0.4.36]}
  torch-1.2: {framework: torch, release: "1.2.0", image: "example/torch:1.2"}
  torch-1.12: {framework: torch, release: "1.12.1", python: "3.10", requirements: [torch==1.12.1]}
workloads: {rnn-step: {cases: [lstm-b32-h128]}}
"""
JAX_LOCK = "\n".join(
    f"{name}=={version} --hash=sha256:{'ab' * 32}"
    for name, version in (("jax", "0.4.36"), ("nvidia-cudnn-cu12", "9.8.0.87"))
)
LISTED = {
    ("nvidia-cudnn-cu12", "3.11"): ("9.10.0.56", "9.9.0.52", "9.8.0.87", "9.1.0.70"),
    ("numpy", "3.11"): ("2.2.6", "2.0.2", "1.26.4", "1.25.0"),
    ("numba", "3.11"): ("0.67.0", "0.66.0", "0.65.1", "0.65.0"),
}


def versions(package: str, python: str, _: str) -> tuple[tuple[str, ...], str]:
    """Stand in for the package index."""
    listed = LISTED.get((package, python), ())
    return listed, "" if listed else "no such package"


@pytest.fixture
def axes(tmp_path: Path) -> Axes:
    """Axes on a CPU, in a folder with a lock."""
    return axes_in(tmp_path)


def axes_in(folder: Path, device: Device = "cpu") -> Axes:
    (folder / "jax.txt").write_text(JAX_LOCK)
    return Axes(matrix=parse(MATRIX, "matrix.yaml"), folder=folder, device=device, versions=versions, notes=[])


def question(axis: str, good: str, bad: str, environment: str) -> Question:
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


def test_versions_of_a_package_lie_between_the_ends_and_the_framework_stays(axes: Axes) -> None:
    requested = question("numpy", "1.26.4", "2.2.6", "jax")
    chosen = axes.candidates(requested)
    assert [candidate.name for candidate in chosen] == ["jax-numpy-1.26.4", "jax-numpy-2.0.2", "jax-numpy-2.2.6"]
    assert chosen[1].environment.requirements == ("jax==0.4.36", "jaxlib==0.4.36", "numpy==2.0.2")
    assert axes.stored(requested, [entry(each) for each in chosen]) == chosen


def test_a_release_that_the_matrix_lacks_has_an_environment_of_its_own(
    axes: Axes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_environments.ReleaseFinder, "_has_wheel", lambda *_: True)
    requested = question("numba", "0.66.0", "0.65.0", "numpy==2.2.6,scipy==1.15.0")
    chosen = axes.candidates(requested)
    assert [candidate.release for candidate in chosen] == ["0.66.0", "0.65.1", "0.65.0"]
    assert chosen[1].environment.requirements == ("numpy==2.2.6", "scipy==1.15.0", "numba==0.65.1")
    assert chosen[1].exact == ("scipy==1.15.0", "numba==0.65.1")
    assert axes.stored(requested, [entry(each) for each in chosen]) == chosen


def test_versions_of_cudnn_replace_that_of_the_lock(tmp_path: Path) -> None:
    axes = axes_in(tmp_path, "cuda")
    chosen = axes.candidates(question("cudnn", "9.8.0.87", "9.10.0.56", "jax"))
    assert [candidate.release for candidate in chosen] == ["9.8.0.87", "9.9.0.52", "9.10.0.56"]
    assert chosen[1].environment.requirements == ("jax==0.4.36", "jaxlib==0.4.36", "nvidia-cudnn-cu12==9.9.0.52")
    with pytest.raises(UsageError, match="no package of cuDNN"):
        axes.candidates(question("cudnn", "9.8", "9.9", "torch-1.12"))


@pytest.mark.parametrize(
    ("axis", "good", "environment", "message"),
    [
        ("numpy", "1.26.3", "jax", r"no wheel of numpy 1\.26\.3 for Python 3\.11\nhint: did you mean 1\.26\.4"),
        ("numpi", "1.26.4", "jax", "the versions of numpi cannot be listed: no such package"),
        ("numpy", "1.26.4", "jaxx", "'jaxx' is not in the matrix"),
        ("numpy", "1.26.4", "torch-1.2", r"torch-1\.2 is an image"),
        ("jax", "0.4.35", "jax", "jax is the framework of jax"),
        ("cudnn", "9.8.0.87", "jax", "needs an NVIDIA GPU"),
    ],
)
def test_what_cannot_vary_is_refused(axis: str, good: str, environment: str, message: str, axes: Axes) -> None:
    with pytest.raises(UsageError, match=message):
        axes.candidates(question(axis, good, "2.2.6", environment))


def test_a_stored_version_that_is_none_is_refused(axes: Axes) -> None:
    requested = question("numpy", "1.26.4", "2.2.6", "jax")
    with pytest.raises(UsageError, match="is no version"):
        axes.stored(requested, [{"name": "a", "release": "2; x", "source": "index", "template": "jax"}])
