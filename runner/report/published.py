"""The figures of a publication for the cases of a run, next to the run's own times."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runner.analysis.model import Dataset
from runner.analysis.releases import releases
from runner.catalog.published import PHASE_SUFFIX, Figure, PublishedSource, figures, find_source
from runner.core.errors import Problem, UsageError
from runner.report import formatting
from runner.report.published_bars import AS_PRINTED, BarChart, bar_charts
from runner.report.times import Case, Line


class PublishedEntry(NamedTuple):
    """A time and its interval as text; empty without an interval."""

    time: str
    interval: str = ""

    def __str__(self) -> str:
        """Return both in one line."""
        return f"{self.time} ({self.interval})" if self.interval else self.time


EMPTY = PublishedEntry(formatting.DASH)


class PublishedRow(NamedTuple):
    """One implementation in one phase, with an entry for each column."""

    implementation: str
    phase: str
    entries: tuple[PublishedEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One case in one framework: the published environments, then the measured ones.

    Attributes:
        published: the heads of the published columns; ``measured`` has those of the measured columns, which follow.
        published_on: the devices of the published columns; ``measured_on`` those of the measured ones, or empty.
        rows: the entries of each implementation.
    """

    framework: str
    published: tuple[str, ...]
    published_on: str
    measured: tuple[str, ...]
    measured_on: str
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedComparison:
    """A publication next to a run: tables and bar charts by case, and notes for the reader."""

    title: str
    notes: tuple[str, ...]
    cases: Mapping[str, tuple[Table, ...]]
    charts: Mapping[str, tuple[BarChart, ...]]


def arrange(source_name: str, cases: Sequence[Case], dataset: Dataset) -> PublishedComparison:
    """Return the figures of a source for the cases of a run, with the times of the run.

    Args:
        source_name: a name in ``runner.catalog.published.SOURCES``.
        cases: the times of the run.
        dataset: the run, for its frameworks and devices.

    Raises:
        UsageError: there is no such source, or the run has measured none of its cases.
    """
    source = find_source(source_name)
    published = [figure for figure in figures() if figure.source == source_name]
    order = formatting.environment_order(dataset)
    names = releases(dataset)
    devices = dict(zip(*(dataset.rounds[name].tolist() for name in ("environment", "device_name")), strict=True))
    tables, charts = {}, {}
    for case in cases:
        of_case = [figure for figure in published if figure.case == case.name]
        lines = [line for line in case.lines if _phase(line) in {figure.phase for figure in of_case}]
        if lines:
            lines.sort(key=lambda line: order.get(line.environment, len(order)))
            tables[case.name] = tuple(_tables(of_case, lines, dataset))
            charts[case.name] = bar_charts(of_case, lines, names, devices)
    if not tables:
        workloads = dict.fromkeys(figure.case.partition("/")[0] for figure in published)
        command = " ".join(["runner run", *(f"--workload {name}" for name in workloads), "--budget 2h"])
        raise UsageError(
            Problem(f"run {dataset.run} has measured none of the cases of {source_name}", hint=f"`{command}`")
        )
    missing = [name for name in dict.fromkeys(figure.case for figure in published) if name not in tables]
    return PublishedComparison(
        title=f"{source.title}, {source.year}, compared with this run",
        notes=tuple(_notes(source, [figure for figure in published if figure.case in tables], missing)),
        cases=tables,
        charts=charts,
    )


def _notes(source: PublishedSource, shown: Sequence[Figure], missing: Sequence[str]) -> Iterator[str]:
    """Yield what a reader of the tables must know."""
    yield (
        "The published columns come from another device and another program than the measured ones. "
        "Compare published columns with each other, and measured columns with each other."
    )
    yield f"Published: {source.url}; {source.timed}" + (f"; ± is the {source.spread}." if source.spread else ".")
    yield "Measured: the median of the rounds, with its 95 % interval."
    remarks = dict.fromkeys(f"{each.environment}/{each.implementation}: {each.note}" for each in shown if each.note)
    if remarks:
        yield f"Other differences of the published programs: {'. '.join(remarks)}."
    if missing:
        yield f"Published, but not measured in this run: {', '.join(missing)}."


def _tables(published: Sequence[Figure], lines: Sequence[Line], dataset: Dataset) -> Iterator[Table]:
    """Yield a table for each published framework, in the order of the figures."""
    columns = (dataset.rounds[name].tolist() for name in ("environment", "framework", "device_name"))
    facts = {environment: (framework, device) for environment, framework, device in zip(*columns, strict=True)}
    for framework in dict.fromkeys(figure.framework for figure in published):
        of_framework = [figure for figure in published if figure.framework == framework]
        measured = [line for line in lines if facts[line.environment][0] == framework]
        devices = dict.fromkeys(facts[line.environment][1] for line in measured)
        yield _table(framework, of_framework, measured, list(devices))


def _table(framework: str, figures: Sequence[Figure], lines: Sequence[Line], devices: Sequence[str]) -> Table:
    first = {
        (_headed(each.environment, each.precision), each.implementation, each.phase): _printed(each) for each in figures
    }
    second = {(_head(line), line.implementation, _phase(line)): _measured(line) for line in lines}
    published, measured = (tuple(dict.fromkeys(key[0] for key in cells)) for cells in (first, second))
    keys = sorted(dict.fromkeys(key[1:] for key in (*first, *second)), key=lambda key: formatting.phase_key(key[1]))
    rows = []
    for key in keys:
        entries = [first.get((head, *key), EMPTY) for head in published]
        entries += [second.get((head, *key), EMPTY) for head in measured]
        rows.append(PublishedRow(*key, tuple(entries)))
    return Table(
        framework=framework,
        published=published,
        published_on=formatting.few(list(dict.fromkeys(figure.device for figure in figures))),
        measured=measured,
        measured_on=formatting.few(devices),
        rows=tuple(rows),
    )


def _phase(line: Line) -> str:
    return line.phase.removesuffix(PHASE_SUFFIX)


def _head(line: Line) -> str:
    """Return the environment of a line, with its protocol and precision unless they are the default."""
    suffix = PHASE_SUFFIX if line.phase.endswith(PHASE_SUFFIX) else ""
    return _headed(f"{line.environment}{suffix}", line.precision)


def _headed(name: str, precision: str) -> str:
    return name if precision == "fp32" else f"{name} {precision}"


def _printed(figure: Figure) -> PublishedEntry:
    """Return a figure as it was printed, or converted to the time of a step."""
    unit = AS_PRINTED.get(figure.unit)
    if unit is None:
        return PublishedEntry(formatting.time_with_spread(figure.seconds, figure.spread))
    return PublishedEntry(f"{figure.value}{formatting.spread(figure.spread, unit)} {unit.name}")


def _measured(line: Line) -> PublishedEntry:
    return PublishedEntry(line.shown, line.interval if line.low is not None else "")
