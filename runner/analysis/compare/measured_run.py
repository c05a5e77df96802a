"""A run as comparisons, quality issues and the grade need it: what several of them use is computed once."""

from collections.abc import Mapping
from functools import cached_property

from runner.analysis.cell_rounds import CellRound, rounds_by_cell
from runner.analysis.compare.machine_outliers import MachineOutliers, machine_outliers
from runner.analysis.compare.metric_rounds import metric_dataset
from runner.analysis.compare.noise_floor import Floor, MeanKey, Work, mean_noise_floors, noise_floors
from runner.analysis.compare.pairing import Side, environment_side
from runner.analysis.controls import AAPair, aa_pairs
from runner.analysis.error_inflation import Inflation, inflation
from runner.analysis.model import Dataset
from runner.analysis.plain_control import PlainPair, plain_pairs
from runner.analysis.process_states import ProcessStates, process_states
from runner.core.metrics import Metric
from runner.core.model import Cell


class MeasuredRun:
    """A run and what is calculated from its rounds alone, each when it is first asked for."""

    def __init__(self, dataset: Dataset) -> None:
        """Take the run as tables; nothing is calculated yet."""
        self.dataset = dataset
        self._sides: dict[str, Side] = {}
        self._metrics: dict[str, MeasuredRun] = {}

    @classmethod
    def of(cls, run: "Dataset | MeasuredRun") -> "MeasuredRun":
        """Return a run that others may have calculated with, or one of these tables."""
        return run if isinstance(run, MeasuredRun) else cls(run)

    def side(self, environment: str) -> Side:
        """Return an environment of the run; without cells if the run does not have it."""
        if environment not in self._sides:
            self._sides[environment] = environment_side(self.dataset, environment, self.machine_outliers)
        return self._sides[environment]

    def of_metric(self, metric: Metric) -> "MeasuredRun":
        """Return the run with the values of a metric in place of its times; ``metric`` is not time."""
        if metric.name not in self._metrics:
            self._metrics[metric.name] = MeasuredRun(metric_dataset(self.dataset, metric))
        return self._metrics[metric.name]

    @cached_property
    def aa_pairs(self) -> tuple[AAPair, ...]:
        """The A/A pairs whose sides share a round."""
        return tuple(aa_pairs(self.dataset.rounds, self.dataset.looks))

    @cached_property
    def machine_outliers(self) -> Mapping[tuple[str, str, str], MachineOutliers]:
        """Case, phase and precision -> what its A/A pairs show of the outliers of the machine."""
        return machine_outliers(self.dataset.rounds)

    @cached_property
    def cells(self) -> Mapping[Cell, Mapping[int, CellRound]]:
        """The good rounds of each cell, controls included."""
        return rounds_by_cell(self.dataset.rounds)

    @cached_property
    def plain_pairs(self) -> Mapping[Cell, PlainPair]:
        """The measured cells with a plain-process control."""
        return plain_pairs(self.cells)

    @cached_property
    def states(self) -> Mapping[Cell, ProcessStates]:
        """The measured cells that have two states over their processes."""
        return process_states(self.cells)

    @cached_property
    def inflation(self) -> Inflation:
        """By how much errors are larger than they seem."""
        return inflation(self.dataset.rounds, self.dataset.looks)

    @cached_property
    def floors(self) -> Mapping[Work, Floor]:
        """The noise floors of the cases."""
        return noise_floors(self.aa_pairs)

    @cached_property
    def mean_floors(self) -> Mapping[MeanKey, float]:
        """The noise floor of the geometric mean of each environment and kind of device."""
        return mean_noise_floors(self.dataset.rounds["environment"].unique(), self.side)
