"""`runner history prune`: remove old runs from the history, and their folders where that is asked for."""

import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from runner.core.errors import RunnerError, UsageError, file_problem
from runner.history.database import History
from runner.history.entries import RunRow
from runner.history.retention import Policy, Pruned
from runner.report.formatting import counted
from runner.workflows.history.rebuild import stored_runs
from runner.workflows.nightly.pins import anchor_runs


def prune(reports: Path, history: History, policy: Policy) -> Pruned:
    """Remove the runs that a policy does not keep; anchors always stay.

    Raises:
        HistoryError: the history cannot be written.
        RunnerError: the file of the anchors is damaged.
    """
    return history.prune(replace(policy, keep=policy.keep | anchor_runs(reports)))


def remove_folders(reports: Path, removed: Collection[RunRow]) -> tuple[Path, ...]:
    """Remove the folders of runs below a reports folder; return those that were removed.

    The history only says which runs; where they are is looked up in the reports, for others may write into a history.
    A run that another process is using stays.

    Raises:
        RunnerError: a folder cannot be removed.
    """
    names = {run.run for run in removed}
    folders = []
    for run in [run for run in stored_runs(reports) if run.id in names]:
        try:
            with run.hold():
                shutil.rmtree(run.path)
        except UsageError:  # it is being resumed
            continue
        except OSError as error:
            raise RunnerError(file_problem(error, run.path, "removed")) from error
        folders.append(run.path)
    return tuple(folders)


def pruned_text(pruned: Pruned, name: str, folders: int, *, dry_run: bool) -> str:
    """Return the runs that were removed, one a line, and a summary."""
    lines = [f"{run.run}  {run.at[:10]}  {run.kind}  {run.cells} cells" for run in pruned.removed]
    verb = "would be removed" if dry_run else "removed"
    summary = f"{name}: {counted(len(pruned.removed), 'run')} {verb}, {pruned.kept} kept"
    return "\n".join([*lines, f"{summary}; {counted(folders, 'folder')} removed" if folders else summary])
