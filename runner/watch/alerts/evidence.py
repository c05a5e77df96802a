"""What is known about an alert: the changes since each earlier run, largest first, and what differs between the two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.core.text import printable
from runner.report import formatting
from runner.watch.alerts.actions import with_interval
from runner.watch.alerts.stored import differences, in_turns

VALUE_LENGTH = 60  # characters of a value of a fact; an environment reports it
RELEVANT = ("framework", "speed")
"""Kinds of differences that times may depend on; see ``runner.analysis.comparison_model.Difference``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Cells that became slower between the same two states of an environment.

    Attributes:
        before: the earlier run.
        against: what that is for the cells, as ``Change.against``.
        changes: as stored, the largest ratio first.
        facts: (name, value in the earlier run, value now) that times may depend on, the framework first.
        packages: names of the packages and settings that differ besides.
        release_before: the framework's release in the earlier run, ``release`` in the later one; empty if they are not
            known or equal.
    """

    before: str
    against: str
    changes: tuple[Mapping[str, Any], ...]
    facts: tuple[tuple[str, str, str], ...]
    packages: tuple[str, ...]
    release_before: str = ""
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """An alert with what its nights measured; all text is printable.

    Attributes:
        key, environment: of the alert.
        device: name of the device; ``backend`` its backend.
        night: the night that opened it.
        steps: those with the largest change first.
    """

    key: str
    environment: str
    device: str
    backend: str
    night: str
    steps: tuple[Step, ...]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return sum(len(step.changes) for step in self.steps)

    @property
    def largest(self) -> Mapping[str, Any]:
        """The change with the largest ratio."""
        return self.steps[0].changes[0]


def evidence(
    key: str, environment: str, cells: Mapping[str, str], nights: Mapping[str, Mapping[str, Any]]
) -> Evidence | None:
    """Return what is known about an alert; None if its nights are gone.

    Args:
        key: of the alert.
        environment: that became slower.
        cells: id of a cell -> the night that reported it.
        nights: id -> a stored night.
    """
    changes: dict[str, list[Mapping[str, Any]]] = {}
    for cell, night in cells.items():
        change = in_turns(nights, night, cell)
        if change:
            changes.setdefault(change["before"], []).append({**change, "night": night})
    steps = [_step(environment, before, of_run, nights) for before, of_run in changes.items()]
    steps.sort(key=lambda step: -ratio_of(step.changes[0]))
    opened = min(cells.values(), default="")
    if not steps or opened not in nights:
        return None
    return Evidence(
        key=printable(key),
        environment=printable(environment),
        device=printable(nights[opened]["device_name"], VALUE_LENGTH),
        backend=printable(nights[opened]["backend"], VALUE_LENGTH),
        night=opened,
        steps=tuple(steps),
    )


def _step(
    environment: str, before: str, changes: Sequence[Mapping[str, Any]], nights: Mapping[str, Mapping[str, Any]]
) -> Step:
    ordered = sorted(changes, key=lambda change: -ratio_of(change))
    reported = {str(name): None for change in ordered for name in (change["night"], change["confirmed_in"])}
    different = next(filter(None, (differences(nights, name, environment, before) for name in reported)), [])
    relevant = [each for each in different if each.get("kind", "speed") in RELEVANT]
    framework = next((each for each in relevant if each.get("kind") == "framework"), {})
    return Step(
        before=printable(before),
        against=ordered[0].get("against", "baseline"),
        changes=tuple(ordered),
        facts=tuple((_text(each["name"]), _text(each["base"]), _text(each["other"])) for each in relevant),
        packages=tuple(_text(each["name"]) for each in different if each.get("kind") in ("package", "alone")),
        release_before=_text(framework.get("base") or ""),
        release=_text(framework.get("other") or ""),
    )


def _text(value: str | None) -> str:
    return printable(value or formatting.DASH, VALUE_LENGTH) if value != "" else ""


def ratio_of(change: Mapping[str, Any]) -> float:
    """Return the ratio of a change: in turns if it was measured so; 1 if there is none."""
    return float((change["again"] or change).get("ratio") or 1.0)


def ratio_text(change: Mapping[str, Any]) -> str:
    """Return the ratio of a change with its interval, and how it was measured."""
    again = change["again"]
    if again is None:
        return f"{with_interval(change)} between the runs"
    return f"{with_interval(again)} in turns, {formatting.counted(again.get('rounds', 0), 'round')}"


def name_of(change: Mapping[str, Any]) -> str:
    """Return the name of a cell without its environment."""
    return printable(change["cell"].partition("/")[2], 200)
