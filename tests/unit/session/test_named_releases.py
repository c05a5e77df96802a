"""Releases that are named become environments, each with a lock that is kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.core.errors import NothingSelectedError, UsageError
from runner.core.files import write_whole
from runner.matrix import Matrix, parse
from runner.releases import release_files, release_locks
from runner.releases.lock_requests import LockRequest
from runner.session.named_releases import NamedReleases, with_named_releases
from runner.session.options import Options
from tests.unit.releases.test_named import MATRIX, listed


@pytest.fixture(autouse=True)
def _silent_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that does not list files."""
    monkeypatch.setattr(release_files, "files_of", lambda *_: [])


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[LockRequest]:
    """What is resolved."""
    resolved: list[LockRequest] = []

    def lock(request: LockRequest) -> Iterator[str]:
        resolved.append(request)
        write_whole(request.out, f"{request.requirements[0]} --hash=sha256:{'0' * 64}\n")
        yield from ()

    monkeypatch.setattr(release_locks, "lock_of_its_time", lock)
    return resolved


@pytest.fixture
def matrix() -> Matrix:
    return parse(MATRIX.encode(), "matrix.yaml")


def options(*selectors: str, upgrade: bool = False) -> Options:
    return Options(matrix=Path("/nowhere/matrix.yaml"), selectors=[*selectors], upgrade=upgrade)


def named(matrix: Matrix, folder: Path, *selectors: str, upgrade: bool = False) -> NamedReleases:
    return with_named_releases(matrix, options(*selectors, upgrade=upgrade), "cpu", folder, listed)


def unreachable(*_: str) -> tuple[tuple[str, ...], str]:
    """Fail where the index is asked."""
    raise AssertionError


def test_a_release_joins_the_matrix_and_keeps_its_lock(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    first = named(matrix, tmp_path, "numpy==1.26.4", "torch-1.0", "numpy==2.3.0@env:A=1/numpy-loop/*")
    assert first.options.selectors == ["numpy-1.26.4", "torch-1.0", "numpy-2.3.0@env:A=1/numpy-loop/*"]
    assert [*first.matrix.environments] == [*matrix.environments, "numpy-1.26.4", "numpy-2.3.0"]
    assert sorted(request.requirements for request in requests) == [("numpy==1.26.4",), ("numpy==2.3.0",)]
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


def test_upgrade_makes_the_locks_again_and_needs_a_release(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    first = named(matrix, tmp_path, "numpy==1.26.4")
    renewed = named(matrix, tmp_path, "numpy==1.26.4", "torch-1.0", upgrade=True)
    assert len(requests) == 2
    assert renewed.locks == first.locks
    assert "its lock is as before" in renewed.notes[0]
    with pytest.raises(UsageError, match="--upgrade renews the locks of releases"):
        named(matrix, tmp_path, "torch-1.0", upgrade=True)


def test_a_nightly_build_keeps_the_version_of_its_lock(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    first = named(matrix, tmp_path, "torch@nightly-20261101")
    lock = first.locks["torch-nightly-20261101"]
    lock.write_text(f"torch==2.16.0.dev20261101+cpu --hash=sha256:{'0' * 64}\n")
    again = with_named_releases(matrix, options("torch@nightly-20261101"), "cpu", tmp_path, unreachable)
    assert (again.locks, len(requests)) == (first.locks, 1)


def test_a_lock_that_was_received_counts(matrix: Matrix, tmp_path: Path, requests: list[LockRequest]) -> None:
    sent = named(matrix, tmp_path / "driver", "numpy==1.26.4").locks["numpy-1.26.4"]
    kept = named(matrix, tmp_path / "worker", "numpy==1.26.4").locks["numpy-1.26.4"]
    made = with_named_releases(
        matrix, options("numpy==1.26.4"), "cpu", tmp_path / "worker", unreachable, received=sent.parent
    )
    assert (made.locks["numpy-1.26.4"], kept.name) == (sent, sent.name)
    assert len(requests) == 2


def test_what_names_no_release_stays_as_it_is(matrix: Matrix, tmp_path: Path, requests: list[LockRequest]) -> None:
    made = named(matrix, tmp_path, "torch-*", "!torch>=2", "torch==1.0.0")
    assert made.options.selectors == ["torch-*", "!torch>=2", "torch-1.0"]
    assert (made.matrix, made.locks, made.notes, requests) == (matrix, {}, (), [])


def test_an_excluded_release_is_neither_looked_for_nor_locked(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    made = with_named_releases(
        matrix, options("torch==2.9.0", "torch-*", "!torch==2.9.0", "!torch==1.0.0"), "cpu", tmp_path, unreachable
    )
    assert made.options.selectors == ["torch-*", "!torch-1.0"]
    assert (made.matrix, made.locks, requests) == (matrix, {}, [])


def test_a_release_that_there_is_not_leaves_no_lock(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    with pytest.raises(NothingSelectedError, match=r"no wheel of numpy 9\.9"):
        named(matrix, tmp_path, "numpy==9.9")
    assert (requests, list(tmp_path.rglob("*.txt"))) == ([], [])
