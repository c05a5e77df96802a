"""An environment for which the matrix names no lock gets one where it is named, and keeps it."""

from pathlib import Path

import pytest

from runner.core.errors import Problem, ProvisionError
from runner.core.model import Device
from runner.matrix import Matrix, parse
from runner.plan.specs import specs
from runner.releases import release_locks
from runner.releases.lock import LockResult
from runner.releases.lock_requests import LockRequest
from runner.session.named_releases import with_named_releases
from runner.session.options import Options

MATRIX = """\
version: 1
environments:
  torch-2.1:
    framework: torch
    release: "2.1.2"
    python: "3.11"
    variants:
      cpu: {requirements: [torch==2.1.2, numpy<2], index: "https://torch.test/cpu"}
      cuda-12.1: {requirements: [torch==2.1.2], cuda: "12.1"}
  torch-2.1-passive: {extends: torch-2.1, env: {OMP_WAIT_POLICY: "passive"}}
  torch-0.1: {framework: torch, release: "0.1", python: "3.6", requirements: [torch], find_links: "https://torch.test/"}
  jax: {framework: jax, release: "0.*", python: "3.11", requirements: [jax], lock: jax.txt}
  numpy: {framework: numpy, release: "2.3.0", python: "3.11", requirements: [numpy==2.3.0]}
workloads: {rnn-step: {}}
"""


@pytest.fixture
def matrix() -> Matrix:
    return parse(MATRIX.encode(), "matrix.yaml")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[LockRequest]:
    """What is resolved; an extra index does not answer."""
    resolved: list[LockRequest] = []

    def lock(request: LockRequest) -> LockResult:
        resolved.append(request)
        if request.index:
            raise ProvisionError("lock", Problem("no answer"), passing=True)
        release = request.requirements[0] if "==" in request.requirements[0] else f"{request.requirements[0]}==0.1"
        request.out.write_text(f"{release} --hash=sha256:{'0' * 64}\n")
        return LockResult(path=request.out, changed=True, packages=())

    monkeypatch.setattr(release_locks, "lock_release", lock)
    monkeypatch.setattr(release_locks, "as_of", lambda *_: None)
    monkeypatch.setattr(release_locks, "answers", lambda *_: True)
    return resolved


def first_locks(
    matrix: Matrix, selectors: list[str], device: Device, folder: Path
) -> tuple[dict[str, Path], tuple[str, ...]]:
    named = with_named_releases(matrix, Options(selectors=selectors, matrix=folder / "matrix.yaml"), device, folder)
    assert named.matrix == matrix
    return dict(named.locks), named.notes


def test_a_named_environment_gets_a_lock_and_keeps_it(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    locks, notes = first_locks(matrix, ["torch-2.1/nn-lstm/*", "torch-2.1-passive@threads:2"], "cpu", tmp_path)
    assert [*locks] == ["torch-2.1"]
    assert locks["torch-2.1"].is_file()
    assert [request.index for request in requests] == ["https://torch.test/cpu", None]
    assert notes[0].startswith("torch-2.1: https://torch.test/cpu does not answer")
    assert notes[1:] == (f"torch-2.1: locked in {locks['torch-2.1']}",)
    kept = (f"torch-2.1: with the lock {locks['torch-2.1']}",)
    assert first_locks(matrix, ["torch-2.1"], "cpu", tmp_path) == (locks, kept)
    assert len(requests) == 2


@pytest.mark.parametrize("selector", ["torch-*", "torch>=2", "!torch-2.1", "framework:numpy", "torch-0.1", "jax"])
def test_others_stay_without_one(selector: str, matrix: Matrix, tmp_path: Path, requests: list[LockRequest]) -> None:
    assert first_locks(matrix, [selector], "cpu", tmp_path) == ({}, ())
    assert not requests


def test_a_build_for_one_of_several_versions_of_cuda_stays_without_one(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    assert first_locks(matrix, ["torch-2.1"], "cuda", tmp_path) == ({}, ())
    locks, _ = first_locks(matrix, ["numpy"], "cuda", tmp_path)
    assert ([*locks], requests[0].requirements) == (["numpy"], ("numpy==2.3.0",))


def test_the_plan_says_how_a_lock_is_made(matrix: Matrix, tmp_path: Path) -> None:
    complete, _ = specs(matrix, ["torch-2.1", "torch-0.1", "jax"], "cpu", tmp_path)
    assert [spec.missing_lock for spec in complete] == [
        "no lock yet: it is made where the environment is named: `runner plan torch-2.1`",
        "no lock yet: run `runner lock torch-0.1` where its package index answers",
        "no lock yet: run `runner lock jax` where its package index answers",
    ]


def test_a_release_that_is_named_is_the_environment_that_has_it(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    """torch==2.1.2 is the torch-2.1 of this matrix, whose lock is made as where it is named by its id."""
    by_id, _ = first_locks(matrix, ["torch-2.1"], "cpu", tmp_path)
    by_release, _ = first_locks(matrix, ["torch==2.1.2"], "cpu", tmp_path)
    assert (by_release, [*by_release]) == (by_id, ["torch-2.1"])
    assert first_locks(matrix, ["!torch==2.1.2"], "cpu", tmp_path)[0] == {}
