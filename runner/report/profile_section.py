"""The profiles of a run side by side: which operators a slower release spends its time in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from runner.analysis.profile_changes import (
    CLOCKS,
    LEFT_OUT,
    OUTSIDE,
    Clock,
    ComparedOperator,
    OperatorChanges,
    OperatorTime,
    compare_profiles,
)
from runner.analysis.releases import EnvironmentRelease
from runner.core import units
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.core.model.cells import is_control, twin
from runner.core.model.profiles import StepProfile
from runner.core.units import TimeUnit
from runner.report import formatting
from runner.report.answer import name
from runner.report.compared_rows import ComparedRow

SHOWN_OPERATORS = 15
"""Operators of a table: those whose time changes the most."""
SHOWN_PAIRS = 3
"""Pairs that the page shows at once; more are folded."""
MAX_PAIRS = 40
"""Pairs of a page: those of the largest changes."""
MAX_SLOWDOWN = 2.0
DISTURBED = "The profiler, or another program, took most of it: trust the numbers of calls more than the times"
CLOCK_TITLES: Mapping[Clock, str] = {"device": "time on the GPU", "host": "time on the CPU"}
INTRODUCTION = (
    "Where the time of a step goes, by the profiler of each framework: times of one step, without the operators that "
    "an operator calls. The largest difference comes first, and is also shown as a share of the first release's step. "
    "A profile gives a difference its name; how large it is, the timed rounds say. A profiler slows down what it "
    "watches, the more the shorter the operators are. Profiles are taken after the rounds, in processes of their own. "
    "An operator that only one side has may be the work of another name on the other side."
)
"""What a profile can say, and what it cannot."""
ONE_PROCESS = "Each profile is of one process, and nothing shows by how much it differs from one of another process"
OF_TWIN = (
    "{} has a second profile, of another process: rows whose difference is no larger than between these two are grey, "
    "and marked in Markdown"
)
Noise = Mapping[tuple[Clock, str], float]
"""(clock, operator) -> by how many seconds a step of it differs between two processes of the same cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """An operator as text: its calls and times in one step of each side, and the change; a dash where it is missing.

    ``is_noise`` says that two processes of the same release differ in it by as much.
    """

    name: str
    calls: str
    base: str
    other: str
    change: str
    share: str
    is_operator: bool = True
    is_noise: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTable:
    """The operators of two profiles by one clock.

    Attributes:
        title: which clock.
        rows: those with the largest changes; ``rest``: all others together, None without others; ``total``: their sum.
    """

    title: str
    rows: tuple[OperatorRow, ...]
    rest: OperatorRow | None
    total: OperatorRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledPair:
    """The profiles of the two cells of a comparison.

    Attributes:
        compared: the comparison.
        base: name of the base's release; ``other`` the other's.
        base_steps: how the base's profile was taken, as a sentence; ``other_steps`` the other's.
        noise: how much a profile differs from itself, as a sentence.
        tables: by clock.
        largest: the operator with the largest difference, as a clause; empty if that is none.
    """

    compared: ComparedRow
    base: str
    other: str
    base_steps: str
    other_steps: str
    noise: str
    tables: tuple[OperatorTable, ...]
    largest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """What a report shows of the profiles of a run.

    Attributes:
        pairs: the largest changes first, at most MAX_PAIRS; ``left_out``: how many more have two profiles.
        missing: a sentence for each reason why cells have no profile, and for each damaged file.
    """

    pairs: tuple[ProfiledPair, ...]
    left_out: int
    missing: tuple[str, ...]


def arrange_profiles(
    profiles: Mapping[str, StepProfile],
    rows: Iterable[ComparedRow],
    names: Mapping[str, EnvironmentRelease],
    damaged: Sequence[str] = (),
) -> Profiles | None:
    """Return what a report shows of profiles; None if the run has none.

    Args:
        profiles: cell id -> its profile, see ``runner.store.profile_files``.
        rows: the comparisons of the report, the largest change first.
        names: environment -> its release.
        damaged: a sentence for each profile that cannot be read.
    """
    if not profiles and not damaged:
        return None
    pairs = []
    for compared in rows:
        base, other = (profiles.get(cell.id) for cell in (compared.row.base, compared.row.other))
        changes = compare_profiles(base, other)
        if base and other and changes:
            pairs.append((compared, base, other, changes))
    return Profiles(
        pairs=tuple(_pair(*each, names, profiles) for each in pairs[:MAX_PAIRS]),
        left_out=max(0, len(pairs) - MAX_PAIRS),
        missing=(*_missing(profiles, names), *damaged),
    )


