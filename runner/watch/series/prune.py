"""`runner history prune`: remove old runs from the history, and their folders where that is asked for."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from runner.core.errors import Problem, RunnerError, UsageError, file_problem
from runner.core.unfinished import remove_folder, sweep
from runner.history.database import History
from runner.history.entries import RunRow
from runner.history.retention import Policy, Pruned
from runner.nights.anchors_file import anchor_runs
from runner.report.formatting import counted
from runner.watch.series.rebuild import stored_runs

MONTH = timedelta(days=31)


def counted_from(history: History, clock: datetime) -> datetime:
    """Return the time from which ``Policy.days`` are counted: the clock's, or a month after the newest run.

    A clock that is ahead would remove what a right one keeps.

    Args:
        history: an open history.
        clock: what the clock shows.
    """
    return min([clock, *(datetime.fromisoformat(run.at) + MONTH for run in history.runs()[-1:])])


def prune(reports: Path, history: History, policy: Policy) -> Pruned:
    """Remove the runs that a policy does not keep; anchors always stay.

    Raises:
        HistoryError: the history cannot be written.
        RunnerError: the file of the anchors is damaged.
    """
    return history.prune(replace(policy, keep=policy.keep | anchor_runs(reports)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The folders of runs that were to be removed.

    Attributes:
        folders: those that were.
        kept: the ids of the runs whose folders stay: another process uses them, or they cannot be removed.
        problems: why some could not be removed.
    """

    folders: tuple[Path, ...]
    kept: frozenset[str]
    problems: tuple[Problem, ...]


def remove_folders(reports: Path, removed: Collection[RunRow]) -> Removed:
    """Remove the folders of runs below a reports folder.

    The history only says which runs; where they are is looked up in the reports, for others may write into a history.
    """
    names = {run.run for run in removed}
    folders: list[Path] = []
    kept: set[str] = set()
    problems: list[Problem] = []
    sweep(reports / "runs")
    for run in [run for run in stored_runs(reports) if run.id in names]:
        try:
            with run.hold():
                remove_folder(run.path)
            folders.append(run.path)
        except UsageError:  # it is being resumed
            kept.add(run.id)
        except (RunnerError, OSError) as error:
            kept.add(run.id)
            problems += error.problems if isinstance(error, RunnerError) else [file_problem(error, run.path, "removed")]
    return Removed(folders=tuple(folders), kept=frozenset(kept), problems=tuple(problems))


def pruned_text(pruned: Pruned, name: str, folders: int, *, dry_run: bool) -> str:
    """Return the runs that were removed, one a line, and a summary."""
    lines = [f"{run.run}  {run.at[:10]}  {run.kind}  {run.cells} tests" for run in pruned.removed]
    verb = "would be removed" if dry_run else "removed"
    summary = f"{name}: {counted(len(pruned.removed), 'run')} {verb}, {pruned.kept} kept"
    return "\n".join([*lines, f"{summary}; {counted(folders, 'folder')} removed" if folders else summary])
