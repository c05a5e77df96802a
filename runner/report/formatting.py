"""Text for people: numbers, names and sentences in the form that every output shares.

Units are chosen in ``runner/core/units.py``; here a value that is missing becomes a dash.
"""

import functools
import html
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.analysis.compare.kinds import by_kind
from runner.analysis.model import Comparison, Dataset, GeometricMean, Row
from runner.analysis.releases import framework_name
from runner.catalog.cases import CASES, in_published_unit, is_network_of_user
from runner.catalog.published import SOURCES
from runner.core import units
from runner.core.text import printable
from runner.core.units import TimeUnit

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

PHASES = ("compile", "compile-warm", "forward", "train", "gradient", "backward-inputs", "backward-weights")
DASH = "\N{EN DASH}"
FIRST_FACTS = ("framework", "release", "version", "python", "backend", "digest", "libraries", "cuda", "cudnn", "driver")
STATE_STYLES = {
    "ok": "green",
    "good": "green",
    "warning": "yellow",
    "noisy": "yellow",
    "fair": "yellow",
    "missing": "red",
    "FAILED": "red",
    "poor": "red",
}
"""State, grade or result of a check -> its colour in a terminal; others have none."""
MIN_FOLDED_WIDTH = 40
"""Columns that a folded last column has at least; with less room it stands below the others."""
SELF_EXPLANATORY = ("within-margin", "beyond-margin", "beyond-one")
"""Codes whose reason only repeats what the verdict means; tables explain it once, in their legend."""


