"""Releases that are named become environments, each with a lock that is kept."""

from datetime import date
from pathlib import Path

import pytest

from runner.core.errors import NothingSelectedError, Problem, ProvisionError
from runner.core.files import write_whole
from runner.matrix import Matrix, parse
from runner.releases.lock import LockResult
from runner.releases.lock_requests import LockRequest
from runner.session import named_releases
from runner.session.named_releases import NamedReleases, with_named_releases
from runner.session.options import Options
from tests.unit.releases.test_named import MATRIX, listed


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[LockRequest]:
    """What is resolved; an extra index does not answer."""
    resolved: list[LockRequest] = []

    def lock(request: LockRequest) -> LockResult:
        resolved.append(request)
        if request.index:
            raise ProvisionError("lock", Problem("no answer"), passing=True)
        write_whole(request.out, f"{request.requirements[0]} --hash=sha256:{'0' * 64}\n")
        return LockResult(path=request.out, changed=True, packages=())

    monkeypatch.setattr(named_releases, "lock_release", lock)
    monkeypatch.setattr(named_releases, "as_of", lambda *_: None)
    return resolved


@pytest.fixture
def matrix() -> Matrix:
    return parse(MATRIX.encode(), "matrix.yaml")


def named(matrix: Matrix, cache: Path, *selectors: str) -> NamedReleases:
    options = Options(matrix=Path("/nowhere/matrix.yaml"), selectors=[*selectors])
    return with_named_releases(matrix, options, "cpu", cache, listed)


def test_a_release_joins_the_matrix_and_keeps_its_lock(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    first = named(matrix, tmp_path, "numpy==1.26.4", "torch-1.0", "numpy==2.3.0@env:A=1/numpy-loop/*")
    assert first.options.selectors == ["numpy-1.26.4", "torch-1.0", "numpy-2.3.0@env:A=1/numpy-loop/*"]
    assert [*first.matrix.environments] == [*matrix.environments, "numpy-1.26.4", "numpy-2.3.0"]
    assert [request.requirements for request in requests] == [("numpy==1.26.4",), ("numpy==2.3.0",)]
    assert first.notes[0] == f"numpy-1.26.4: like numpy, locked in {first.locks['numpy-1.26.4']}"
    second = named(matrix, tmp_path, "numpy==1.26.4")
    assert len(requests) == 2
    assert second.locks == {"numpy-1.26.4": first.locks["numpy-1.26.4"]}
    assert second.notes == (f"numpy-1.26.4: like numpy, with the lock {first.locks['numpy-1.26.4']}",)


@pytest.mark.parametrize("content", [b"", b"\x00", b"#" * (5 << 20), b"numpy==1.25.0 --hash=sha256:" + b"0" * 64, None])
def test_a_kept_lock_that_is_not_of_the_release_is_made_again(
    content: bytes | None, matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    path = named(matrix, tmp_path, "numpy==1.26.4").locks["numpy-1.26.4"]
    good = path.read_bytes()
    path.unlink()
    if content is None:
        path.symlink_to(path)
    else:
        path.write_bytes(content)
    assert named(matrix, tmp_path, "numpy==1.26.4").notes == (f"numpy-1.26.4: like numpy, locked in {path}",)
    assert len(requests) == 2
    assert path.read_bytes() == good


def test_an_index_that_does_not_answer_is_left_out_and_named(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    made = named(matrix, tmp_path, "torch==2.9.1")
    assert [request.index for request in requests] == ["https://torch.test/cpu", None]
    assert made.notes[0].startswith("torch-2.9.1: https://torch.test/cpu does not answer")
    assert made.locks["torch-2.9.1"].is_file()


def test_an_old_release_has_the_packages_of_its_time_or_those_of_today(
    matrix: Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days: list[date | None] = []

    def lock(request: LockRequest) -> LockResult:
        days.append(request.as_of)
        if request.as_of and "1.26.4" in request.requirements[0]:
            raise ProvisionError("lock", Problem("no solution"))
        return LockResult(path=request.out, changed=True, packages=())

    monkeypatch.setattr(named_releases, "lock_release", lock)
    monkeypatch.setattr(named_releases, "as_of", lambda *_: date(2025, 8, 1))
    assert len(named(matrix, tmp_path, "numpy==2.3.0").notes) == 1
    note = named(matrix, tmp_path, "numpy==1.26.4").notes[0]
    assert days == [date(2025, 8, 1), date(2025, 8, 1), None]
    assert note == "numpy-1.26.4: cannot be resolved with the packages of 2025-08-01, and has those of today"


def test_what_names_no_release_stays_as_it_is(matrix: Matrix, tmp_path: Path, requests: list[LockRequest]) -> None:
    made = named(matrix, tmp_path, "torch-*", "!torch>=2", "torch==1.0.0")
    assert made.options.selectors == ["torch-*", "!torch>=2", "torch-1.0"]
    assert (made.matrix, made.locks, made.notes, requests) == (matrix, {}, (), [])


def test_a_release_that_cannot_be_resolved_leaves_no_lock(
    matrix: Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lock(_request: LockRequest) -> LockResult:
        raise ProvisionError("lock", Problem("no solution"))

    monkeypatch.setattr(named_releases, "lock_release", lock)
    monkeypatch.setattr(named_releases, "as_of", lambda *_: None)
    with pytest.raises(ProvisionError, match="no solution"):
        named(matrix, tmp_path, "torch==2.9.1")
    assert not list(tmp_path.rglob("*.txt"))
    with pytest.raises(NothingSelectedError, match=r"no wheel of numpy 9\.9"):
        named(matrix, tmp_path, "numpy==9.9")
