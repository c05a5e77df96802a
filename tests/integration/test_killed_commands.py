"""Commands that are killed while they write or remove: nothing half has a name, and the next one clears up."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.store.run import runs
from tests.support.fake_runs import cell, make, rounds
from tests.support.needs import slow

ROOT = Path(__file__).parents[2]
MATRIX = """\
version: 1
workloads: {rnn-step: {}}
environments: {np: {framework: numpy, release: "2.0", python: "3.11", requirements: [numpy]}}
"""
KILLED = """
import os, signal, sys
from {module} import {owner}
number, whole = {number}, {owner}.{name}
def killed(*arguments, **options):
    global number
    number -= 1
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*arguments, **options)
{owner}.{name} = killed
from runner.cli import main
sys.argv = ["runner", *{words!r}]
main()
"""
OLD = "20200101-000000-aaaa"


def killed_at(folder: Path, words: Sequence[str], number: int, module: str, owner: str, name: str) -> bool:
    """Run a command and kill it when it calls a function for the n-th time; return whether it was killed."""
    program = KILLED.format(number=number, module=module, owner=owner, name=name, words=list(words))
    return _run(folder, ["-c", program]) == -signal.SIGKILL


def _run(folder: Path, words: Sequence[str]) -> int:
    nothing = {"DOCKER_HOST": f"unix://{folder}/no-engine.sock"}  # or `clean` would examine the images of this machine
    environ = {**os.environ, **nothing, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def command(folder: Path, *words: str) -> None:
    """Run a command, which has to succeed."""
    assert _run(folder, ["-m", "runner", *words]) == 0


def unfinished(folder: Path) -> list[Path]:
    """Return everything with a hidden name below a folder."""
    return [path for path in folder.rglob(".*.tmp") if path.name != ".lock"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a matrix, and three runs, one of them old."""
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    for second in (1.0, 1.1):
        make(tmp_path / "reports", rounds(cell(), [second, second]))
    old = make(tmp_path / "reports", rounds(cell(), [1.0, 1.0])).path
    old.rename(old.with_name(OLD))
    return tmp_path


@pytest.mark.parametrize("number", [7, *slow(0, 3, 9)])
def test_a_killed_site_leaves_nothing_half_and_the_next_one_is_whole(folder: Path, number: int) -> None:
    words = ["report", "--site", "published"]
    assert killed_at(folder, words, number, "runner.core", "files", "_sync")
    assert not [path for path in (folder / "published").rglob("*.html") if not path.read_text().rstrip().endswith(">")]
    command(folder, *words)
    assert not unfinished(folder / "published")
    command(folder, "clean")
    assert not unfinished(folder)
    assert (folder / "published" / "index.html").is_file()


@pytest.mark.parametrize("number", [2, *slow(0, 5)])
def test_a_killed_import_leaves_nothing_that_the_next_one_keeps(folder: Path, number: int) -> None:
    (stored, *_) = runs(folder / "reports")
    with tarfile.open(folder / "run.tar.gz", "w:gz") as archive:
        archive.add(stored.path, f"runs/{stored.id}")
    shutil.rmtree(stored.path)
    words = ["import", "run.tar.gz"]
    assert killed_at(folder, words, number, "runner.watch.imports", "archives", "_write")
    assert unfinished(folder / "reports" / "imports")
    assert not runs(folder / "reports" / "imports")
    command(folder, *words)
    assert not unfinished(folder)
    assert [run.id for run in runs(folder / "reports" / "imports")] == [stored.id]


def test_a_killed_prune_leaves_no_half_run(folder: Path) -> None:
    command(folder, "history", "rebuild")
    words = ["history", "prune", "--folders", "--days", "1"]
    assert killed_at(folder, words, 0, "runner.core.unfinished", "shutil", "rmtree")
    assert len(unfinished(folder / "reports" / "runs")) == 1
    stored = runs(folder / "reports")
    assert len(stored) == 2
    assert all(len([*run.records()]) == 2 for run in stored)
    command(folder, *words)
    assert not unfinished(folder)


@pytest.mark.parametrize("number", [2, *slow(0, 3)])
def test_a_run_that_is_killed_while_it_begins_is_no_run(folder: Path, number: int) -> None:
    before = {run.id for run in runs(folder / "reports")}
    program = (
        "import os, signal\n"
        "from runner.core import files\n"
        f"number, whole = {number}, files.write_all\n"
        "def killed(made):\n"
        "    global number\n"
        "    number -= 1\n"
        "    os.kill(os.getpid(), signal.SIGKILL) if number < 0 else whole(made)\n"
        "files.write_all = killed\n"
        "from pathlib import Path\n"
        "from tests.support.fake_runs import cell, make, rounds\n"
        "make(Path('reports'), rounds(cell(), [1.0, 1.0]))\n"
    )
    assert _run(folder, ["-c", program]) == -signal.SIGKILL
    folders = {path.name for path in (folder / "reports" / "runs").iterdir() if not path.name.startswith(".")}
    assert folders == before
    command(folder, "clean")
    assert not unfinished(folder)
    assert {run.id for run in runs(folder / "reports")} == before


def test_a_killed_clean_leaves_no_venv_that_counts(folder: Path) -> None:
    home = folder / "cache" / "matrix-runner" / "venvs" / "gone-0123456789ab"
    (home / "bin").mkdir(parents=True)
    (home / ".ready").touch()
    (home / "bin" / "python").touch()
    words = ["clean", "--others"]
    assert killed_at(folder, words, 0, "runner.backends.removal", "shutil", "rmtree")
    assert not (home / ".ready").exists()
    command(folder, "clean")  # it is incomplete now, and nobody's
    assert not home.exists()
