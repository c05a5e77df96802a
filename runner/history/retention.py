"""Which runs `runner history prune` removes: all nights of three months stay, then one a week."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from runner.history.entries import RunRow, series_device

DAYS = 90
"""Days of which every run stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What stays.

    Attributes:
        now: the time from which the days are counted, with an offset.
        days: every run of so many days stays; of each week before, the newest of each kind, device and host.
        keep: ids of runs that stay anyway, such as anchors.
        dry_run: only say what would be removed.
    """

    now: datetime
    days: int = DAYS
    keep: frozenset[str] = frozenset()
    dry_run: bool = False


class Pruned(NamedTuple):
    """The runs that were, or would be, removed, oldest first; and how many stay."""

    removed: tuple[RunRow, ...]
    kept: int


def removable(runs: Iterable[RunRow], policy: Policy, keep: Collection[str]) -> tuple[RunRow, ...]:
    """Return the runs that a policy removes, oldest first; imports stay, for no run folder has their source.

    Args:
        runs: all runs.
        policy: what stays.
        keep: ids of further runs that stay: accepted ones, and those of confirmed regressions.
    """
    limit = f"{policy.now.astimezone(UTC) - timedelta(days=policy.days):%Y-%m-%dT%H:%M:%SZ}"
    weeks: set[tuple[object, ...]] = set()
    removed = []
    for run in sorted(runs, key=lambda run: (run.at, run.run), reverse=True):
        if run.at >= limit or run.kind == "import":
            continue
        week = datetime.fromisoformat(run.at).isocalendar()[:2]
        key = (week, run.kind, series_device(run.backend, run.device_name), run.host)
        if key in weeks and run.run not in policy.keep and run.run not in keep:
            removed.append(run)
        weeks.add(key)
    return tuple(reversed(removed))
