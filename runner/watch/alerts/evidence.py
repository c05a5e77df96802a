"""What is known about an alert: the changes since each earlier run, largest first, and what differs between the two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.core.text import printable
from runner.nights.night import Against, NightChange, NightDifference
from runner.report import formatting
from runner.watch.alerts.actions import with_interval
from runner.watch.alerts.state import Nights, reported

VALUE_LENGTH = 60  # characters of a value of a fact; an environment reports it
RELEVANT = ("framework", "speed")
"""Kinds of differences that times may depend on; see ``runner.analysis.comparison_model.Difference``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStep:
    """Cells that became slower between the same two states of an environment.

    Attributes:
        before: the earlier run.
        against: what that is for the cells.
        changes: the largest ratio first.
        facts: (name, value in the earlier run, value now) that times may depend on, the framework first.
        packages: names of the packages and settings that differ besides.
        release_before: the framework's release in the earlier run, ``release`` in the later one; empty if they are not
            known or equal.
    """

    before: str
    against: Against
    changes: tuple[NightChange, ...]
    facts: tuple[tuple[str, str, str], ...]
    packages: tuple[str, ...]
    release_before: str = ""
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEvidence:
    """An alert with what its nights measured; all text is printable, but for the ids of cells.

    Attributes:
        key, environment: of the alert.
        device: name of the device; ``backend`` its backend.
        night: the night that opened it.
        reported_in: id of a cell -> the night that reported it.
        steps: those with the largest change first.
    """

    key: str
    environment: str
    device: str
    backend: str
    night: str
    reported_in: Mapping[str, str]
    steps: tuple[SlowStep, ...]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return sum(len(step.changes) for step in self.steps)

    @property
    def largest(self) -> NightChange:
        """The change with the largest ratio."""
        return self.steps[0].changes[0]


def evidence(key: str, environment: str, cells: Mapping[str, str], nights: Nights) -> AlertEvidence | None:
    """Return what is known about an alert; None if its nights are gone.

    Args:
        key: of the alert.
        environment: that became slower.
        cells: id of a cell -> the night that reported it.
        nights: all nights.
    """
    by_run: dict[str, list[NightChange]] = {}
    for cell, night in cells.items():
        if change := reported(nights, night, cell):
            by_run.setdefault(change.before, []).append(change)
    steps = [_step(environment, changes, cells, nights) for changes in by_run.values()]
    steps.sort(key=lambda step: -ratio_of(step.changes[0]))
    opened = min(cells.values(), default="")
    if not steps or opened not in nights:
        return None
    return AlertEvidence(
        key=printable(key),
        environment=printable(environment),
        device=printable(nights[opened].device_name, VALUE_LENGTH),
        backend=printable(nights[opened].backend, VALUE_LENGTH),
        night=opened,
        reported_in=cells,
        steps=tuple(steps),
    )


def _step(environment: str, changes: Sequence[NightChange], cells: Mapping[str, str], nights: Nights) -> SlowStep:
    """Return the step of changes since the same earlier run."""
    ordered = sorted(changes, key=lambda change: -ratio_of(change))
    before = ordered[0].before
    reporting = dict.fromkeys(name for change in ordered for name in (cells[change.cell], change.confirmed_in))
    different = next(filter(None, (_differences(nights, name, environment, before) for name in reporting)), ())
    relevant = [each for each in different if each.kind in RELEVANT]
    framework = next((each for each in relevant if each.kind == "framework"), None)
    return SlowStep(
        before=printable(before),
        against=ordered[0].against,
        changes=tuple(ordered),
        facts=tuple((_text(each.name), _text(each.base), _text(each.other)) for each in relevant),
        packages=tuple(_text(each.name) for each in different if each.kind in ("package", "alone")),
        release_before=_text(framework.base or "") if framework else "",
        release=_text(framework.other or "") if framework else "",
    )


def _differences(nights: Nights, run: str, environment: str, before: str) -> tuple[NightDifference, ...]:
    """Return what differs between an environment in a night and in an earlier run; empty if it was not measured."""
    pairs = nights[run].pairs if run in nights else ()
    return next((pair.differences for pair in pairs if pair.base == f"{environment}@{before}"), ())


def _text(value: str | None) -> str:
    return printable(value or formatting.DASH, VALUE_LENGTH) if value != "" else ""


def ratio_of(change: NightChange) -> float:
    """Return the ratio of a change: in turns if it was measured so; 1 if there is none."""
    return change.in_turns.ratio or 1.0


def ratio_text(change: NightChange) -> str:
    """Return the ratio of a change with its interval, and how it was measured."""
    if change.again is None:
        return f"{with_interval(change)} between the runs"
    return f"{with_interval(change.again)} in turns, {formatting.counted(change.again.rounds, 'round')}"


def name_of(change: NightChange) -> str:
    """Return the name of a cell without its environment."""
    return printable(change.cell.partition("/")[2], 200)
