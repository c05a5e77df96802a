"""A run arranged for reading: what the HTML page and the Markdown report both say."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

from runner.analysis import statistics
from runner.analysis.model import Comparison, Dataset, QualityIssue, Row
from runner.analysis.quality import annotate, quality_issues
from runner.catalog.cases import CASES
from runner.catalog.cases.fields import FIELDS, field
from runner.core.model.cells import is_twin
from runner.report import formatting
from runner.report.accuracy import Accuracy, accuracy
from runner.report.failures import Ending, endings
from runner.report.quality import Mark, Section, by_cell, section
from runner.report.throughput import Reached, reached

OWN = "Own corpora"
FIELD_ORDER = (*FIELDS, OWN)

Key = tuple[str, str, str, str, str]
Fact = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measured cell.

    Attributes:
        label: phase, and precision where the case has several.
        medians: seconds, one for each round; ``seconds`` is their median.
        low: end of the 95 % interval of the geometric mean over rounds; None with one round, as ``high``.
        shown: the time with its unit; ``interval`` the ends in the same unit, a dash where there are none.
        quoted: the time in the unit of its workload's figures; a dash for a compile phase.
        rate: operations in a second, and their share of the device's peak; a dash where they are not known.
        spent: what host and device spend on a step of a GPU; empty where that is not known.
        row: against the base of the framework; None for the base and where there is none.
        base: whether others of its framework are held against it.
        marks: what is doubtful about it, then what is serious about the cell it is compared with.
    """

    environment: str
    implementation: str
    kind: str
    phase: str
    precision: str
    label: str
    medians: tuple[float, ...]
    seconds: float
    low: float | None
    high: float | None
    shown: str
    interval: str
    quoted: str
    rate: str
    spent: str
    row: Row | None
    base: bool
    marks: tuple[Mark, ...]

    @property
    def rounds(self) -> int:
        """How many rounds it was measured in."""
        return len(self.medians)


@dataclass(frozen=True, slots=True)
class Case:
    """The measured cells of one case, by phase, implementation and environment; and the field it is of."""

    name: str
    lines: tuple[Line, ...]
    field: str


class _Style(NamedTuple):
    kind: str
    label: str
    scale: formatting.Unit
    marks: tuple[Mark, ...]
    ends: tuple[float, float] | None
    rate: str
    spent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything a report says; the facts are pairs of a name and text, and ``doubts`` None without a good record."""

    title: str
    run: str
    facts: tuple[Fact, ...]
    comparisons: tuple[Comparison, ...]
    doubts: Section | None
    cases: tuple[Case, ...]
    failures: tuple[Ending, ...]
    accuracy: tuple[Accuracy, ...]
    environments: Mapping[str, tuple[Fact, ...]]
    machine: tuple[Fact, ...]
    notes: tuple[str, ...]


def arrange(results: Dataset, comparisons: Sequence[Comparison]) -> Page:
    """Return a run arranged for reading.

    Args:
        results: the run.
        comparisons: of environments of this run; the verdict of a cell is from the first that has it.
    """
    found = quality_issues(results)
    comparisons = tuple(annotate(one, {results.run: found}) for one in comparisons)
    far = reached(results, {cell: median(seconds) for cell, seconds in _medians(results).items()})
    cases = _cases(results, comparisons, found, far)
    doubtful = section(found, comparisons) if cases else None
    device = _device(results)
    count = len({line.environment for case in cases for line in case.lines if not is_twin(line.environment)})
    return Page(
        title=f"{formatting.counted(count, 'environment')}, {formatting.counted(len(cases), 'case')}, on {device}",
        run=results.run,
        facts=(
            *_facts(results, device),
            *(("Peak", said) for said in far.peaks),
            *([("Doubts", doubtful.total)] if doubtful else ()),
        ),
        comparisons=comparisons,
        doubts=doubtful,
        cases=cases,
        failures=tuple(endings(results)),
        accuracy=tuple(one for one in accuracy(results) if not is_twin(one.environment)),
        environments={
            name: tuple(formatting.facts(found)) for name, found in results.environments.items() if not is_twin(name)
        },
        machine=tuple(formatting.facts(results.machine)),
        notes=(results.warning,) if results.warning else (),
    )


def _medians(results: Dataset) -> Mapping[str, list[float]]:
    """Return the id of each cell -> the medians of its rounds in seconds."""
    found: dict[str, list[float]] = defaultdict(list)
    for cell, seconds in zip(results.rounds["cell"].tolist(), results.rounds["seconds"].tolist(), strict=True):
        found[cell].append(seconds)
    return found


def _cases(
    results: Dataset, comparisons: Sequence[Comparison], found: Sequence[QualityIssue], far: Reached
) -> tuple[Case, ...]:
    own = _medians(results)
    medians: dict[Key, list[float]] = {}
    kinds: dict[str, str] = {}
    precisions: dict[str, set[str]] = defaultdict(set)
    names = ("cell", "workload", "case", "phase", "precision", "implementation", "environment", "kind")
    first = results.rounds.drop_duplicates("cell")
    for row in zip(*(first[name].tolist() for name in names), strict=True):
        cell, workload, case, phase, precision, implementation, environment, kind = row
        medians[f"{workload}/{case}", phase, precision, implementation, environment] = own[cell]
        precisions[f"{workload}/{case}"].add(precision)
        kinds[implementation] = kind
    rows = {_key(row): row for one in reversed(comparisons) for row in one.rows}
    bases = {one.base for one in comparisons}
    noted = by_cell(found, comparisons)
    ends = _ends(medians)
    lines: dict[str, list[Line]] = defaultdict(list)
    for group in _groups(medians, results):
        scale = formatting.unit(median(medians[key]) for key in group)
        for key in group:
            label = formatting.phase(key[1], key[2], precisions[key[0]])
            cell = "/".join((*reversed(key[3:]), *key[:3]))
            far_by = far.rates.get(cell, formatting.DASH), far.spent.get(cell, "")
            style = _Style(kinds[key[3]], label, scale, noted.get(cell, ()), ends[key], *far_by)
            lines[key[0]].append(_line(key, style, medians[key], rows.get(key), base=key[4] in bases))
    cases = (Case(name, tuple(one), field(CASES[name]) if name in CASES else OWN) for name, one in lines.items())
    return tuple(sorted(cases, key=lambda case: FIELD_ORDER.index(case.field)))  # those of a field stay as they were


def _groups(medians: Mapping[Key, object], results: Dataset) -> Iterable[list[Key]]:
    """Return the cells of each case, phase and precision, the environments in the plan's order."""
    order = {name: place for place, name in enumerate(dict.fromkeys(one.cell.environment for one in results.plan))}
    found: dict[tuple[str, str, str], list[Key]] = defaultdict(list)
    for key in medians:
        found[key[:3]].append(key)
    for _, group in sorted(found.items(), key=lambda item: (item[0][0], formatting.phase_key(item[0][1]), item[0][2])):
        yield sorted(group, key=lambda key: (key[3], order.get(key[4], len(order)), key[4]))


