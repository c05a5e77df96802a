"""What a publication says of the cases of a run, with the run's own columns added."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runner.analysis.model import Dataset
from runner.catalog.published import PHASE, Figure, Source, figures
from runner.catalog.published import source as find
from runner.core.errors import Problem, UsageError
from runner.report import formatting
from runner.report.page import Case, Line

AS_PRINTED = {"ms/batch": formatting.Unit(1e3, "ms"), "ms": formatting.Unit(1e3, "ms"), "s": formatting.Unit(1.0, "s")}
"""Units that are shown as they were printed; the others are times of something else than a step."""


class Entry(NamedTuple):
    """A time as text, and its interval where it has one."""

    time: str
    interval: str = ""

    def __str__(self) -> str:
        """Return both in a line."""
        return f"{self.time} ({self.interval})" if self.interval else self.time


NOTHING = Entry(formatting.DASH)


class Row(NamedTuple):
    """One implementation in one phase, with an entry for each column."""

    implementation: str
    phase: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One case in one framework: the published environments, then the measured ones.

    Attributes:
        published: the heads of the first columns; ``measured`` of those after them.
        published_on: the devices of the first columns; ``measured_on`` of those after them, empty where there are none.
        rows: what each implementation has in each column.
    """

    framework: str
    published: tuple[str, ...]
    published_on: str
    measured: tuple[str, ...]
    measured_on: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A publication beside a run: tables by case, and what must be known to read them."""

    title: str
    notes: tuple[str, ...]
    cases: Mapping[str, tuple[Table, ...]]


def arrange(source: str, cases: Sequence[Case], results: Dataset) -> Beside:
    """Return the figures of a source for the cases of a run, with the run's times.

    Args:
        source: a name in ``runner.catalog.published.SOURCES``.
        cases: the run's times.
        results: the run, which knows frameworks and devices.

    Raises:
        UsageError: there is no such source, or the run has measured nothing that it has.
    """
    about = find(source)
    own = [one for one in figures() if one.source == source]
    order = {name: place for place, name in enumerate(dict.fromkeys(one.cell.environment for one in results.plan))}
    tables = {}
    for case in cases:
        of_case = [one for one in own if one.case == case.name]
        lines = [line for line in case.lines if _phase(line) in {one.phase for one in of_case}]
        if lines:
            lines.sort(key=lambda line: order.get(line.environment, len(order)))
            tables[case.name] = tuple(_tables(of_case, lines, results))
    if not tables:
        workloads = " ".join(f"--workload {name}" for name in dict.fromkeys(one.case.split("/")[0] for one in own))
        problem = Problem(f"run {results.run} has measured nothing that {source} has", hint=f"`runner run {workloads}`")
        raise UsageError(problem)
    missing = [name for name in dict.fromkeys(one.case for one in own) if name not in tables]
    return Beside(
        title=f"{about.title}, {about.year}, beside this run",
        notes=tuple(_notes(about, [one for one in own if one.case in tables], missing)),
        cases=tables,
    )


def _notes(about: Source, shown: Sequence[Figure], missing: Sequence[str]) -> Iterable[str]:
    """Give what must be known to read the tables."""
    yield (
        "The published columns are from another device and another program than the measured ones: "
        "hold columns of one kind against each other, not against those of the other kind."
    )
    yield f"Published: {about.url}; {about.timed}" + (f"; ± is the {about.spread}." if about.spread else ".")
    yield "Measured: the median of the rounds, with its 95 % interval."
    remarks = dict.fromkeys(f"{one.environment}/{one.implementation}: {one.note}" for one in shown if one.note)
    if remarks:
        yield f"The published programs differ further. {'. '.join(remarks)}."
    if missing:
        yield f"Published too, and not measured in this run: {', '.join(missing)}."


def _tables(published: Sequence[Figure], lines: Sequence[Line], results: Dataset) -> Iterable[Table]:
    """Give the table of each framework that was published, in the order of the figures."""
    known = zip(*(results.rounds[name].tolist() for name in ("environment", "framework", "device_name")), strict=True)
    facts = {environment: (framework, device) for environment, framework, device in known}
    for framework in dict.fromkeys(one.framework for one in published):
        own = [one for one in published if one.framework == framework]
        theirs = [line for line in lines if facts[line.environment][0] == framework]
        yield _table(framework, own, theirs, {line.environment: facts[line.environment][1] for line in theirs})


def _table(framework: str, own: Sequence[Figure], lines: Sequence[Line], devices: Mapping[str, str]) -> Table:
    first = {(_headed(one.environment, one.precision), one.implementation, one.phase): _printed(one) for one in own}
    second = {(_head(line), line.implementation, _phase(line)): _measured(line) for line in lines}
    published, measured = (tuple(dict.fromkeys(key[0] for key in cells)) for cells in (first, second))
    keys = sorted(dict.fromkeys(key[1:] for key in (*first, *second)), key=lambda key: formatting.phase_key(key[1]))
    rows = []
    for key in keys:
        entries = [first.get((head, *key), NOTHING) for head in published]
        entries += [second.get((head, *key), NOTHING) for head in measured]
        rows.append(Row(*key, tuple(entries)))
    return Table(
        framework=framework,
        published=published,
        published_on=formatting.few(list(dict.fromkeys(one.device for one in own))),
        measured=measured,
        measured_on=formatting.few(list(dict.fromkeys(devices.values()))),
        rows=tuple(rows),
    )


def _phase(line: Line) -> str:
    return line.phase.removesuffix(PHASE)


def _head(line: Line) -> str:
    """Return the environment of a line, with the protocol and the precision where they are not the usual ones."""
    suffix = PHASE if line.phase.endswith(PHASE) else ""
    return _headed(f"{line.environment}{suffix}", line.precision)


def _headed(name: str, precision: str) -> str:
    return name if precision == "fp32" else f"{name} {precision}"


def _printed(figure: Figure) -> Entry:
    """Return a figure as it was printed, or as the time of a step where it was the time of something else."""
    scale = AS_PRINTED.get(figure.unit)
    if scale is None:
        return Entry(formatting.spread_duration(figure.seconds, figure.spread))
    return Entry(f"{figure.value}{formatting.spread(figure.spread, scale)} {scale.name}")


def _measured(line: Line) -> Entry:
    return Entry(line.shown, line.interval if line.low is not None else "")
