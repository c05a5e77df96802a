"""A stored run and all that is concluded from its numbers, for its report, its answer, its check and the history."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from runner.analysis.compare.comparison import summarise
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.comparison_model import Comparison
from runner.analysis.dataset import load_dataset
from runner.analysis.model import Dataset, Grade, QualityIssue
from runner.analysis.quality import annotate, quality_issues
from runner.analysis.quality.grade import grade
from runner.analysis.releases import EnvironmentRelease, releases
from runner.core.collector import collector_paused
from runner.core.metrics import BY_NAME, TIME
from runner.stats.intervals import MARGIN
from runner.store.run import Run


@dataclass(frozen=True)
class Analysis:
    """A run and what is concluded from it; each conclusion is computed once, when it is first asked for.

    Attributes:
        dataset: the run as tables.
        margin: the relative change that counts as none.
    """

    dataset: Dataset
    margin: float

    @cached_property
    def measured(self) -> MeasuredRun:
        """What the conclusions share."""
        return MeasuredRun(self.dataset)

    def measured_as(self, metric: str) -> MeasuredRun:
        """Return the run with the values of a metric in place of its times, by its name."""
        return self.measured if metric == TIME else self.measured.of_metric(BY_NAME[metric])

    @cached_property
    def issues(self) -> tuple[QualityIssue, ...]:
        """What makes numbers of the run doubtful, serious issues first."""
        return quality_issues(self.measured)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The environments of each framework against its first, with their quality issues; A/A pairs come last."""
        compared = summarise(self.measured, margin=self.margin)
        return tuple(annotate(each, {self.dataset.run: self.issues}) for each in compared)

    @cached_property
    def grade(self) -> Grade | None:
        """How far the run can be trusted; None without a good record."""
        return grade(self.measured, self.issues, self.comparisons)

    @cached_property
    def releases(self) -> Mapping[str, EnvironmentRelease]:
        """The release of each environment."""
        return releases(self.dataset)


def analyse(dataset: Dataset, margin: float = MARGIN) -> Analysis:
    """Return what is concluded from a run.

    Args:
        dataset: the run.
        margin: the relative change that counts as none.
    """
    return Analysis(dataset, margin)


@collector_paused()
def analyse_run(run: Run, margin: float = MARGIN) -> Analysis:
    """Read a run, and return what is concluded from it.

    Args:
        run: the run.
        margin: the relative change that counts as none.

    Raises:
        RecordError: the run cannot be read.
    """
    return analyse(load_dataset(run), margin)
