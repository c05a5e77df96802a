"""What a driver that was killed left with Slurm: replies that nobody collected, and jobs that wait or run."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from runner.core.files import read_bounded
from runner.workflows.hosts import tasks
from runner.workflows.hosts.executors import MAX_REPLY_BYTES, slurm_commands


def job_name(task: Path) -> str:
    """Return the name of the job of a task: only this job has it, so a later driver can cancel it by its name."""
    return f"matrix-runner-{task.stem}"


def uncollected(folder: Path, tokens: Collection[str]) -> Iterator[bytes]:
    """Yield the replies that are in the folders of earlier executors, cancel the jobs without one, and remove both.

    A folder belongs to the driver of one run, and is left alone unless it has a task of this run.

    Args:
        folder: where executors make their folders.
        tokens: of the tasks of the run.

    Raises:
        RunnerError: Slurm does not cancel a job.
    """
    for path in sorted(folder.glob("slurm-*")):
        files = sorted(path.glob("*.task"))
        if not any(tasks.token_of(content(task) or b"") in tokens for task in files):
            continue
        for task in files:
            if not task.with_suffix(".reply").exists():
                slurm_commands.answer(["scancel", f"--name={job_name(task)}"])
        replies = (content(task.with_suffix(".reply")) for task in files)
        yield from (reply for reply in replies if reply is not None)
        _remove(path, files)


def _remove(folder: Path, files: Iterable[Path]) -> None:
    """Remove all files of the tasks in a folder, and the folder if it has nothing else."""
    with suppress(OSError):
        for task in files:
            for suffix in (".reply", ".log", ".task"):
                task.with_suffix(suffix).unlink(missing_ok=True)
        folder.rmdir()


def content(path: Path) -> bytes | None:
    """Return the bytes of a file; None if there is none."""
    try:
        return read_bounded(path, MAX_REPLY_BYTES)
    except OSError:
        return None
