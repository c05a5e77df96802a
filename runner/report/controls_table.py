"""The controls of a run as one table: a cell on another server (A/A), and in a plain process."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner.analysis.comparison_model import Comparison
from runner.analysis.plain_control import PlainPair
from runner.analysis.releases import EnvironmentRelease
from runner.core import units
from runner.core.model import Cell
from runner.report.answer import name
from runner.report.formatting import DASH, counted

ANOTHER_SERVER, PLAIN_PROCESS = "another server", "plain process"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlLine:
    """A measured cell beside one of its controls.

    Attributes:
        release: name of the cell's release.
        control: ``another server`` or ``plain process``.
        seconds: the time of the cell, and that of the control.
        quotient: the control's time over the measured one, paired by round; ``interval`` is its 95 % interval.
        differs: whether that is a serious quality issue.
    """

    cell: Cell
    release: str
    control: str
    seconds: tuple[float, float]
    quotient: float
    interval: tuple[float, float] | None
    differs: bool

    @property
    def test(self) -> str:
        """Case, phase and precision."""
        precision = "" if self.cell.precision == "fp32" else f" {self.cell.precision}"
        return f"{self.cell.case_id} {self.cell.phase}{precision}"

    @property
    def times(self) -> tuple[str, str]:
        """Both times, in the same unit."""
        measured, control = (units.step_time(each, units.time_unit(self.seconds)) for each in self.seconds)
        return measured, control

    @property
    def ratio(self) -> str:
        """The quotient, and whether it differs."""
        return f"{units.digits(self.quotient)}{' differs' * self.differs}"

    @property
    def ends(self) -> str:
        """The interval; a dash with one round."""
        return " to ".join(map(units.digits, self.interval)) if self.interval else DASH


def control_lines(
    comparisons: Iterable[Comparison], plain: Iterable[PlainPair], names: Mapping[str, EnvironmentRelease]
) -> list[ControlLine]:
    """Return a line for each control, those that differ first, and then the largest difference first.

    Args:
        comparisons: of the run, those with A/A controls among them.
        plain: its plain-process controls.
        names: environment -> its release.
    """
    lines = [*_of_servers(comparisons, names), *_of_plain_processes(plain, names)]
    return sorted(lines, key=lambda line: (not line.differs, -abs(math.log(line.quotient))))


def controls_summary(lines: Sequence[ControlLine]) -> str:
    """Return how many controls of each kind there are, and how many of them differ."""
    texts = []
    for control in (ANOTHER_SERVER, PLAIN_PROCESS):
        differing = [line.differs for line in lines if line.control == control]
        if differing:
            text = f"{counted(len(differing), 'test')} {'on' if control == ANOTHER_SERVER else 'in a'} {control}"
            texts.append(f"{text}, {sum(differing) or 'none'} of which differ{'s' * (sum(differing) == 1)}")
    return "; ".join(texts)


def _of_servers(comparisons: Iterable[Comparison], names: Mapping[str, EnvironmentRelease]) -> Iterator[ControlLine]:
    rows = (row for comparison in comparisons if comparison.is_control for row in comparison.rows)
    for row in rows:
        if row.ratio and row.base_seconds and row.seconds:
            yield ControlLine(
                cell=row.base,
                release=name(row.base.environment, names),
                control=ANOTHER_SERVER,
                seconds=(row.base_seconds, row.seconds),
                quotient=row.ratio,
                interval=(row.ratio_low, row.ratio_high) if row.ratio_low and row.ratio_high else None,
                differs="a-a-differs" in {issue.code for issue in row.quality_issues},
            )


def _of_plain_processes(plain: Iterable[PlainPair], names: Mapping[str, EnvironmentRelease]) -> Iterator[ControlLine]:
    for pair in plain:
        yield ControlLine(
            cell=pair.cell,
            release=name(pair.cell.environment, names),
            control=PLAIN_PROCESS,
            seconds=(pair.measured_seconds, pair.seconds),
            quotient=pair.ratio,
            interval=pair.ends(),
            differs=pair.differs,
        )
