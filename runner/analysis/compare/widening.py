"""Which intervals of a comparison are wider than their rounds alone would have them, by how much, and why."""

import math
from collections.abc import Iterable, Mapping

from runner.analysis.compare.drafts import Draft, variance_factor
from runner.analysis.comparison_model import Widening
from runner.analysis.error_inflation import Inflation


def widenings(drafts: Iterable[Draft], inflations: Mapping[str, Inflation]) -> tuple[Widening, ...]:
    """Return for each run with inflated errors the smallest and the largest factor of its intervals."""
    factors: dict[str, list[float]] = {}
    for draft in drafts:
        if draft.evidence:
            factor = math.sqrt(variance_factor(draft, inflations))
            factors.setdefault(draft.row.runs[0], []).append(factor)
    return tuple(
        Widening(run=run, smallest=min(of_run), largest=max(of_run), reason=inflations[run].reason)
        for run, of_run in factors.items()
        if max(of_run) > 1
    )
