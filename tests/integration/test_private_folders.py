"""The suite beside a user: it takes none of the user's locks, waits for none, and writes nothing into their folders."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from runner.core.locks import try_exclusive
from runner.core.paths import cache_folder
from runner.session.context import IN_USE
from tests.integration.conftest import ROOT
from tests.support import private_folders
from tests.support.needs import slow

REPRESENTATIVE = (
    "tests/integration/test_locks.py",
    "tests/integration/test_run.py::test_two_environments_are_measured_compared_and_exported[venv]",
    "tests/integration/test_resume.py::test_a_run_whose_budget_is_spent_measures_nothing_more",
    "tests/unit/session/test_context.py",
)
LOCKS = ("measuring-cpu.lock", IN_USE)


def entries(folder: Path) -> dict[str, int]:
    """Return the paths below a folder with the times of their last changes; links are not followed."""
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("workers", ["2", *slow("0")])
def test_the_suite_neither_waits_for_a_user_nor_writes_into_their_folders(workers: str, tmp_path: Path) -> None:
    user = {name: str(tmp_path / name) for name in ("cache", "state", "tmp")}
    cache = tmp_path / "cache" / "matrix-runner"
    for path in (cache, tmp_path / "state", tmp_path / "tmp"):
        path.mkdir(parents=True)
    (cache / "tests").symlink_to(private_folders.kept())
    ours = (private_folders.SESSION, private_folders.USERS, private_folders.WORKER, "PYTEST_DEBUG_TEMPROOT")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= {"XDG_CACHE_HOME": user["cache"], "XDG_STATE_HOME": user["state"], "TMPDIR": user["tmp"]}
    chosen = REPRESENTATIVE if workers == "0" else REPRESENTATIVE[:1]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", workers, *chosen]
    with ExitStack() as stack:
        for name in LOCKS:  # a run of the user measures, and `runner clean` looks at the cache
            assert stack.enter_context(try_exclusive(cache / name))
        before = entries(cache) | entries(tmp_path / "state")
        done = subprocess.run(
            [*command, "--basetemp", str(tmp_path / "base")],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert entries(cache) | entries(tmp_path / "state") == before
    assert not list((tmp_path / "tmp").glob("matrix-runner*"))
    assert not list((tmp_path / "tmp").glob("runner-tests-*"))


def test_this_session_has_folders_of_its_own() -> None:
    cache = cache_folder(os.environ)
    assert private_folders.users_cache() not in (cache, *cache.parents)
    session = Path(os.environ[private_folders.SESSION])
    assert session in cache.parents
    assert session in Path(os.environ["XDG_STATE_HOME"]).parents
    assert session in Path(os.environ["TMPDIR"]).parents
    assert {path.name for path in cache.iterdir() if path.is_symlink()} == set(private_folders.KEPT)
