"""The locks of followed releases: which one nights use, and which are kept."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.core.errors import RunnerError
from runner.releases import kept as releases

FOLDER = "torch-2.x-cpu"


def keep(reports: Path, release: str) -> Path:
    path = releases.lock_of(reports, FOLDER, release)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"torch=={release}\n")
    return path


def test_nights_use_the_lock_of_the_matrix_until_a_release_is_built(tmp_path: Path) -> None:
    matrix_lock = tmp_path / "lock.txt"
    matrix_lock.write_text("torch==2.9.0\n")
    assert releases.current_lock(tmp_path, FOLDER, matrix_lock) is None
    lock = keep(tmp_path, "2.9.1+cpu")
    releases.use(tmp_path, FOLDER, "2.9.1+cpu", matrix_lock)
    assert releases.current_lock(tmp_path, FOLDER, matrix_lock) == lock
    assert releases.current_lock(tmp_path, "jax", None) is None
    releases.use(tmp_path, FOLDER, "", matrix_lock)
    assert releases.current_lock(tmp_path, FOLDER, matrix_lock) is None


def test_no_release_is_lost_where_several_nights_change_theirs_at_once(tmp_path: Path) -> None:
    folders = [f"torch-{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda folder: releases.use(tmp_path, folder, "2.9.1", None), folders))
    for folder in folders:
        lock = releases.lock_of(tmp_path, folder, "2.9.1")
        lock.parent.mkdir(parents=True)
        lock.touch()
        assert releases.current_lock(tmp_path, folder, None) == lock


def test_a_lock_that_a_person_wrote_since_counts(tmp_path: Path) -> None:
    matrix_lock = tmp_path / "lock.txt"
    matrix_lock.write_text("torch==2.9.0\n")
    keep(tmp_path, "2.9.1")
    releases.use(tmp_path, FOLDER, "2.9.1", matrix_lock)
    matrix_lock.write_text("torch==2.10.0\n")
    assert releases.current_lock(tmp_path, FOLDER, matrix_lock) is None


def test_a_lock_that_is_gone_is_not_used(tmp_path: Path) -> None:
    keep(tmp_path, "2.9.1").unlink()
    releases.use(tmp_path, FOLDER, "2.9.1", None)
    assert releases.current_lock(tmp_path, FOLDER, None) is None


def test_the_locks_of_all_releases_are_kept(tmp_path: Path) -> None:
    kept = {release: keep(tmp_path, release) for release in ("2.9.0", "2.9.1+cpu", "2.10.0.dev20261120")}
    keep(tmp_path, ".new")
    assert releases.kept_locks(tmp_path, FOLDER) == kept
    assert releases.kept_locks(tmp_path, "jax") == {}


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"version": 1, "environments": {"a": 1}}', '{"version": 1, "environments": {"a": {"release": "2"}}}'],
)
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, content: str) -> None:
    path = tmp_path / "locks" / "current.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(RunnerError, match=r"current\.json") as refused:
        releases.current_lock(tmp_path, FOLDER, None)
    assert "remove it" in str(refused.value)


def test_a_file_of_a_newer_program_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "current.json"
    path.parent.mkdir()
    path.write_text('{"version": 2, "environments": {}}')
    with pytest.raises(RunnerError, match="has version 2"):
        releases.use(tmp_path, FOLDER, "2.9.0", None)
    assert path.read_text() == '{"version": 2, "environments": {}}'


@pytest.mark.parametrize("release", ["../../lock", "/etc/passwd", ""])
def test_a_release_is_no_path(tmp_path: Path, release: str) -> None:
    (tmp_path / "lock.txt").write_text("torch==1\n")
    (tmp_path / "locks" / FOLDER).mkdir(parents=True)
    releases.use(tmp_path, FOLDER, release, None)
    assert releases.current_lock(tmp_path, FOLDER, None) is None
