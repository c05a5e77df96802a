"""The run before on the same machine: agreement in the history, of the same host and device, and older."""

from pathlib import Path

import pytest

from runner.analysis.analyse import analyse_run
from runner.history.database import History
from runner.report.last_run import LastRun
from runner.session.last_run import last_run
from runner.session.run_entry import run_entry
from tests.support.quick_run import quick


def test_the_newest_earlier_run_of_the_machine_is_compared(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    first, second = quick(tmp_path), quick(tmp_path, later=60, seed=4)
    analysis = analyse_run(second)
    assert last_run(analysis, second, url) == LastRun()
    assert not (tmp_path / "history.db").exists()
    with History.open(url) as history:
        for run in (first, second):
            history.add(run_entry(analyse_run(run), run))
    agreement = last_run(analysis, second, url)
    assert agreement is not None
    assert (agreement.measured, agreement.compared, agreement.agrees) == ("2026-11-20 10:45 UTC", 28, True)
    assert last_run(analyse_run(first), first, url) == LastRun(), "the other run is a later one"


def test_a_history_that_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    run = quick(tmp_path)
    (tmp_path / "history.db").write_text("no database")
    assert last_run(analyse_run(run), run, f"sqlite:///{tmp_path}/history.db") is None


def test_a_history_in_a_folder_of_others_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = quick(tmp_path)
    analysis = analyse_run(run)

    def refused(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "exists", refused)
    assert last_run(analysis, run, f"sqlite:///{tmp_path}/history.db") is None