@functools.cache
def _console_class() -> "type[Console]":
    """Return Rich's console with every character visible that is in what it prints; colours are no part of that."""
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(self, renderable: "RenderableType", options: "ConsoleOptions | None" = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text
                safe = text if segment.control or text.isprintable() else printable(text, multiline=True)
                yield segment if safe is text else Segment(safe, segment.style)

    return VisibleConsole


def as_text(parts: Iterable["RenderableType"], width: int, *, colour: bool = False) -> str:
    """Return what Rich prints, as lines without trailing spaces.

    Args:
        parts: a ``str`` is never wrapped, anything else fits ``width``.
        width: columns.
        colour: whether the lines have ANSI colours.
    """
    stream = io.StringIO()
    console = _console_class()(
        file=stream,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
    )
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def escape(text: str) -> str:
    """Return text for HTML and SVG, also between quotation marks, every character visible: XML allows no others."""
    return html.escape(printable(text))


def columns(rows: Sequence[Sequence[str]], width: int) -> str:
    """Return rows as aligned columns; the last one is folded to the width, below the others if that is narrow."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for _ in rows[0][:-1]:
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    others = sum(max(map(len, column)) + 2 for column in list(zip(*rows, strict=True))[:-1])
    if width - others >= min(MIN_FOLDED_WIDTH, max(len(row[-1]) for row in rows)):
        return as_text([table], width)
    parts: list[RenderableType] = []
    for *row, last in rows:
        parts += [Text("  ".join(row)), Padding(Text(last), (0, 0, 0, 4))]
    return as_text(parts, width)


def step_time(seconds: float | None, unit: TimeUnit | None = None) -> str:
    """Return the time of a step with its unit, ``1.23 ms``, or a dash."""
    return DASH if seconds is None else units.step_time(seconds, unit)


def without_unit(seconds: float | None, unit: TimeUnit) -> str:
    """Return the time of a step for a column whose head has the unit, ``1.23``, or a dash."""
    return DASH if seconds is None else units.digits(seconds * unit.scale)


def in_workload_unit(case_id: str, phase: str, seconds: float) -> str:
    """Return the time of a step in the unit in which its workload is published, ``301 µs/example``, or a dash.

    That of a user's network is in ms/step.
    """
    if phase.startswith("compile"):
        return DASH
    if is_network_of_user(case_id):
        return f"{units.digits(seconds * 1e3)} ms/step"
    if case_id not in CASES:
        return DASH
    value, name = in_published_unit(CASES[case_id], seconds)
    return f"{units.digits(value)} {name}"


def spread(seconds: float | None, unit: TimeUnit) -> str:
    """Return a standard deviation with two digits, `` ± 0.94``; empty if there is none."""
    return "" if seconds is None else f" ± {seconds * unit.scale:#.2g}".rstrip(".")


def time_with_spread(seconds: float | None, deviation: float | None) -> str:
    """Return the time of a step, its standard deviation if there is one, and its unit: ``31.0 ± 0.94 ms``."""
    unit = units.time_unit([seconds])
    return f"{without_unit(seconds, unit)}{spread(deviation, unit)} {unit.name}" if seconds else DASH


def ratio(value: float | None) -> str:
    """Return a ratio of times, ``0.776``, or a dash."""
    return DASH if value is None else f"{value:.3f}" if value < 10 else units.digits(value)


def interval(low: float | None, high: float | None) -> str:
    """Return the ends of an interval of ratios, or a dash."""
    return DASH if low is None or high is None else f"{ratio(low)} {DASH} {ratio(high)}"


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 cell``, ``2 cells``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def sentence(text: str) -> str:
    """Return text as a sentence, with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


MEAN = (
    "an average is the geometric mean over the tests that both releases ran, every workload counted once; it says "
    "nothing about other networks"
)


def mean_scope(mean: GeometricMean) -> str:
    """Return what a mean covers, ``14 cells in 4 workloads``."""
    return f"{counted(mean.cells, 'cell')} in {counted(len(mean.workloads), 'workload')}"


def widening_sentences(comparisons: Iterable[Comparison]) -> list[str]:
    """Return a sentence for each run whose intervals are widened, once for all comparisons."""
    factors: dict[tuple[str, str], list[float]] = {}
    for widening in (each for comparison in comparisons for each in comparison.widenings):
        factors.setdefault((widening.run, widening.reason), []).extend((widening.smallest, widening.largest))
    sentences = []
    for (run, reason), of_run in factors.items():
        smallest, largest = f"{min(of_run):.1f}", f"{max(of_run):.1f}"
        factor = smallest if smallest == largest else f"{smallest} to {largest}"
        sentences.append(f"the intervals of run {run} are {factor} times as wide: {reason}")
    return sentences


def passed_over_sentence(comparison: Comparison) -> str:
    """Return which newer run is not compared and why, and how many more there are; empty if there is none."""
    if not comparison.passed_over:
        return ""
    newest, *others = dict.fromkeys(each.run for each in comparison.passed_over)
    reasons = "; ".join(each.reason for each in comparison.passed_over if each.run == newest)
    rest = f"; nor {'is' if len(others) == 1 else 'are'} {counted(len(others), 'other newer run')}" if others else ""
    return f"run {newest} is newer and is not compared: {reasons}{rest}"


def detectable_sentence(comparison: Comparison) -> str:
    """Return which changes a comparison can call, ``with 3 rounds and this noise, changes above about 9.2 % ...``.

    It is empty if no noise is known.
    """
    if comparison.detectable_change is None:
        return ""
    low, high = comparison.detectable_rounds[0], comparison.detectable_rounds[-1]
    rounds = counted(high, "round") if low == high else f"{low} to {high} rounds"
    percent = 100 * comparison.detectable_change
    size = f"above about {percent:.{1 if percent < 10 else 0}f} %"
    if percent >= 100:
        size = f"above about a factor of {1 + comparison.detectable_change:.2g}"
    return f"with {rounds} and this noise, changes {size} can be called in 8 of 10 runs"


def detectable_sentences(comparisons: Iterable[Comparison]) -> list[str]:
    """Return ``detectable_texts`` as sentences."""
    return list(map(sentence, detectable_texts(comparisons)))


def detectable_texts(comparisons: Iterable[Comparison]) -> list[str]:
    """Return ``detectable_sentence`` of each comparison and kind of device, with their names if there are several."""
    of_kinds = [each for comparison in comparisons for each in by_kind(comparison)]
    sentences = [(each, text) for each in of_kinds if (text := detectable_sentence(each))]
    if len(sentences) == 1:
        return [sentences[0][1]]
    several = len({each.device_name for each, _ in sentences}) > 1
    return [f"{_base_name(each)}{f' on {each.device_name}' if several else ''}: {text}" for each, text in sentences]


def _base_name(comparison: Comparison) -> str:
    """Return the name of a comparison's framework, or the id of its base if its release is not known."""
    release = comparison.releases.get(comparison.base)
    return framework_name(release.framework) if release and release.framework else f"against {comparison.base}"


def phase_label(phase: str, precision: str, precisions: Iterable[str]) -> str:
    """Return a phase, with its precision if the case has several."""
    return phase if len(set(precisions)) == 1 else f"{phase} {precision}"


def phase_key(phase: str) -> tuple[int, str]:
    """Return a sort key: phases in the order they happen, ``+published`` after the same phase without."""
    plain = phase.split("+", maxsplit=1)[0]
    return (PHASES.index(plain) if plain in PHASES else len(PHASES), phase)


def environment_order(dataset: Dataset) -> Mapping[str, int]:
    """Return environment -> its position in the plan."""
    names = dict.fromkeys(planned.cell.environment for planned in dataset.plan)
    return {name: position for position, name in enumerate(names)}


def implementations(row: Row) -> str:
    """Return the implementation of a row, and that of its base if they differ."""
    if row.implementation == row.base_implementation:
        return row.implementation
    return f"{row.implementation} / {row.base_implementation}"


def devices(comparison: Comparison) -> str:
    """Return the device of a comparison; with published sides, each device with its sides."""
    if not comparison.devices:
        return comparison.device_name or comparison.device
    sides: dict[str, list[str]] = {}
    for side, device in comparison.devices.items():
        sides.setdefault(device, []).append(side)
    return "; ".join(f"{device}: {', '.join(names)}" for device, names in sides.items())


def sources(comparison: Comparison) -> list[str]:
    """Return what a ratio with a published figure means, then each source with what it timed and its spread."""
    if not comparison.figures:
        return []
    notes = ["with a published figure the ratio is the quotient of the two times, and has no interval"]
    for name in dict.fromkeys(figure.source for figure in comparison.figures):
        source = SOURCES[name]
        ends = f"; ± is the {source.spread}" if source.spread else "; no spread was published"
        notes.append(f"{name} is {source.citation}: {source.timed}{ends}")
    return notes


def reasons(rows: Sequence[Row]) -> list[tuple[str, str, list[str]]]:
    """Return (verdict, reason, labels of the rows that have it) for each distinct reason, in the order of the rows."""
    precisions = {row.precision for row in rows}
    several = len({row.environment for row in rows}) > 1
    labels_by_reason: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.reason and row.code not in SELF_EXPLANATORY:
            label = f"{implementations(row)} {phase_label(row.phase, row.precision, precisions)}"
            label = f"{row.environment} {label}" if several else label
            labels_by_reason.setdefault((row.verdict, row.reason), []).append(label)
    return [(verdict, reason, labels) for (verdict, reason), labels in labels_by_reason.items()]


def rows_by_case(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each case, in their order."""
    cases: dict[str, list[Row]] = {}
    for row in rows:
        cases.setdefault(row.case_id, []).append(row)
    return cases


def error(value: float | None) -> str:
    """Return a relative error, ``3.1e-07``, or a dash."""
    return DASH if value is None else f"{value:.1e}"


def few(items: Sequence[str], limit: int = 4) -> str:
    """Return the first items in a line, and how many more there are."""
    rest = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {rest} more" if rest > 0 else "")


def date(run: str) -> str:
    """Return the time in a run's id, ``2026-11-20 10:45 UTC``; empty if the id has none."""
    day, _, clock = run[:15].partition("-")
    if not (day.isdigit() and clock.isdigit() and len(day) == 8 and len(clock) == 6):
        return ""
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {clock[:2]}:{clock[2:4]} UTC"


def facts(known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each fact, the ones people look for first; a nested fact becomes a list in one line."""
    names = [name for name in FIRST_FACTS if name in known] + sorted(set(known) - {*FIRST_FACTS, "version"})
    for name in names:
        value = known[name]
        if value in (None, "", [], {}) or (name == "version" and isinstance(value, int)):
            continue
        yield name.removesuffix("_bytes").replace("_", " "), _text(name, value)


def _text(name: str, value: object) -> str:
    if name.endswith("bytes") and isinstance(value, int):
        return units.memory(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text('', item)}" for key, item in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return ", ".join(_text("", item) for item in value)
    return str(value)
