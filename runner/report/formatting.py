"""Numbers and names as people read them: units are chosen here and nowhere else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from runner.analysis.model import Comparison, GeometricMean, Row
from runner.catalog.cases import CASES, units
from runner.catalog.published import SOURCES

PHASES = ("compile", "compile-warm", "forward", "train", "gradient", "backward-inputs", "backward-weights")


DASH = "\N{EN DASH}"
FIRST_FACTS = ("framework", "release", "version", "python", "backend", "digest", "libraries", "cuda", "cudnn", "driver")


class Unit(NamedTuple):
    """What a time in seconds is multiplied by, and the name of what comes out."""

    scale: float
    name: str


UNITS = (Unit(1.0, "s"), Unit(1e3, "ms"), Unit(1e6, "µs"), Unit(1e9, "ns"))


def unit(seconds: Iterable[float | None]) -> Unit:
    """Return the unit in which the smallest of some times is at least 1; seconds where there is none."""
    known = [value for value in seconds if value]
    least = min(known, default=1.0)
    return next((one for one in UNITS if least * one.scale >= 1), UNITS[-1])


def number(value: float) -> str:
    """Return a number above 0 with three digits, and all of those before the point: 0.0123, 1.23, 1234."""
    shown = f"{value:#.3g}"
    return f"{value:.0f}" if "e" in shown and value >= 1 else shown.rstrip(".")


def duration(seconds: float | None, scale: Unit | None = None, *, name: bool = True) -> str:
    """Return a time with its unit, ``1.23 ms``; a dash where there is none.

    Args:
        seconds: the time.
        scale: a unit that several times share; the time's own where it is left out.
        name: whether the unit is written.
    """
    if seconds is None:
        return DASH
    chosen = scale or unit([seconds])
    return f"{number(seconds * chosen.scale)} {chosen.name}" if name else number(seconds * chosen.scale)


def quoted(case_id: str, phase: str, seconds: float) -> str:
    """Return a step's time in the unit of its workload's figures, ``301 µs/example``; a dash where it has none."""
    if phase.startswith("compile") or case_id not in CASES:
        return DASH
    value, name = units.quoted(CASES[case_id], seconds)
    return f"{number(value)} {name}"


def spread(seconds: float | None, scale: Unit) -> str:
    """Return a standard deviation with two digits behind its sign, `` ± 0.94``; empty where there is none."""
    return "" if seconds is None else f" ± {seconds * scale.scale:#.2g}".rstrip(".")


def spread_duration(seconds: float | None, deviation: float | None) -> str:
    """Return a time with its standard deviation, where it has one, and its unit: ``31.0 ± 0.94 ms``."""
    scale = unit([seconds])
    return f"{duration(seconds, scale, name=False)}{spread(deviation, scale)} {scale.name}" if seconds else DASH


def ratio(value: float | None) -> str:
    """Return a ratio of times, ``0.776``."""
    return DASH if value is None else f"{value:.3f}" if value < 10 else number(value)


def interval(low: float | None, high: float | None) -> str:
    """Return the ends of an interval of ratios; words where it has none."""
    return DASH if low is None or high is None else f"{ratio(low)} {DASH} {ratio(high)}"


def counted(number: int, thing: str) -> str:
    """Return a number of things: ``1 cell``, ``2 cells``."""
    return f"{number} {thing}{'s' * (number != 1)}"


def sentence(text: str) -> str:
    """Return words as a sentence, with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


MEAN = (
    "the geometric mean is of the ratios of steps of equal implementations, over the rounds that all of them share; "
    "each workload has the same weight, and of other networks it says nothing"
)


def taken_over(one: GeometricMean) -> str:
    """Return what a mean is taken over, ``14 cells in 4 workloads``."""
    return f"{counted(one.cells, 'cell')} in {counted(len(one.workloads), 'workload')}"