def _ends(medians: Mapping[Key, Sequence[float]]) -> Mapping[Key, tuple[float, float] | None]:
    """Return the ends of the 95 % interval of each cell's geometric mean over rounds; None where it has one round."""
    if not medians:
        return {}
    found = (statistics.paired(np.log(values)) for values in medians.values())
    evidence = statistics.Evidence(*(np.array(column) for column in zip(*found, strict=True)))
    _, low, high = np.exp(statistics.interval(evidence, 1 - statistics.CONFIDENCE))
    ends = zip(low.tolist(), high.tolist(), strict=True)
    return {key: both if len(medians[key]) > 1 else None for key, both in zip(medians, ends, strict=True)}


def _key(row: Row) -> Key:
    return row.case_id, row.phase, row.precision, row.implementation, row.environment


def _line(key: Key, style: _Style, medians: list[float], row: Row | None, *, base: bool) -> Line:
    seconds, ends = median(medians), style.ends
    shown = [formatting.duration(end, style.scale, name=False) for end in ends or ()]
    return Line(
        environment=key[4],
        implementation=key[3],
        kind=style.kind,
        phase=key[1],
        precision=key[2],
        label=style.label,
        medians=tuple(medians),
        seconds=seconds,
        low=ends[0] if ends else None,
        high=ends[1] if ends else None,
        shown=formatting.duration(seconds, style.scale),
        interval=f" {formatting.DASH} ".join(shown) or formatting.DASH,
        quoted=formatting.quoted(key[0], key[1], seconds),
        rate=style.rate,
        spent=style.spent,
        row=row,
        base=base and row is None,
        marks=style.marks,
    )


def _device(results: Dataset) -> str:
    """Return the names of the devices that were measured on."""
    names = [name for name in results.rounds["device_name"].unique().tolist() if name]
    boards = len(results.machine.get("gpus", ()))  # each of them measured cases of its own
    found = formatting.few(names) or ", ".join(results.rounds["device"].unique().tolist()) or "no device"
    return f"{boards} x {found}" if boards > 1 else found


def _facts(results: Dataset, device: str) -> Iterable[Fact]:
    rounds = results.rounds
    yield "Run", results.run
    if formatting.date(results.run):
        yield "Measured", formatting.date(results.run)
    yield "Device", device
    for name, column in (
        ("Threads", "threads"),
        ("Backend", "backend"),
        ("Protocol", "protocol"),
        ("Driver", "driver"),
    ):
        known = [value for value in rounds[column].unique().tolist() if value]
        if known:
            yield name, formatting.few(known)
    yield "Rounds", _span(rounds.groupby("cell", observed=True).size().tolist())
    yield "Samples", f"{rounds['iterations'].sum():,} in {rounds['cell'].nunique():,} cells"


def _span(counts: Sequence[int]) -> str:
    least, most = min(counts, default=0), max(counts, default=0)
    return str(least) if least == most else f"{least} to {most}"
