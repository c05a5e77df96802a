"""Modules of the folder that a user stands in run nowhere: not in builds, not in scheduled nights, not in workers."""

import subprocess
import sys
from pathlib import Path

import pytest

from runner.backends.venv import READY, VenvBackend
from runner.core.model import Spec
from runner.hosts import task_process
from runner.watch.schedule.scheduled_night import ScheduledNight
from tests.integration.conftest import ROOT

LOCK = ROOT / "docker" / "locks" / "numpy.txt"
BUILDING = ("venv", "pip", "ensurepip", "queue", "types", "sitecustomize")
STARTING = ("yaml", "json", "typer", "runpy", "multiprocessing")


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with modules that note that they ran, and end the process as if all were well."""
    folder = tmp_path / "evil"
    folder.mkdir()
    for name in (*BUILDING, *STARTING):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r}); raise SystemExit(0)")
    monkeypatch.chdir(folder)
    return tmp_path / "ran"


@pytest.mark.slow
def test_a_virtual_environment_is_built_by_pip_and_hashes_are_checked(evil: Path, tmp_path: Path) -> None:
    spec = Spec(environment="np", framework="numpy", release="2.*", python="3.11", lock=LOCK)
    ready = VenvBackend(tmp_path / "cache").provision(spec, lambda _line: None)
    home = Path(ready.handle).parent.parent
    assert (home / READY).exists()
    assert list(home.glob("lib/python*/site-packages/numpy"))
    assert not evil.exists()


@pytest.mark.parametrize("command", ["command", "if_missed", "after"])
def test_a_scheduled_night_starts_without_modules_of_its_folder(command: str, evil: Path) -> None:
    night = ScheduledNight(python=sys.executable, folder=Path.cwd(), words=(), at=(2, 30), environ={})
    done = subprocess.run([*getattr(night, command), "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout or "usage" in done.stdout
    assert not evil.exists()


def test_the_process_of_a_worker_starts_without_modules_of_its_folder(evil: Path) -> None:
    reply = task_process.perform(b'{"token": "t"}', "cpu", lambda: True)
    task_process.end_all()
    assert b"token" in reply
    assert not evil.exists()
