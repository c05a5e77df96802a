"""Releases that are named become environments, each with a lock that is kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.core.errors import NothingSelectedError, Problem, ProvisionError, UsageError
from runner.core.files import write_whole
from runner.matrix import Matrix, parse
from runner.releases import release_files, release_locks
from runner.releases.lock_requests import LockRequest
from runner.releases.release_files import IndexFile
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


@pytest.fixture
def lists_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that lists the wheels of two releases of PyTorch, one of them for x86_64 alone."""
    names = ["torch-1.4.0-cp36-cp36m-manylinux1_x86_64.whl", "torch-2.9.1-cp311-cp311-manylinux_2_28_aarch64.whl"]
    monkeypatch.setattr(release_files, "files_of", lambda *_: [IndexFile(name) for name in names])


def _resolved_for_aarch64(request: LockRequest) -> Iterator[str]:
    """Resolve what the index has for aarch64; see ``release_locks.lock_of_its_time``."""
    assert request.architecture == "aarch64"
    if "2.9.1" not in request.requirements[0]:
        raise ProvisionError("lock", Problem(f"cannot lock {request.name}: no wheels\n  for aarch64"))
    write_whole(request.out, f"{request.requirements[0]} --hash=sha256:{'0' * 64}\n")
    yield from ()


@pytest.mark.usefixtures("lists_torch")
def test_on_aarch64_a_release_without_a_wheel_is_left_out_with_the_reason(
    matrix: Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_locks, "lock_of_its_time", _resolved_for_aarch64)
    on_aarch64 = matrix.for_architecture("aarch64")
    words = ("torch==1.4.0", "torch==2.9.1", "torch-1.0")
    made = with_named_releases(on_aarch64, options(*words), "cpu", tmp_path, lambda *_: ((), "no wheel"))
    assert made.options.selectors == ["torch-1.4.0", "torch-2.9.1", "torch-1.0"]
    assert {name: each.reason for name, each in made.unresolved.items()} == {
        name: f"on aarch64: cannot lock {name}: no wheels for aarch64" for name in ("torch-1.4.0", "torch-1.0")
    }
    assert {*made.locks} == {"torch-2.9.1"}
    with pytest.raises(NothingSelectedError, match=r"no wheel of torch 9\.9 for Python .* on aarch64"):
        with_named_releases(on_aarch64, options("torch==9.9"), "cpu", tmp_path, lambda *_: (("2.9.1",), ""))


@pytest.mark.usefixtures("lists_torch")
def test_locks_for_two_architectures_are_kept_side_by_side(
    matrix: Matrix, tmp_path: Path, requests: list[LockRequest]
) -> None:
    folders = [
        with_named_releases(matrix.for_architecture(each), options("numpy==1.26.4"), "cpu", tmp_path, listed).locks
        for each in ("x86_64", "aarch64")
    ]
    assert [request.platform for request in requests] == ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28"]
    assert len({str(locks["numpy-1.26.4"]) for locks in folders}) == 2


def test_on_aarch64_an_outage_is_no_reason_to_leave_a_release_out(
    matrix: Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_: LockRequest) -> Iterator[str]:
        raise ProvisionError("lock", Problem("no answer"), passing=True)

    monkeypatch.setattr(release_locks, "lock_of_its_time", silent)
    with pytest.raises(ProvisionError, match="no answer"):
        with_named_releases(matrix.for_architecture("aarch64"), options("numpy==1.26.4"), "cpu", tmp_path, listed)