def overall(comparison: Comparison) -> list[str]:
    """Return a sentence for each environment that has a mean over its cells."""
    found = []
    for one in comparison.overall:
        ends = interval(one.ratio_low, one.ratio_high)
        said = "no interval from one round" if one.ratio_low is None else f"95 % interval {ends}"
        name = f"{one.environment} against {comparison.base}"
        noise = f"; {one.noise}" if one.noise else ""
        found.append(f"{name}: geometric mean over {taken_over(one)}: {ratio(one.ratio)}, {said}{noise}")
    return found


def phase(name: str, precision: str, precisions: Iterable[str]) -> str:
    """Return a phase, with its precision where there are several."""
    return name if len(set(precisions)) == 1 else f"{name} {precision}"


def phase_key(name: str) -> tuple[int, str]:
    """Return what sorts phases in the order they happen, ``+published`` after the same phase without."""
    plain = name.split("+", maxsplit=1)[0]
    return (PHASES.index(plain) if plain in PHASES else len(PHASES), name)


def partners(row: Row) -> str:
    """Return the implementation of a row, and the base's where it is another one."""
    if row.implementation == row.base_implementation:
        return row.implementation
    return f"{row.implementation} / {row.base_implementation}"


def devices(comparison: Comparison) -> str:
    """Return what a comparison was measured on; where a side was published, which side on which."""
    if not comparison.devices:
        return comparison.device_name or comparison.device
    found: dict[str, list[str]] = {}
    for side, device in comparison.devices.items():
        found.setdefault(device, []).append(side)
    return "; ".join(f"{device}: {', '.join(names)}" for device, names in found.items())


def sources(comparison: Comparison) -> list[str]:
    """Return what a ratio beside a publication is; for each, where it is from, what was timed, what its spread is."""
    if not comparison.figures:
        return []
    found = ["beside a published figure the ratio is the quotient of the two times, and has no interval"]
    for name in dict.fromkeys(figure.source for figure in comparison.figures):
        one = SOURCES[name]
        ends = f"; ± is the {one.spread}" if one.spread else "; no spread was published"
        found.append(f"{name} is {one.citation}: {one.timed}{ends}")
    return found


SETTLED = ("within-margin", "beyond-margin")
"""Codes whose sentence says what the verdict means, and nothing of the row; tables give it once, below."""


def reasons(rows: Sequence[Row]) -> list[tuple[str, str, list[str]]]:
    """Return (verdict, reason, what it holds for) for each distinct reason, in the order of the rows."""
    precisions = {row.precision for row in rows}
    several = len({row.environment for row in rows}) > 1
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.reason and row.code not in SETTLED:
            label = f"{partners(row)} {phase(row.phase, row.precision, precisions)}"
            label = f"{row.environment} {label}" if several else label
            found.setdefault((row.verdict, row.reason), []).append(label)
    return [(verdict, reason, labels) for (verdict, reason), labels in found.items()]


def by_case(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each case, in their order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.case_id, []).append(row)
    return found


def error(value: float | None) -> str:
    """Return a relative error, ``3.1e-07``."""
    return DASH if value is None else f"{value:.1e}"


def few(items: Sequence[str], most: int = 4) -> str:
    """Return some items in a line, and how many more there are."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")


def date(run: str) -> str:
    """Return the time in a run's id, ``2026-11-20 10:45 UTC``; empty where the id has none."""
    day, _, clock = run[:15].partition("-")
    if not (day.isdigit() and clock.isdigit() and len(day) == 8 and len(clock) == 6):
        return ""
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {clock[:2]}:{clock[2:4]} UTC"


def facts(known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give facts as text, those people look for first; nested ones as a list in a line."""
    names = [name for name in FIRST_FACTS if name in known] + sorted(set(known) - {*FIRST_FACTS, "version"})
    for name in names:
        value = known[name]
        if value in (None, "", [], {}) or (name == "version" and isinstance(value, int)):
            continue
        yield name.removesuffix("_bytes").replace("_", " "), _text(name, value)


def _text(name: str, value: object) -> str:
    if name.endswith("bytes") and isinstance(value, int):
        return f"{value / 2**30:.1f} GiB"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text('', item)}" for key, item in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return ", ".join(_text("", item) for item in value)
    return str(value)
