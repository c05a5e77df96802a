"""The content of a run's report, which the HTML page and the Markdown report both show."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from runner.analysis.model import Comparison, Dataset, Row
from runner.analysis.quality import annotate, quality_issues
from runner.analysis.quality.grade import Grade, grade
from runner.analysis.time_intervals import time_intervals
from runner.catalog.cases import CASES, FIELDS, field
from runner.core import units
from runner.core.model import Cell
from runner.core.model.cells import is_twin
from runner.core.units import TimeUnit
from runner.report import formatting
from runner.report.accuracy import Accuracy, accuracy
from runner.report.failures import Missing, missing_cells
from runner.report.quality import Mark, Section, marks_by_cell, section
from runner.report.throughput import Throughput, throughput

OWN_CORPORA = "Own corpora"
FIELD_ORDER = (*FIELDS, OWN_CORPORA)

Fact = tuple[str, str]
"""Name and text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measured cell.

    Attributes:
        label: phase, and precision if the case has several.
        medians: seconds, one for each round; ``seconds`` is their median.
        low: end of the 95 % interval of the time, ``high`` the other; None with one round, and with one server.
        shown: the time with its unit; ``interval`` has the ends in the same unit, or is a dash.
        quoted: the time in the unit in which its workload is published; a dash for a compile phase.
        rate: operations per second and their share of the device's peak; a dash if they are not known.
        host_device: what host and device spend on a step of a GPU; empty if that is not known.
        row: the comparison with the base of its framework; None for the base itself and without a comparison.
        base: whether other environments of its framework are compared with it.
        marks: its quality issues, then serious ones of the cell that it is compared with.
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
    host_device: str
    row: Row | None
    base: bool
    marks: tuple[Mark, ...]

    @property
    def rounds(self) -> int:
        """In how many rounds it was measured."""
        return len(self.medians)


