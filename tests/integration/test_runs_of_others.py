"""A run folder that somebody sent starts nothing, whatever it names and whatever host it says it is of."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.store.checksums import with_checksum
from tests.integration.conftest import Runner
from tests.support.executables import write_executable

SCRIPT = """#!/bin/sh
echo script >> {mark}
exec {python} "$@"
"""


def changed(path: Path, change: Callable[[str], str]) -> None:
    """Change a document of a run, with the checksum that belongs to it."""
    document = json.loads(change(path.read_text()))
    document.pop("checksum", None)
    path.write_text(with_checksum(json.dumps(document)))


@pytest.fixture
def measured(runner: Runner, tmp_path: Path) -> Path:
    """The folder of a finished run of the host's interpreter."""
    done = runner("run", "--backend", "host", "--name", "np", "--preset", "tiny", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "reports" / "runs").iterdir()
    return run


def sent(run: Path, folder: Path, interpreter: Path | None = None) -> Path:
    """Return a copy of a run, as an archive would bring it; with another interpreter in its journal."""
    copy = folder / run.name
    shutil.copytree(run, copy)
    if interpreter is not None:
        lines = (copy / "journal.jsonl").read_text().splitlines()
        first = {**json.loads(lines[0]), "python": str(interpreter)}
        first.pop("checksum", None)
        lines[0] = with_checksum(json.dumps(first)).rstrip()
        (copy / "journal.jsonl").write_text("\n".join(lines) + "\n")
    return copy


def test_a_copy_starts_its_interpreter_only_where_it_is_trusted(runner: Runner, measured: Path, tmp_path: Path) -> None:
    mark, script = tmp_path / "mark", tmp_path / "evil.sh"
    python = json.loads((measured / "journal.jsonl").read_text().splitlines()[0])["python"]
    write_executable(script, SCRIPT.format(mark=mark, python=python))
    copy = sent(measured, tmp_path / "sent", script)
    done = runner("reproduce", str(copy), "--busy-ok")
    assert (done.returncode, mark.exists()) == (2, False), done.stderr
    assert f"the interpreter {script} as you, with your files and your network" in done.stderr
    assert "repeat the command with `--trust`" in done.stderr
    done = runner("reproduce", str(copy), "--busy-ok", "--trust")
    assert done.returncode in {0, 1}, done.stderr
    assert mark.read_text().startswith("script")
    assert f"the interpreter {script}" in done.stderr


@pytest.mark.slow
def test_a_run_that_was_started_here_and_moved_is_measured_again_as_before(
    runner: Runner, measured: Path, tmp_path: Path
) -> None:
    (tmp_path / "kept").mkdir()
    done = runner("reproduce", str(measured.rename(tmp_path / "kept" / measured.name)), "--busy-ok")
    assert done.returncode in {0, 1}, done.stderr
    assert "trust" not in done.stderr


def test_a_copy_is_resumed_only_where_it_is_trusted(runner: Runner, measured: Path, tmp_path: Path) -> None:
    copy = sent(measured, tmp_path / "sent")
    lines = [line for line in (copy / "journal.jsonl").read_text().splitlines() if '"ended"' not in line]
    (copy / "journal.jsonl").write_text("\n".join(lines) + "\n")
    done = runner("run", "--resume", str(copy))
    assert done.returncode == 2
    assert "repeat the command with `--trust`" in done.stderr
    assert runner("run", "--resume", str(copy), "--trust").returncode == 0
    assert runner("run", "--trust").returncode == 2


@pytest.mark.slow
def test_a_plan_whose_parts_lead_elsewhere_is_refused(runner: Runner, measured: Path, tmp_path: Path) -> None:
    copy = sent(measured, tmp_path / "sent")
    outside = f"../../../{tmp_path.name}/sent/{copy.name}/x"
    changed(copy / "plan.json", lambda text: text.replace('"environment": "np"', f'"environment": "{outside}"'))
    done = runner("reproduce", str(copy), "--busy-ok", "--trust")
    assert done.returncode not in {0, 70}, done.stdout
    assert "has the environment" in done.stderr
    assert "Traceback" not in done.stderr
