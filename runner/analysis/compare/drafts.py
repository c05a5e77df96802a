"""A row of a comparison before its verdict: its rounds, and by how much its errors are larger than these show."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from runner.analysis.comparison_model import Row, Widening
from runner.analysis.error_inflation import Inflation
from runner.core.grouping import grouped
from runner.stats import intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Draft:
    """A row before its verdict.

    Attributes:
        evidence: what the verdict is based on; None if the row is complete without it.
        looks: the numbers of rounds at which verdicts were planned.
        ratios: round -> the logarithm of other over base; empty if the sides share no round.
        groups: round -> what it shares with the rounds that it is not independent of, see ``boards.groups``; empty if
            that is not known.
        mean_ratios: round -> the same of the mean time of a call, see ``tails``; empty if the sides share no round.
        is_coarse: whether the clock's ticks, not the noise, decide how far the rounds are apart.
    """

    row: Row
    evidence: intervals.PairedEvidence | None = None
    looks: tuple[int, ...] = ()
    ratios: Mapping[int, float] = field(default_factory=dict)
    groups: Mapping[int, Hashable] = field(default_factory=dict)
    mean_ratios: Mapping[int, float] = field(default_factory=dict)
    is_coarse: bool = False

    @property
    def independent_rounds(self) -> int:
        """How many rounds there are; those of a group count once, and unrelated rounds not at all."""
        return len(set(self.groups.values())) if self.groups else len(self.ratios)

    def for_ranks(self, log_ratios: Mapping[int, float]) -> "NDArray[np.float64] | None":
        """Return log ratios of rounds, (R,), if their ranks can be compared; None if coarse or not independent."""
        if self.is_coarse or self.independent_rounds < len(log_ratios):
            return None
        return np.array(list(log_ratios.values()))


def variance_factor(draft: Draft, inflations: Mapping[str, Inflation]) -> float:
    """Return how many times larger the squared error of a pair is than it seems; 1 for sides of different runs."""
    inflation = _inflation(draft, inflations)
    return inflation.factor(draft.independent_rounds) if inflation else 1.0


def freedom(draft: Draft, inflations: Mapping[str, Inflation]) -> float:
    """Return the degrees of freedom of the error of a pair; rounds that depend on each other have fewer."""
    inflation = _inflation(draft, inflations)
    of_rounds = inflation.freedom(draft.independent_rounds) if inflation else None
    return of_rounds or float(draft.evidence.freedom if draft.evidence else 1)


def widenings(drafts: Iterable[Draft], inflations: Mapping[str, Inflation]) -> tuple[Widening, ...]:
    """Return for each run with inflated errors the smallest and the largest factor of its intervals, and why."""
    factors = grouped(
        (draft.row.runs[0], math.sqrt(variance_factor(draft, inflations))) for draft in drafts if draft.evidence
    )
    return tuple(
        Widening(run=run, smallest=min(of_run), largest=max(of_run), reason=inflations[run].reason)
        for run, of_run in factors.items()
        if max(of_run) > 1
    )


def _inflation(draft: Draft, inflations: Mapping[str, Inflation]) -> Inflation | None:
    """Return by how much the errors of the run of a draft are larger than they seem; None if its sides are unpaired."""
    return inflations.get(draft.row.runs[0]) if len(draft.row.runs) == 1 and draft.ratios else None
