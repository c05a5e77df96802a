"""The folder of an executor: a lock, tasks, replies and output of jobs; and what a driver that ended left in one.

Jobs do not end with their driver. As long as it lives, it holds the lock of its folder.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

from runner.core import locks
from runner.core.files import read_bounded
from runner.hosts import tasks
from runner.hosts.executors.executor import MAX_REPLY_BYTES

LOCK = "driver.lock"


def job_name(task: Path) -> str:
    """Return the name of the job of a task: only this job has it, so a later driver can cancel it by its name."""
    return f"matrix-runner-{task.stem}"


def uncollected(reports: Path, run: str, cancel: Callable[[str], None]) -> Iterator[bytes]:
    """Yield the replies that the drivers of a run have not collected, cancel their other jobs, and remove the files.

    Folders of live drivers, and those with blocks of other runs, are left alone.

    Args:
        reports: where executors make their folders.
        run: the id of the run.
        cancel: cancels the jobs of a name.
    """
    for folder in sorted(reports.glob("slurm-*")):
        if not os.access(folder / LOCK, os.R_OK | os.W_OK):  # there is none, or it is another user's
            continue
        with locks.try_exclusive(folder / LOCK) as free:
            files = sorted(folder.glob("*.task"))
            if free and not {tasks.run_of(content(task) or b"") for task in files} - {"", run}:
                yield from _emptied(files, cancel)
                remove_lock(folder)
        remove_folder(folder)


def _emptied(files: Collection[Path], cancel: Callable[[str], None]) -> Iterator[bytes]:
    """Yield the replies to tasks, and remove the files of each when the next one is asked for."""
    for task in files:
        if not task.with_suffix(".reply").exists():
            cancel(job_name(task))
    for task in files:
        reply = content(task.with_suffix(".reply"))
        if reply is not None:
            yield reply
        remove(task, keep_log=reply is not None and tasks.is_refusal(reply))


def has_block(task: Path) -> bool:
    """Return whether a job has replied to a task that measures a block."""
    return task.with_suffix(".reply").exists() and bool(tasks.run_of(content(task.with_suffix(".task")) or b""))


def remove(task: Path, *, keep_log: bool = False) -> None:
    """Remove the files of a task; the task itself last, for without it no driver looks for the others."""
    for suffix in (".reply", ".task") if keep_log else (".reply", ".log", ".task"):
        with suppress(OSError):
            task.with_suffix(suffix).unlink()


def remove_lock(folder: Path) -> None:
    """Remove the lock of a folder, unless a task is left for a later driver."""
    if not any(folder.glob("*.task")):
        with suppress(OSError):
            (folder / LOCK).unlink()


def remove_folder(folder: Path) -> None:
    """Remove the folder of an executor if it is empty: without tasks, output that is kept, and an open lock."""
    with suppress(OSError):
        folder.rmdir()


def content(path: Path) -> bytes | None:
    """Return the bytes of a file; None if there is none."""
    try:
        return read_bounded(path, MAX_REPLY_BYTES)
    except OSError:
        return None
