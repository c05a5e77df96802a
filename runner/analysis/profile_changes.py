"""Compares the profiles of two cells operator by operator: what takes longer, by its name.

A profile has the self times of operators in one step: what an operator takes without those that it calls. On a GPU host
and device work at the same time, so that their times are compared apart and never added.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from runner.core.model.profiles import FurtherOperators, ProfiledOperator, StepProfile

Clock = Literal["device", "host"]
CLOCKS: tuple[Clock, ...] = ("device", "host")
OUTSIDE = "outside of operators"
"""The row of what no operator takes: Python, and the framework between operators."""
LEFT_OUT = "all further operators"

_SUFFIX = re.compile(r"(?<=Backward)[0-9]+$")


class OperatorTime(NamedTuple):
    """What the calls of an operator take in one step: their number, and their self time in seconds."""

    calls: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ComparedOperator:
    """An operator of either profile; a side that lacks it is None.

    >>> ComparedOperator("mm", OperatorTime(1.0, 2.0), None).change
    -2.0
    """

    name: str
    base: OperatorTime | None
    other: OperatorTime | None

    @property
    def change(self) -> float:
        """Its seconds per step in the other profile, less those in the base's."""
        return (self.other.seconds if self.other else 0.0) - (self.base.seconds if self.base else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChanges:
    """The operators of two profiles by one clock.

    Attributes:
        clock: where the time passes: on the device, or on the host.
        operators: of either profile, the largest change first.
        base_seconds: of all operators of the base in one step; ``other_seconds`` of the other.
    """

    clock: Clock
    operators: tuple[ComparedOperator, ...]
    base_seconds: float
    other_seconds: float

    def share(self, operator: ComparedOperator) -> float:
        """Return the change of an operator as a share of the base's seconds."""
        return operator.change / self.base_seconds if self.base_seconds else 0.0


def canonical(name: str) -> str:
    """Return the name by which operators of two releases are matched.

    PyTorch has named its operators ``aten::add`` since 1.7, before that ``add``, and numbered its backward functions
    since 1.10, one after the other where several overloads have one.

    >>> canonical("aten::add_"), canonical("AddmmBackward0"), canonical("Optimizer.step#SGD.step")
    ('add_', 'AddmmBackward', 'Optimizer.step#SGD.step')
    """
    return _SUFFIX.sub("", name.removeprefix("aten::"))


def compare_profiles(base: StepProfile | None, other: StepProfile | None) -> tuple[OperatorChanges, ...]:
    """Return the changes by each clock that has times in both profiles; none if one of the profiles has no rows.

    Args:
        base: a profile; None without one.
        other: that of the other cell.
    """
    if base is None or other is None or not base.rows or not other.rows:
        return ()
    return tuple(
        _changes(clock, base, other) for clock in CLOCKS if _has_times(base, clock) and _has_times(other, clock)
    )


def _has_times(profile: StepProfile, clock: Clock) -> bool:
    return any(_seconds(row, clock) > 0 for row in profile.rows)


def _seconds(row: ProfiledOperator | FurtherOperators, clock: Clock) -> float:
    return row.device_seconds if clock == "device" else row.host_seconds


def _changes(clock: Clock, base: StepProfile, other: StepProfile) -> OperatorChanges:
    base_times, other_times = _times(base, clock), _times(other, clock)
    operators = [
        ComparedOperator(name, base_times.get(name), other_times.get(name)) for name in base_times | other_times
    ]
    return OperatorChanges(
        clock=clock,
        operators=tuple(sorted(operators, key=lambda operator: (-abs(operator.change), operator.name))),
        base_seconds=sum(time.seconds for time in base_times.values()),
        other_seconds=sum(time.seconds for time in other_times.values()),
    )


def _times(profile: StepProfile, clock: Clock) -> dict[str, OperatorTime]:
    """Return canonical name -> calls and self time, with what is left out, and on the host what no operator takes."""
    times: dict[str, OperatorTime] = {}
    for name, time in _rows(profile, clock):
        calls, seconds = times.get(name, OperatorTime(0.0, 0.0))
        times[name] = OperatorTime(calls + time.calls, seconds + time.seconds)
    outside = profile.step_seconds - sum(time.seconds for time in times.values())
    # Several threads at a time take longer together than the step; and a sum is rounded.
    if clock == "host" and outside > 1e-6 * profile.step_seconds:
        times[OUTSIDE] = OperatorTime(0.0, outside)
    return times


def _rows(profile: StepProfile, clock: Clock) -> Iterator[tuple[str, OperatorTime]]:
    for row in profile.rows:
        if (seconds := _seconds(row, clock)) > 0:
            yield canonical(row.name), OperatorTime(row.calls, seconds)
    if left_out := _seconds(profile.left_out, clock):
        yield LEFT_OUT, OperatorTime(0.0, left_out)