def _pair(
    compared: ComparedRow,
    base: StepProfile,
    other: StepProfile,
    changes: Sequence[OperatorChanges],
    names: Mapping[str, EnvironmentRelease],
    profiles: Mapping[str, StepProfile],
) -> ProfiledPair:
    base_name, other_name = (name(cell.environment, names) for cell in (compared.row.base, compared.row.other))
    by_clock = {each.clock: each for each in changes}
    noise, of_twin = _noise(compared, profiles)
    tables = tuple(_table(by_clock[clock], noise) for clock in CLOCKS if clock in by_clock)
    first = next((row for row in tables[0].rows if row.is_operator and not row.is_noise), None)
    return ProfiledPair(
        compared=compared,
        base=base_name,
        other=other_name,
        base_steps=_steps(base_name, base, compared.row.base_seconds),
        other_steps=_steps(other_name, other, compared.row.seconds),
        noise=OF_TWIN.format(name(of_twin.environment, names)) if of_twin else ONE_PROCESS,
        tables=tables,
        largest=f"{first.name} {first.change}" if first else "",
    )


def _steps(release: str, profile: StepProfile, timed: float | None) -> str:
    """Return how a profile was taken, and what its profiler costs."""
    watched, plain = profile.step_seconds, profile.plain_step_seconds
    unit = units.time_unit([plain, watched, timed])
    times = [f"{units.step_time(watched, unit)} with the profiler", f"{units.step_time(plain, unit)} without it"]
    times += [f"{units.step_time(timed, unit)} in the timed rounds"] if timed else []
    count = formatting.counted(profile.steps, "step")
    text = f"{release}: {profile.profiler}, {count}; a step took {', '.join(times[:-1])} and {times[-1]}"
    return f"{text}. {DISTURBED}" if watched > MAX_SLOWDOWN * min(plain, timed or plain) else text


def _noise(compared: ComparedRow, profiles: Mapping[str, StepProfile]) -> tuple[Noise, Cell | None]:
    """Return how much the profile of a side differs from that of its twin, and that side; None without a twin."""
    for side in (compared.row.base, compared.row.other):
        changes = compare_profiles(profiles.get(side.id), profiles.get(twin(side).id))
        if changes:
            return {
                (of_clock.clock, operator.name): abs(operator.change)
                for of_clock in changes
                for operator in of_clock.operators
            }, side
    return MappingProxyType({}), None


def _table(changes: OperatorChanges, noise: Noise) -> OperatorTable:
    shown = changes.operators[:SHOWN_OPERATORS]
    rest = changes.operators[SHOWN_OPERATORS:]
    largest = max(changes.base_seconds, changes.other_seconds)
    unit = units.time_unit([largest / 20])  # one for all rows, in which those that matter have digits
    others = None
    if rest:
        base = sum(each.base.seconds for each in rest if each.base)
        other = sum(each.other.seconds for each in rest if each.other)
        others = _sum_row(f"{len(rest)} others together", base, other, changes, unit)
    return OperatorTable(
        title=CLOCK_TITLES[changes.clock],
        rows=tuple(
            replace(
                _row(each, changes, unit),
                is_noise=abs(each.change) <= noise.get((changes.clock, each.name), -1.0),
            )
            for each in shown
        ),
        rest=others,
        total=_sum_row("sum", changes.base_seconds, changes.other_seconds, changes, unit),
    )


def _row(operator: ComparedOperator, changes: OperatorChanges, unit: TimeUnit) -> OperatorRow:
    sides = (operator.base, operator.other)
    times = [_time(side.seconds, unit) if side else formatting.DASH for side in sides]
    calls = [f"{side.calls:.4g}" if side and side.calls else formatting.DASH for side in sides]
    return OperatorRow(
        name=operator.name,
        calls=calls[0] if calls[0] == calls[1] else f"{calls[0]} → {calls[1]}",
        base=times[0],
        other=times[1],
        change=_signed(operator.change, unit),
        share=f"{100 * changes.share(operator):+z.1f} %",
        is_operator=operator.name not in (OUTSIDE, LEFT_OUT),
    )


def _sum_row(title: str, base: float, other: float, changes: OperatorChanges, unit: TimeUnit) -> OperatorRow:
    """Return the row of several operators together."""
    together = ComparedOperator(title, OperatorTime(0.0, base), OperatorTime(0.0, other))
    return replace(_row(together, changes, unit), calls="", is_operator=False)


def _time(seconds: float, unit: TimeUnit) -> str:
    return f"{seconds * unit.scale:,.2f} {unit.name}"


def _signed(seconds: float, unit: TimeUnit) -> str:
    return f"{seconds * unit.scale:+z,.2f} {unit.name}"


def _missing(profiles: Mapping[str, StepProfile], names: Mapping[str, EnvironmentRelease]) -> list[str]:
    """Return a sentence for each reason why cells of a release have no profile."""
    cells = grouped(
        ((name(Cell.parse(cell_id).environment, names), profile.reason), cell_id)
        for cell_id, profile in profiles.items()
        if not profile.rows and not is_control(Cell.parse(cell_id).environment)
    )
    return [
        f"{release}: no profile of {formatting.counted(len(ids), 'test')}: {reason}"
        for (release, reason), ids in cells.items()
    ]
