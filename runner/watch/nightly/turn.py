"""When a night may start: never beside another night of the same reports folder, and once where one was missed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runner.core.errors import NightRunningError, UsageError, file_problem
from runner.core.locks import hold
from runner.nights.night_files import night_names, nights_folder
from runner.store.run import CLOCK_ERROR, is_ahead

LOCK = ".lock"
_RUN = re.compile(r"([0-9]{8}-[0-9]{6})-[0-9a-f]{4}")


@contextmanager
def only_night(reports: Path) -> Iterator[None]:
    """Hold the lock on the nights of a reports folder for the length of the block; never wait.

    Raises:
        NightRunningError: another night is running; it names the process and the run.
        UsageError: the folder cannot be made.
    """
    folder = nights_folder(reports)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(file_problem(error, folder)) from error
    nights = started(reports)
    running = f"its night is run {nights[-1][1]}: " if nights else ""
    hint = f"{running}wait until it ends, or stop it with `kill`; what it measured is kept"
    with hold(folder / LOCK, str(folder), NightRunningError, hint):
        yield


def started(reports: Path) -> list[tuple[datetime, str]]:
    """Return (time in UTC, run) of each night that has started, however it ended, oldest first."""
    runs = map(_RUN.fullmatch, night_names(reports))
    times = ((datetime.strptime(match[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC), match[0]) for match in runs if match)
    return sorted(times)


def missed(reports: Path, at: tuple[int, int], now: datetime) -> tuple[bool, str]:
    """Return whether the night of a time of day was missed, and why not, as a sentence.

    It was missed if no night has started since that time of day was last. Without any night before, none was missed:
    so a schedule that is new does not start by day (``Persistent=true`` of systemd.timer is the same). Nights that are
    named after a time in the future say nothing.

    Args:
        reports: the folder that holds the runs.
        at: hour and minute, in the time zone of ``now``.
        now: with a time zone.
    """
    nights = started(reports)
    if not nights:
        return False, f"{reports} has no night yet, so none was missed"
    due = now.replace(hour=at[0], minute=at[1], second=0, microsecond=0)
    due -= timedelta(days=1) if due > now else timedelta()
    newest, run = max((night for night in nights if not is_ahead(night[1], now)), default=nights[0])
    if due <= newest <= now + CLOCK_ERROR:
        return False, f"night {run} has started since {due:%H:%M}: none was missed"
    return True, ""
