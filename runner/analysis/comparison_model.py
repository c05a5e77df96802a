"""Environments compared with a base: one row for each cell, and what is said about all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from runner.analysis.boards import Board
from runner.analysis.model import Grade, QualityIssue
from runner.analysis.releases import EnvironmentRelease
from runner.catalog.published import Figure
from runner.core.metrics import TIME
from runner.core.model import Cell
from runner.core.model.cells import is_control, plain
from runner.stats.intervals import MARGIN

Verdict = Literal[
    "slower", "faster", "more", "less", "fewer", "same", "same-median", "inconclusive", "not-comparable", "not-measured"
]
"""What is said of a row; ``more``, ``less`` and ``fewer`` of a metric that is no time, such as memory."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Kind = Literal["framework", "speed", "digest", "package", "alone", "rest"]
"""The kinds of a difference, in the order they are shown; see ``Difference``."""
LEANING = "leaning"
"""The code of an open row that is probably slower, or faster: its 95 % interval excludes 1, its ratio is beyond the
margin, and it is a discovery at ``intervals.PROBABLE_RATE`` among the rows that are not called different."""
MAX_MORE_ROUNDS = 30
"""The largest number of further rounds that is forecast: what needs more is a question of the margin or the noise."""


class RobustRounds(NamedTuple):
    """The rounds of a row without their outliers: the centre of the log ratios and their standard deviation."""

    mean: float
    sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The comparison of one cell of an environment with one of the base.

    Attributes:
        base: the base's cell; ``other`` the environment's. Their case, phase and precision are equal: a published
            figure gets the phase of the cell that it is compared with.
        base_seconds: median over the compared rounds, or all of them if the sides share none, of the median sample of
            the base; ``seconds`` the other's. For a published figure, the published time.
        base_spread: published standard deviation of the base in seconds; None if it was measured, or if none was
            published. ``spread`` is the other's.
        ratio: other over base time, below 1 is faster; None if two measured cells are not comparable.
        ratio_low: lower end of the 95 % interval of the ratio, ``ratio_high`` the upper; None without an interval.
        rounds: how many rounds, or pairs of rounds, the interval is based on.
        more_rounds: how many more rounds decide an open verdict with a probability of 0.8; above MAX_MORE_ROUNDS if no
            number up to it does, and 0 if it is decided. ``more_rounds_low`` is the number for 0.2.
        abandoned: whether the run gave it no further round although verdicts at more rounds were planned: it was too
            improbable that they would decide.
        round_sd: standard deviation of a round's log ratio; None with one round, and without an interval.
        independent_rounds: ``rounds``, or the number of pairs of servers if several rounds share them.
        robust: its rounds without outliers, where these make most of ``round_sd``; else None, as for a decided row.
        mean_ratio: other over base of the mean time of all calls, see ``compare.tails``; None if the sides share no
            round. ``mean_ratio_low`` and ``mean_ratio_high`` are the ends of its 95 % interval.
        base_p95_seconds: the time that 95 % of the base's calls do not exceed; None if it is not known. ``p95_seconds``
            is the other's.
        p_value: of no difference, for all looks together; None if there is no interval, as are the next three.
        level: the two-sided level of the interval that decides: the error that its look may spend.
        deciding_low: lower end of the interval that decides, ``deciding_high`` the upper; wider than the 95 % interval
            where verdicts were taken at several looks.
        metric: the name of what is compared, of ``core.metrics.METRICS``.
        base_amount: median over the compared rounds of the base's values of a metric other than time, in its unit; None
            for a row about time. ``amount`` is the other's.
        code: why the verdict is what it is: what is in doubt, what differs, or why there is no record.
        reason: the code as a sentence.
        runs: the runs of the two sides, the base's first: one if both are from the same run, none if both were
            published.
        boards: those whose rounds are compared, or without such rounds those that measured either side; none if both
            were published or not measured.
        device_name: the kind of device of its measured sides; ``A and B`` if they differ.
        in_plain_processes: whether its rounds and times are those of the plain-process controls of its cells, which
            show another ratio than the cells do.
        quality_issues: of the pair and of both cells, serious ones first; until ``runner.analysis.quality.annotate``
            adds those of the cells, only that of a pair of user networks that were not verified against each other.
    """

    base: Cell
    other: Cell
    base_seconds: float | None = None
    seconds: float | None = None
    base_spread: float | None = None
    spread: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    rounds: int = 0
    more_rounds: int = 0
    more_rounds_low: int = 0
    abandoned: bool = False
    round_sd: float | None = None
    independent_rounds: int = 0
    robust: RobustRounds | None = None
    mean_ratio: float | None = None
    mean_ratio_low: float | None = None
    mean_ratio_high: float | None = None
    base_p95_seconds: float | None = None
    p95_seconds: float | None = None
    p_value: float | None = None
    level: float | None = None
    deciding_low: float | None = None
    deciding_high: float | None = None
    metric: str = TIME
    base_amount: float | None = None
    amount: float | None = None
    verdict: Verdict
    code: str = ""
    reason: str = ""
    runs: tuple[str, ...] = ()
    boards: tuple[Board, ...] = ()
    device_name: str = ""
    in_plain_processes: bool = False
    quality_issues: tuple[QualityIssue, ...] = ()

    @property
    def measured_cells(self) -> tuple[Cell, Cell]:
        """The cells whose rounds the row is of, the base's first: further rounds measure them."""
        return (plain(self.base), plain(self.other)) if self.in_plain_processes else (self.base, self.other)

    @property
    def verdict_on_median(self) -> Verdict:
        """The verdict without regard to the means, which searches and nights do not follow."""
        return "same" if self.verdict == "same-median" else self.verdict

    @property
    def cell_ids(self) -> tuple[str, str]:
        """The ids of the two cells, the base's first."""
        return self.base.id, self.other.id

    @property
    def values(self) -> tuple[float | None, float | None]:
        """What is compared, in the unit of the metric, the base's first; None for a side without a value."""
        return (self.base_seconds, self.seconds) if self.metric == TIME else (self.base_amount, self.amount)

    @property
    def environment(self) -> str:
        """The environment that is compared with the base."""
        return self.other.environment

    @property
    def implementation(self) -> str:
        """The implementation of the other side."""
        return self.other.implementation

    @property
    def base_implementation(self) -> str:
        """The implementation of the base."""
        return self.base.implementation

    @property
    def workload(self) -> str:
        """The workload of both cells."""
        return self.other.workload

    @property
    def case(self) -> str:
        """The case of both cells, without its workload."""
        return self.other.case

    @property
    def case_id(self) -> str:
        """``workload/case``."""
        return self.other.case_id

    @property
    def phase(self) -> str:
        """The phase of both cells."""
        return self.other.phase

    @property
    def precision(self) -> str:
        """The precision of both cells."""
        return self.other.precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference between an environment and the base.

    Attributes:
        base: the value of the base as text; None if it is not known. ``other`` likewise.
        kind: ``framework``: its release; ``speed``: a fact that times may depend on; ``digest``: the image's, which
            follows from the others; ``package``: one that both have; ``alone``: one that a side lacks, which has None;
            ``rest``: all other settings, and facts without influence on times on this device.
    """

    name: str
    base: str | None
    other: str | None
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricMean:
    """The geometric mean of an environment's ratios over the base on one kind of device, all workloads of equal weight.

    Attributes:
        ratio: other over base time, below 1 is faster.
        ratio_low: lower end of its 95 % interval, ``ratio_high`` the upper; None with one round.
        p_value: of no difference, for all looks together; None with one round.
        median_ratio: the ratio of the median cell, over all of its rounds.
        cells: how many ratios it averages; ``workloads`` are theirs, sorted.
        rounds: how many rounds all of these cells share; only these are used.
        noise: a sentence if an environment differed from itself by as much; otherwise empty.
        device_name: the kind of device that measured the cells.
        cell_ids: of the environment's cells that it averages.
    """

    environment: str
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    p_value: float | None
    median_ratio: float
    cells: int
    workloads: tuple[str, ...]
    rounds: int
    noise: str = ""
    device_name: str = ""
    cell_ids: tuple[str, ...] = ()


class Detectable(NamedTuple):
    """The smallest relative change that is called in 8 of 10 runs, and the numbers of rounds at which it could be.

    The change is None if no row has two rounds.
    """

    change: float | None = None
    rounds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Widening:
    """The intervals of a run are wider than its rounds alone would have them.

    Attributes:
        run: its id.
        smallest: the smallest factor of a row's interval, ``largest`` the largest; it depends on the number of rounds.
        reason: why, as a clause.
    """

    run: str
    smallest: float
    largest: float
    reason: str


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A run that is newer than the runs of a comparison, and that the comparison could not use.

    Attributes:
        run: its id.
        reason: why, as a clause.
    """

    run: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Environments against a base.

    Attributes:
        device: the device of the base as its records name it; ``device_name`` is its product name.
        rows: sorted by case, phase and implementation.
        only: a sentence for each implementation without a partner, and for each environment without a row.
        margin: the relative change that counts as none.
        devices: side -> name of its device, if a side was published; otherwise empty.
        figures: the published figures in the rows, each once.
        differences: environment -> differences between it and the base; none if a side was published or not measured.
        overall: the mean over the cells of each environment that has two or more.
        grades: run -> its grade, of the runs of the rows; empty until a workflow adds them, as is the next.
        releases: environment -> its release.
        widenings: of the runs whose intervals are widened.
        passed_over: newer runs that have an environment and could not be used, newest first.
        detectable_change: the change of ``Detectable`` with the median of the rows' noise, and ``detectable_rounds``
            its rounds; None and empty on several kinds of devices.
        detectable_by_kind: kind of device -> the same for its rows.
        metrics: rows about metrics other than time, in the order of ``core.metrics.OTHERS``, each sorted as ``rows``.
        absent: metric -> how many of the measured rows are without it, and why, as a sentence.
    """

    base: str
    others: tuple[str, ...]
    device: str
    device_name: str
    rows: tuple[Row, ...]
    only: tuple[str, ...] = ()
    margin: float = MARGIN
    devices: Mapping[str, str] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    differences: Mapping[str, tuple[Difference, ...]] = field(default_factory=dict)
    overall: tuple[GeometricMean, ...] = ()
    grades: Mapping[str, Grade] = field(default_factory=dict)
    releases: Mapping[str, EnvironmentRelease] = field(default_factory=dict)
    widenings: tuple[Widening, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    detectable_change: float | None = None
    detectable_rounds: tuple[int, ...] = ()
    detectable_by_kind: Mapping[str, Detectable] = field(default_factory=dict)
    metrics: tuple[Row, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)

    def rows_of(self, metric: str) -> tuple[Row, ...]:
        """Return the rows about a metric, by its name."""
        return self.rows if metric == TIME else tuple(row for row in self.metrics if row.metric == metric)

    def rows_by_cell(self, metric: str) -> dict[Cell, Row]:
        """Return cell of the other side -> its row about a metric, by its name.

        For a metric of environments, the cell is the one that stands for the environment.
        """
        return {row.other: row for row in self.rows_of(metric)}

    @property
    def is_control(self) -> bool:
        """Whether it compares an environment with its twin: an A/A control, and no comparison of releases."""
        return any(map(is_control, self.others))

    def count(self, environment: str) -> dict[Verdict, int]:
        """Return how many rows of an environment have each verdict, without those that no row has."""
        verdicts = [row.verdict for row in self.rows if row.environment == environment]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS if verdict in verdicts}
