"""Finds the run before on the same machine in the history, for the page of a run."""

from runner.analysis.analyse import Analysis
from runner.core.errors import HistoryError
from runner.history.database import History
from runner.history.entries import RunRow, series_device
from runner.history.location import sqlite_path
from runner.report.last_run import LastRun, compare_with
from runner.session.run_entry import device_of
from runner.store.run import Run

LOOKED_AT = 5
"""Runs of the machine that are looked at, the newest first, for comparisons of the same releases."""


def last_run(analysis: Analysis, run: Run, url: str) -> LastRun | None:
    """Return how a run agrees with the newest earlier one on the same machine that compared the same releases.

    Args:
        analysis: the run.
        run: its folder.
        url: of the history.

    Returns:
        Without such a run, ``LastRun()``; None if the history cannot be read.
    """
    path = sqlite_path(url)
    try:
        if path is not None and not path.exists():
            return LastRun()
        with History.open(url, only_reads=True) as history:
            for row in _earlier(history, analysis, run):
                earlier = compare_with(analysis.comparisons, analysis.releases, row.run, history.points(row.run))
                if earlier.compared:
                    return earlier
    except (HistoryError, OSError):
        return None
    return LastRun()


def _earlier(history: History, analysis: Analysis, run: Run) -> list[RunRow]:
    """Return the newest earlier runs of the same machine, the newest first; ids of runs begin with their time."""
    device = device_of(analysis.dataset)
    backend = str(analysis.dataset.provenance.get("backend") or "")
    same = (series_device(backend, device["device_name"]), device["host"])
    rows = [
        row
        for row in history.runs()
        if row.run < run.id and row.kind != "import" and (series_device(row.backend, row.device_name), row.host) == same
    ]
    return rows[: -LOOKED_AT - 1 : -1]
