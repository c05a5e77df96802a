"""The values that analysis and report share: a run as tables, reasons to doubt its numbers, and its grade."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from runner.core.metrics import TIME
from runner.core.model import Cell
from runner.store.journal import Journal

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

Level = Literal["good", "fair", "poor"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The grades, the best first."""
ADVICE: dict[Level, str] = {
    "good": "the machine was quiet and the comparisons are precise",
    "fair": "large differences hold; look twice at small ones",
    "poor": "do not use these numbers",
}
"""What each grade means, as a sentence."""

MIN_ROUNDS = 3
"""Rounds that it takes to estimate the noise: with two, a 95 % interval reaches nine standard deviations each way."""


class TurnCalls(NamedTuple):
    """The samples of a cell's turns in a round.

    Attributes:
        seconds: (N,), of a call each, in the order taken.
        plan: calls in a sample, samples in a turn, how many samples lead a turn and do not count, and how many
            calls precede the first turn. Two cells with the same plan made the same calls.
    """

    seconds: "NDArray[np.float64]"
    plan: tuple[int, int, int, int]


class TurnMedians(NamedTuple):
    """The turns of a cell in a round.

    Attributes:
        name: shared by the cells that took turns with each other.
        medians: of each turn, in seconds.
        calls: None in runs of older programs, whose turns had 10 ms, however many calls these were.
    """

    name: str
    medians: tuple[float, ...]
    calls: TurnCalls | None = None


Round = tuple[float, TurnMedians | None]
"""A cell's time in a round, in seconds: the median of all its samples, and of each turn if it took turns."""


def log_ratio(base: Round, other: Round) -> float:
    """Return the datum of a round: the logarithm of other over base.

    If both took turns with each other, and their turns have the same calls, it is the median over the calls of the
    ratio of a call's times. If their turns have other calls, it is the median over the ratios of adjacent turns. A
    disturbance that lasts for some turns then affects both sides, or few of the ratios. Otherwise it is the ratio of
    the medians.

    >>> round(math.exp(log_ratio((1.0, TurnMedians("a", (1.0, 3.0, 1.0))), (2.0, TurnMedians("a", (2.0, 6.0))))), 9)
    2.0
    """
    if base[1] and other[1] and base[1].name == other[1].name:
        if base[1].calls and other[1].calls and base[1].calls.plan == other[1].calls.plan:
            return _log_ratio_of_calls(base[1].calls.seconds, other[1].calls.seconds)
        turns = zip(base[1].medians, other[1].medians, strict=False)  # one may have been precise before the other
        ratios = sorted([other_seconds / base_seconds for base_seconds, other_seconds in turns])
        low, high = ratios[(len(ratios) - 1) // 2], ratios[len(ratios) // 2]  # the logarithm keeps the order
        return math.log(low) if low == high else (math.log(low) + math.log(high)) / 2
    return math.log(other[0] / base[0])


def _log_ratio_of_calls(base: "NDArray[np.float64]", other: "NDArray[np.float64]") -> float:
    """Return the median of the logarithms of other over base, call by call; one side may have made more of them."""
    import numpy as np

    count = min(len(base), len(other))
    ratios = other[:count] / base[:count]
    ratios.partition(((count - 1) // 2, count // 2))
    return float(np.log(ratios[[(count - 1) // 2, count // 2]]).mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A cell of a run's plan; ``code`` and ``reason`` say why it was skipped, and are empty if it was not."""

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
        samples: a row for each measured iteration that counts, with the columns of ``runner.store.samples.COLUMNS``.
        rounds: a row for each good record: the cell, its facts, ``seconds`` (the median), ``iterations``, ``times`` (an
            array of its samples) and ``turns``, a ``TurnMedians`` or None.
        failures: a row for each failed record: the cell, its facts, ``failure``, ``reason`` and ``model_check``.
        plan: every requested cell.
        machine: facts about the machine.
        environments: environment id -> facts about it, with ``framework`` and ``release`` if they are known.
        canary: (case id, round, seconds) of a fixed product, in the order measured.
        looks: the numbers of rounds at which its verdicts were, or could have been, taken.
        warnings: sentences about files of the run that are damaged and left out.
        provenance: what it takes to repeat the run: the journal's ``begun`` event and the plan's settings.
        journal: the events of the run.
        settings: the plan without its cells: device, backend, rounds and further options of the run.
        set_aside: the samples of disturbed rounds that were measured again; None without any.
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
    warnings: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    journal: Journal = field(default_factory=Journal)
    settings: Mapping[str, Any] = field(default_factory=dict)
    set_aside: "pd.DataFrame | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityIssue:
    """A reason to doubt the numbers of a run.

    Attributes:
        code: one of ``runner.analysis.quality.CODES``.
        sentence: what was observed.
        serious: it puts a verdict into question; otherwise it only makes one harder to reach.
        environment: the environment it concerns; empty for the run as a whole, as is ``cell``.
        cell: the id of the cell.
        extent: how severe it is among issues of the same code; larger is worse.
    """

    code: str
    sentence: str
    serious: bool
    environment: str = ""
    cell: str = ""
    extent: float = 0.0


class Reason(NamedTuple):
    """Why a grade is not better than ``level``: the code of the input, and a sentence."""

    level: Level
    code: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a grade is computed from; None where a run does not show it.

    Attributes:
        others_busy: CPUs that other programs kept busy while the median cell was measured, of ``cpus``.
        aa_pairs: number of A/A pairs; ``aa_differing`` of them differ beyond chance, or by more than 25 %.
        aa_median: relative difference from itself in the median A/A pair.
        canary: relative difference of the canary between its slowest and its quickest part of the run.
        cells: number of measured cells; ``serious_cells`` of them have a serious quality issue.
        rounds: how many rounds an open comparison has, or would have had; without comparisons, the median cell's.
        comparisons: number of comparisons with a ratio.
        half_width: how far the 95 % interval of the median comparison reaches to either side after that many rounds, as
            a share; None without a comparison of two rounds.
        aa_visible: the smallest difference that one of the A/A pairs would be reported with in 8 of 10 such runs.
        plain_pairs: number of cells with a plain-process control; ``plain_differing`` of them differ from it.
        metric: the name of the metric that ``rounds``, ``comparisons`` and ``half_width`` are about: of those that the
            run decides, ``decided``, the one with the widest interval.
    """

    others_busy: float | None
    cpus: int
    aa_pairs: int
    aa_differing: int
    aa_median: float | None
    canary: float | None
    cells: int
    serious_cells: int
    rounds: float
    comparisons: int
    half_width: float | None
    aa_visible: float | None = None
    plain_pairs: int = 0
    plain_differing: int = 0
    metric: str = TIME
    decided: tuple[str, ...] = (TIME,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """The grade of a run.

    Attributes:
        level: the worst level of its reasons; ``good`` without one.
        reasons: those of the worst level first, and in each level the most important first.
        figures: what it was computed from.
    """

    level: Level
    reasons: tuple[Reason, ...]
    figures: Figures

    @property
    def sentence(self) -> str:
        """The grade, what it means, and its most important reason."""
        because = f": {self.reasons[0].sentence}" if self.reasons else ""
        return f"{self.level}: {ADVICE[self.level]}{because}"
