"""The times of every measured cell of a run, as lines of text by case."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from runner.analysis.boards import Board, boards_of, kind_name
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import Dataset
from runner.analysis.time_intervals import time_intervals
from runner.catalog.cases import CASES, FIELDS, field, is_network_of_user
from runner.core import units
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.core.units import TimeUnit
from runner.report import formatting
from runner.report.panels import board_name
from runner.report.quality import IssueMark
from runner.report.readings import compiled, telemetry
from runner.report.throughput import Throughput

OWN_CORPORA = "Own corpora"
OWN_NETWORKS = "Your networks"
FIELD_ORDER = (*FIELDS, OWN_CORPORA, OWN_NETWORKS)


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
        telemetry: clock, power, temperature and throttling while it computed; empty without readings.
        compiled: what torch.compile did to it; empty where it was not used.
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
    telemetry: str
    compiled: str
    row: Row | None
    base: bool
    marks: tuple[IssueMark, ...]

    @property
    def rounds(self) -> int:
        """In how many rounds it was measured."""
        return len(self.medians)

    def cell_id(self, case_id: str) -> str:
        """Return the id of its cell, given that of its case."""
        return f"{self.environment}/{self.implementation}/{case_id}/{self.phase}/{self.precision}"


@dataclass(frozen=True, slots=True)
class Case:
    """The measured cells of one case.

    Attributes:
        name: its id.
        lines: its cells, by phase, implementation and environment.
        field: of its workload.
        board: the board that measured it, if the run has several; otherwise empty.
        device_name: its kind of device, if the run has several; otherwise empty.
    """

    name: str
    lines: tuple[Line, ...]
    field: str
    board: str = ""
    device_name: str = ""


class CaseArranger:
    """Arranges the measured cells of a run into cases and lines."""

    def __init__(
        self,
        dataset: Dataset,
        comparisons: Sequence[Comparison],
        medians: Mapping[Cell, list[float]],
        marks: Mapping[str, tuple[IssueMark, ...]],
        rates: Throughput,
    ) -> None:
        """Look up what the lines show.

        Args:
            dataset: the run.
            comparisons: of its environments.
            medians: cell -> the medians of its rounds in seconds.
            marks: cell id -> its quality issues.
            rates: the throughput of its cells.
        """
        columns = (dataset.rounds[name].tolist() for name in ("implementation", "kind"))
        self.kinds = dict(zip(*columns, strict=True))
        self.order = formatting.environment_order(dataset)
        self.medians, self.marks, self.rates = medians, marks, rates
        self.rows = {row.other: row for comparison in reversed(comparisons) for row in comparison.rows}
        self.bases = {comparison.base for comparison in comparisons}
        self.ends = time_intervals(dataset)
        self.boards = _boards(dataset)
        self.telemetry, self.compiled = telemetry(dataset.rounds), compiled(dataset.rounds)
        self.precisions: dict[str, set[str]] = defaultdict(set)
        for cell in medians:
            self.precisions[cell.case_id].add(cell.precision)

    def arranged(self) -> tuple[Case, ...]:
        """Return the cases, grouped by field of application."""
        lines: dict[str, list[Line]] = defaultdict(list)
        for cells in self._phases():
            unit = units.time_unit(median(self.medians[cell]) for cell in cells)
            lines[cells[0].case_id] += [self._line(cell, unit) for cell in cells]
        several = {board for boards in self.boards.values() for board in boards}
        cases = (
            Case(
                name,
                tuple(own_lines),
                _field(name),
                ", ".join(map(board_name, self.boards[name])) if len(several) > 1 else "",
                kind_name(self.boards[name]) if kind_name(several) != kind_name(self.boards[name]) else "",
            )
            for name, own_lines in lines.items()
        )
        return tuple(sorted(cases, key=lambda case: FIELD_ORDER.index(case.field)))  # the sort is stable

    def _phases(self) -> Iterator[list[Cell]]:
        """Yield the cells of each case, phase and precision, by implementation and then in the order of the plan."""
        groups = grouped(
            ((cell.case_id, formatting.phase_key(cell.phase), cell.precision), cell) for cell in self.medians
        )
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
            telemetry=self.telemetry.get(cell.id, ""),
            compiled=self.compiled.get(cell.id, ""),
            row=row,
            base=cell.environment in self.bases and row is None,
            marks=self.marks.get(cell.id, ()),
        )


def _boards(dataset: Dataset) -> dict[str, list[Board]]:
    """Return case -> the boards that measured it, sorted."""
    boards: dict[str, set[Board]] = defaultdict(set)
    columns = (dataset.rounds[name].tolist() for name in ("workload", "case"))
    for workload, case, board in zip(*columns, boards_of(dataset.rounds), strict=True):
        boards[f"{workload}/{case}"].add(board)
    return {case: sorted(of_case) for case, of_case in boards.items()}


def _field(case_id: str) -> str:
    """Return the heading that a case stands under."""
    if is_network_of_user(case_id):
        return OWN_NETWORKS
    return field(CASES[case_id]) if case_id in CASES else OWN_CORPORA