@dataclass(frozen=True, slots=True)
class Case:
    """The measured cells of one case, by phase, implementation and environment; and the field of its workload."""

    name: str
    lines: tuple[Line, ...]
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything a report shows; ``grade`` and ``quality_issues`` are None without a good record."""

    title: str
    run: str
    facts: tuple[Fact, ...]
    comparisons: tuple[Comparison, ...]
    grade: Grade | None
    quality_issues: Section | None
    cases: tuple[Case, ...]
    missing: tuple[Missing, ...]
    accuracy: tuple[Accuracy, ...]
    environments: Mapping[str, tuple[Fact, ...]]
    machine: tuple[Fact, ...]
    notes: tuple[str, ...]


def arrange(dataset: Dataset, comparisons: Sequence[Comparison]) -> Page:
    """Return the content of the report of a run.

    Args:
        dataset: the run.
        comparisons: of environments of this run; the verdict of a cell is from the first that has it.
    """
    issues = quality_issues(dataset)
    comparisons = tuple(annotate(each, {dataset.run: issues}) for each in comparisons)
    medians = _medians(dataset)
    rates = throughput(dataset, {cell.id: median(seconds) for cell, seconds in medians.items()})
    cases = _Cases(dataset, comparisons, medians, marks_by_cell(issues, comparisons), rates).arranged()
    run_grade = grade(dataset, issues, comparisons)
    issue_section = section(issues, comparisons) if cases else None
    device = _device(dataset)
    count = len({line.environment for case in cases for line in case.lines if not is_twin(line.environment)})
    return Page(
        title=f"{formatting.counted(count, 'environment')}, {formatting.counted(len(cases), 'case')}, on {device}",
        run=dataset.run,
        facts=(
            *([("Grade", run_grade.sentence)] if run_grade else ()),
            *_facts(dataset, device),
            *(("Peak", peak) for peak in rates.peaks),
            *([("Quality issues", issue_section.total)] if issue_section else ()),
        ),
        comparisons=comparisons,
        grade=run_grade,
        quality_issues=issue_section,
        cases=cases,
        missing=tuple(missing_cells(dataset)),
        accuracy=tuple(row for row in accuracy(dataset) if not is_twin(row.environment)),
        environments={
            name: tuple(formatting.facts(facts)) for name, facts in dataset.environments.items() if not is_twin(name)
        },
        machine=tuple(formatting.facts(dataset.machine)),
        notes=(dataset.warning,) if dataset.warning else (),
    )


def _medians(dataset: Dataset) -> Mapping[Cell, list[float]]:
    """Return each cell -> the medians of its rounds in seconds."""
    medians: dict[Cell, list[float]] = defaultdict(list)
    for cell, seconds in zip(dataset.rounds["cell"].tolist(), dataset.rounds["seconds"].tolist(), strict=True):
        medians[Cell.parse(cell)].append(seconds)
    return medians


class _Cases:
    """Arranges the cells of a run into cases and lines."""

    def __init__(
        self,
        dataset: Dataset,
        comparisons: Sequence[Comparison],
        medians: Mapping[Cell, list[float]],
        marks: Mapping[str, tuple[Mark, ...]],
        rates: Throughput,
    ) -> None:
        columns = (dataset.rounds[name].tolist() for name in ("implementation", "kind"))
        self.kinds = dict(zip(*columns, strict=True))
        self.order = formatting.environment_order(dataset)
        self.medians, self.marks, self.rates = medians, marks, rates
        self.rows = {row.other: row for comparison in reversed(comparisons) for row in comparison.rows}
        self.bases = {comparison.base for comparison in comparisons}
        self.ends = time_intervals(dataset)
        self.precisions: dict[str, set[str]] = defaultdict(set)
        for cell in medians:
            self.precisions[cell.case_id].add(cell.precision)

    def arranged(self) -> tuple[Case, ...]:
        """Return the cases, grouped by field."""
        lines: dict[str, list[Line]] = defaultdict(list)
        for cells in self._phases():
            unit = units.time_unit(median(self.medians[cell]) for cell in cells)
            lines[cells[0].case_id] += [self._line(cell, unit) for cell in cells]
        cases = (
            Case(name, tuple(own_lines), field(CASES[name]) if name in CASES else OWN_CORPORA)
            for name, own_lines in lines.items()
        )
        return tuple(sorted(cases, key=lambda case: FIELD_ORDER.index(case.field)))  # the sort is stable

    def _phases(self) -> Iterator[list[Cell]]:
        """Yield the cells of each case, phase and precision, by implementation and then in the order of the plan."""
        groups: dict[tuple[str, tuple[int, str], str], list[Cell]] = defaultdict(list)
        for cell in self.medians:
            groups[cell.case_id, formatting.phase_key(cell.phase), cell.precision].append(cell)
        for _, cells in sorted(groups.items()):
            yield sorted(cells, key=self._position)

    def _position(self, cell: Cell) -> tuple[str, int, str]:
        return cell.implementation, self.order.get(cell.environment, len(self.order)), cell.environment

    def _line(self, cell: Cell, unit: TimeUnit) -> Line:
        seconds, ends, row = median(self.medians[cell]), self.ends[cell], self.rows.get(cell)
        shown_ends = [formatting.without_unit(end, unit) for end in ends or ()]
        return Line(
            environment=cell.environment,
            implementation=cell.implementation,
            kind=self.kinds[cell.implementation],
            phase=cell.phase,
            precision=cell.precision,
            label=formatting.phase_label(cell.phase, cell.precision, self.precisions[cell.case_id]),
            medians=tuple(self.medians[cell]),
            seconds=seconds,
            low=ends[0] if ends else None,
            high=ends[1] if ends else None,
            shown=units.step_time(seconds, unit),
            interval=f" {formatting.DASH} ".join(shown_ends) or formatting.DASH,
            quoted=formatting.in_workload_unit(cell.case_id, cell.phase, seconds),
            rate=self.rates.rates.get(cell.id, formatting.DASH),
            host_device=self.rates.host_device.get(cell.id, ""),
            row=row,
            base=cell.environment in self.bases and row is None,
            marks=self.marks.get(cell.id, ()),
        )


def _device(dataset: Dataset) -> str:
    """Return the names of the devices of a run."""
    names = [name for name in dataset.rounds["device_name"].unique().tolist() if name]
    boards = len(dataset.machine.get("gpus", ()))  # each board measured cases of its own
    text = formatting.few(names) or ", ".join(dataset.rounds["device"].unique().tolist()) or "no device"
    return f"{boards} x {text}" if boards > 1 else text


def _facts(dataset: Dataset, device: str) -> Iterator[Fact]:
    rounds = dataset.rounds
    yield "Run", dataset.run
    if formatting.date(dataset.run):
        yield "Measured", formatting.date(dataset.run)
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
    yield "Rounds", _range(rounds.groupby("cell", observed=True).size().tolist())
    yield "Samples", f"{rounds['iterations'].sum():,} in {rounds['cell'].nunique():,} cells"


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"
