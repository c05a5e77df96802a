"""The last nights of each device, for the top of the site: the newest in words, and all of them as a strip."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from runner.core.grouping import grouped
from runner.core.metrics import BETTER
from runner.history.entries import ChangeEntry, RunRow, series_device
from runner.report.formatting import counted
from runner.report.trends import device_title, instant

MAX_NIGHTS = 60
"""Nights of a strip."""


class ShownNight(NamedTuple):
    """A night.

    Attributes:
        text: when it was, how many tests it measured, and what changed.
        has_regressions: whether it confirmed one; not whether an earlier one still stands.
        page: that of its run; empty without one.
    """

    text: str
    has_regressions: bool
    page: str


class LastNights(NamedTuple):
    """The newest nights of a device, oldest first, at least one."""

    device: str
    nights: tuple[ShownNight, ...]

    @property
    def last(self) -> ShownNight:
        """The newest night."""
        return self.nights[-1]


def last_nights(
    rows: Iterable[RunRow], stored: Collection[str], changes_of: Callable[[str], Iterable[ChangeEntry]]
) -> list[LastNights]:
    """Return the newest nights of each device and host, by their names.

    Args:
        rows: runs of the history; those that are no nights do not count.
        stored: the runs that have a page.
        changes_of: returns the changes of a night.
    """
    nights = sorted((row for row in rows if row.is_night), key=lambda row: instant(row.at))
    by_device = grouped((device_title(series_device(row.backend, row.device_name), row.host), row) for row in nights)
    return [
        LastNights(device, tuple(_shown(row, stored, changes_of) for row in of_device[-MAX_NIGHTS:]))
        for device, of_device in sorted(by_device.items())
    ]


def _shown(row: RunRow, stored: Collection[str], changes_of: Callable[[str], Iterable[ChangeEntry]]) -> ShownNight:
    changes = tuple(changes_of(row.run)) if row.changes else ()
    regressions = {change.series for change in changes if change.confirmed_in == row.run}
    improvements = {change.series for change in changes if change.verdict in BETTER} - regressions
    changed = _changed(len(regressions), len(improvements))
    text = f"{instant(row.at):%Y-%m-%d %H:%M}: {counted(row.cells, 'test')}, {changed}"
    return ShownNight(text, bool(regressions), f"runs/{row.run}/index.html" if row.run in stored else "")


def _changed(regressions: int, improvements: int) -> str:
    """Return what a night says of changes: regressions that it confirmed, improvements that it measured alternately.

    >>> _changed(0, 0), _changed(1, 2), _changed(0, 1)
    ('no confirmed change', '1 regression confirmed, 2 improvements', 'no regression confirmed, 1 improvement')
    """
    if not improvements:
        return f"{counted(regressions, 'regression')} confirmed" if regressions else "no confirmed change"
    confirmed = counted(regressions, "regression") if regressions else "no regression"
    return f"{confirmed} confirmed, {counted(improvements, 'improvement')}"
