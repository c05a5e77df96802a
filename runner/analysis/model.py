"""What a run found, as tables, and what a comparison says of it: the values merge, compare and report share."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from runner.catalog.published import Figure
from runner.core.model import Cell

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["same", "slower", "faster", "inconclusive", "not-comparable", "not-measured"]
VERDICTS: tuple[Verdict, ...] = ("slower", "faster", "same", "inconclusive", "not-comparable", "not-measured")

Kind = Literal["framework", "speed", "digest", "package", "alone", "rest"]
"""Of a difference, in the order they are shown; see ``Difference``."""

COMPARABLE: Mapping[str, str] = {
    "device": "device",
    "device_name": "device",
    "driver": "driver",
    "clocks": "clocks",
    "pinned": "clocks",
    "protocol": "protocol",
    "effective_precision": "precision",
    "threads": "threads",
    "corpus": "corpus",
    "harness": "harness",
}
"""Column of the rounds that both sides must agree in -> code of the row where they do not."""


class Turns(NamedTuple):
    """What a cell took in the turns of a round: a name that those share who took turns, and medians in seconds."""

    name: str
    medians: tuple[float, ...]


Round = tuple[float, Turns | None]
"""A cell's time in a round, in seconds: the median of all its samples, and of each turn where it took any."""


def log_ratio(base: Round, other: Round) -> float:
    """Return the datum of a round: the logarithm of other over base.

    Where both took turns with each other it is the median over the turns that both had, each beside the other's; what
    disturbs the machine for the length of some turns then disturbs both sides, or few of the ratios. Elsewhere it is
    of the medians.

    >>> round(math.exp(log_ratio((1.0, Turns("a", (1.0, 3.0, 1.0))), (2.0, Turns("a", (2.0, 6.0))))), 9)
    2.0
    """
    if base[1] and other[1] and base[1].name == other[1].name:
        both = zip(base[1].medians, other[1].medians, strict=False)  # one may have been precise before the other
        return median(math.log(two / one) for one, two in both)
    return math.log(other[0] / base[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A cell as the plan of its run had it; ``code`` and ``reason`` are of a skip, else empty."""

    cell: Cell
    kind: str
    framework: str
    device: str
    verdict: Literal["run", "skip"]
    code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One run as tables.

    Attributes:
        samples: a row for each measured iteration, with the columns of ``runner.store.samples.COLUMNS``.
        rounds: a row for each good record: the cell, its facts, ``seconds`` (the median), ``iterations``
            and ``turns``, a ``Turns`` or None.
        failures: a row for each record that is not: the cell, its facts, ``failure`` and ``reason``.
        plan: every cell that was asked for.
        machine: facts about the machine.
        environments: environment id -> facts about it; ``framework`` and ``release`` among them where they are known.
        canary: (case id, round, seconds) of a fixed product, in the order measured.
        looks: the numbers of rounds at which its verdicts were taken, or could have been.
        warning: what is doubtful about the run as a whole, or None.
    """

    run: str
    samples: "pd.DataFrame"
    rounds: "pd.DataFrame"
    failures: "pd.DataFrame"
    plan: tuple[Planned, ...]
    machine: Mapping[str, Any] = field(default_factory=dict)
    environments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    canary: tuple[tuple[str, int, float], ...] = ()
    looks: tuple[int, ...] = ()
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityIssue:
    """One thing that is doubtful about a run.

    Attributes:
        code: one of ``runner.analysis.quality.CODES``.
        sentence: what was seen.
        serious: it puts a verdict into question; else it makes one harder to reach.
        environment: what it is about; empty for the run as a whole, and then ``cell`` is empty, too.
        cell: the id of the cell.
        extent: how bad it is beside others of the same code, larger is worse.
    """

    code: str
    sentence: str
    serious: bool
    environment: str = ""
    cell: str = ""
    extent: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The comparison of one cell of an environment with one of the base.

    Attributes:
        base: the base's cell; ``other`` the environment's. Their case, phase and precision are equal: a published
            figure gets the phase of the cell that it is compared with.
        base_seconds: median over rounds of the median sample of the base; ``seconds`` the other's. For a published
            figure, the published time.
        base_spread: published standard deviation of the base in seconds; None if it was measured, or if none was
            published. ``spread`` is the other's.
        ratio: other over base time, below 1 is faster; None if two measured cells are not comparable.
        ratio_low: lower end of the 95 % interval of the ratio, ``ratio_high`` the upper; None without an interval.
        rounds: how many rounds, or pairs of rounds, the interval is based on.
        more_rounds: about how many more rounds should decide an open verdict; 0 if it is decided.
        p_value: of no difference, for all looks together; None if the rounds cannot be paired.
        code: why the verdict is what it is: what is in doubt, what differs, or why there is no record.
        reason: the code as a sentence.
        runs: the runs of the two sides, the base's first: one if both are from the same run, none if both were
            published.
        quality_issues: of both cells, serious ones first; empty until ``runner.analysis.quality.annotate`` adds them.
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
    p_value: float | None = None
    verdict: Verdict
    code: str = ""
    reason: str = ""
    runs: tuple[str, ...] = ()
    quality_issues: tuple[QualityIssue, ...] = ()

    @property
    def cell_ids(self) -> tuple[str, str]:
        """The ids of the two cells, the base's first."""
        return self.base.id, self.other.id

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
    """Something in which an environment is not as the base.

    Attributes:
        base: what the base has, for people; None where that is not known. ``other`` likewise.
        kind: ``framework`` is its release, ``speed`` what time may depend on, ``digest`` the image's, which follows
            from the others, ``package`` one that both have, ``alone`` one that a side lacks, which has None, and
            ``rest`` settings that have no place in that order, and what has no part in a time on this device.
    """

    name: str
    base: str | None
    other: str | None
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricMean:
    """The geometric mean of an environment's ratios over the base, every workload with the same weight.

    Attributes:
        ratio: other over base time, below 1 is faster.
        ratio_low: end of its 95 % interval; None with one round, as ``ratio_high``.
        cells: how many ratios it is the mean of; ``workloads`` are theirs, sorted.
        rounds: those that all of these cells share; it is taken over them alone.
        noise: a sentence where an environment was as far from itself; else empty.
    """

    environment: str
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    cells: int
    workloads: tuple[str, ...]
    rounds: int
    noise: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Environments against a base.

    Attributes:
        device: what the base was measured on, as its records say; ``device_name`` for people.
        rows: sorted by case, phase and implementation.
        only: a sentence for each implementation that has no partner, and for each environment with nothing to show.
        margin: the change that counts as none.
        devices: side -> the name of what it was measured on, where a side was published; else empty.
        figures: the published figures in the rows, each once.
        differences: environment -> in what it differs from the base, beside the ratio; none where a side was published
            or not measured.
        overall: the mean over the cells of each environment that has two or more to take it of.
    """

    base: str
    others: tuple[str, ...]
    device: str
    device_name: str
    rows: tuple[Row, ...]
    only: tuple[str, ...] = ()
    margin: float = 0.02
    devices: Mapping[str, str] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    differences: Mapping[str, tuple[Difference, ...]] = field(default_factory=dict)
    overall: tuple[GeometricMean, ...] = ()

    def count(self, environment: str) -> dict[Verdict, int]:
        """Return how many rows of an environment have each verdict; a verdict no row has is left out."""
        words = [row.verdict for row in self.rows if row.environment == environment]
        return {word: words.count(word) for word in VERDICTS if word in words}
