"""What a run and a night add to the history at their end. The history never ends a run: its errors are notes."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from runner.analysis.analyse import Analysis, analyse_run
from runner.core.errors import HistoryError, RecordError, RunnerError
from runner.history.database import History
from runner.history.location import database_url, url_name
from runner.session.run_entry import night_file, run_entry
from runner.store.run import Run, runs

REBUILD = "`runner history rebuild` adds it later"


def remember_run(
    run: Run, margin: float, url: str, note: Callable[[str], object], analysis: Analysis | None = None
) -> bool:
    """Add a run to the history; the runs that confirmed the changes of a night are added with it.

    A history that cannot be written, and a run that cannot be read, is a note: run folders are the source.

    Args:
        run: a run that ended, in the folder of the reports.
        margin: the relative change that counts as none.
        url: of the history, see ``history_url``.
        note: takes sentences.
        analysis: the run, if it was read before.

    Returns:
        Whether all of it is in the history now.
    """
    try:
        with History.open(url) as history:
            for each in with_confirmations(run):
                known = analysis if each == run else None
                history.add(run_entry(known or analyse_run(each, margin), each))
    except (HistoryError, RecordError, OSError) as error:
        reason = error.problems[0].message if isinstance(error, RunnerError) else error
        note(f"run {run.id} is not in the history {url_name(url)}: {reason}; {REBUILD}")
        return False
    return True


def with_confirmations(run: Run) -> Iterator[Run]:
    """Yield a run, and the runs that confirmed its changes if it was a night, oldest first."""
    yield run
    if night_file(run).exists():
        yield from reversed(runs(night_file(run).with_suffix("")))


def history_url(reports: Path, option: str | None) -> str:
    """Return the URL of the history of a reports folder, with this process's environment variables.

    Args:
        reports: the folder that holds the runs.
        option: the value of ``--history``; None without.

    Raises:
        UsageError: the URL is not one of a history, or holds a password although it is an option.
    """
    return database_url(reports, option, os.environ)
