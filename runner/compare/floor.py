"""The noise floor of a case: by how much an environment differed from itself, on two servers, in the same rounds."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from runner import stats
from runner.compare.sides import pairs, side
from runner.comparison import Results, Row
from runner.controls import TWIN, is_twin

Floor = tuple[str, float]
"""The environment that was measured beside itself, and the logarithm of the ratio, at least 0."""


def floors(results: Results) -> dict[str, Floor]:
    """Return the floor of each case of a run that has an A/A pair with a round in common."""
    found: dict[str, Floor] = {}
    for name in results.rounds["environment"].unique().tolist():
        if is_twin(name):
            one, two = side(results, name.removesuffix(TWIN)), side(results, name)
            for pair in pairs(one, two, best=False):
                base, other = one.measured.get(pair.base), two.measured.get(pair.other)
                shared = base.medians.keys() & other.medians.keys() if base and other else ()
                if base and other and shared:
                    logs = [math.log(other.medians[number] / base.medians[number]) for number in shared]
                    found[pair.base.case_id] = one.environment, abs(sum(logs) / len(logs))
    return found


def above(rows: Iterable[Row], known: Mapping[str, Mapping[str, Floor]]) -> Iterator[Row]:
    """Yield the rows, those inconclusive whose difference is no larger than what their case's A/A pair had.

    Args:
        rows: with their verdicts.
        known: run -> the floors of its cases.
    """
    for row in rows:
        name, floor = known.get(row.run, {}).get(row.case_id, ("", 0.0))
        if (
            row.verdict in ("slower", "faster")
            and not is_twin(row.environment)
            and abs(math.log(row.ratio or 1)) <= floor
        ):
            reason = f"{name} beside itself differed by {math.expm1(floor):.1%} here, as much as this"
            yield replace(row, verdict="inconclusive", code="noise-floor", reason=reason, more=stats.FEWEST)
        else:
            yield row
