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

Word = Literal["same", "slower", "faster", "inconclusive", "not-comparable", "not-measured"]
WORDS: tuple[Word, ...] = ("slower", "faster", "same", "inconclusive", "not-comparable", "not-measured")

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
    """One cell of one environment against one of the base.

    Attributes:
        environment: the other side; ``implementation`` is its, ``base_implementation`` the base's.
        base_seconds: the median over rounds of the medians of the base's samples; ``seconds`` of the other's. Of a
            published figure, what was published.
        base_spread: the standard deviation that was published with the base, in seconds; None where it is measured,
            or none was. ``spread`` of the other's.
        ratio: other over base time, below 1 is faster; None where two that were measured may not be compared.
        ratio_low: end of its 95 % interval; None where it has none, as ``ratio_high``.
        rounds: how many rounds, or pairs of rounds, the interval stands on.
        more: about how many further rounds would decide; 0 where it is decided.
        p_value: of no difference, for all looks together; None where rounds cannot be paired.
        code: what is doubtful, what differs, or why there is no record; empty where all is well.
        reason: the same as a sentence.
        run: the run it is read from; two, joined by " and ", where the sides are from different ones; empty where
            both were published.
        doubts: about both of its cells, the serious first; empty where nobody looked for any.
    """

    environment: str
    implementation: str
    base_implementation: str
    workload: str
    case: str
    phase: str
    precision: str
    base_seconds: float | None = None
    seconds: float | None = None
    base_spread: float | None = None
    spread: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    rounds: int = 0
    more: int = 0
    p_value: float | None = None
    verdict: Word
    code: str = ""
    reason: str = ""
    run: str = ""
    doubts: tuple[QualityIssue, ...] = ()

    @property
    def case_id(self) -> str:
        """``workload/case``."""
        return f"{self.workload}/{self.case}"


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
class Overall:
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
    overall: tuple[Overall, ...] = ()

    def count(self, environment: str) -> dict[Word, int]:
        """Return how many rows of an environment have each verdict; a verdict no row has is left out."""
        words = [row.verdict for row in self.rows if row.environment == environment]
        return {word: words.count(word) for word in WORDS if word in words}

    def cells(self, row: Row) -> tuple[str, str]:
        """Return the ids of the two cells of a row, the base's first."""
        place = (row.case_id, row.phase, row.precision)
        base, other = (self.base, row.base_implementation), (row.environment, row.implementation)
        return "/".join((*base, *place)), "/".join((*other, *place))
