"""The noise floor of a case: by how much an environment differed from itself, on two servers, in the same rounds."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from runner import stats
from runner.comparison import Results, Row
from runner.controls import TWIN, is_twin
from runner.drift import beside

Floor = tuple[str, float]
"""The environment that was measured beside itself, and the logarithm of the ratio, at least 0."""


def floors(results: Results) -> dict[str, Floor]:
    """Return the floor of each case of a run that has an A/A pair with a round in common."""
    found: dict[str, Floor] = {}
    for one in beside(results.rounds):
        environment, _, workload, case, *_ = one.cell.split("/")
        found[f"{workload}/{case}"] = environment.removesuffix(TWIN), abs(math.log(one.ratio))
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
