"""The noise floor: by how much an environment differed from itself, on two servers, in the same rounds."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from runner import stats
from runner.comparison import Overall, Results, Row
from runner.controls import TWIN, is_twin
from runner.drift import beside

Work = tuple[str, str, str]
"""A case, a phase and a precision; the last two are empty where the case as a whole is meant."""


class Floor(NamedTuple):
    """What an A/A pair showed: the logarithm of its ratio, at least 0, and of what it was."""

    apart: float
    environment: str
    phase: str
    precision: str


def floors(results: Results) -> dict[Work, Floor]:
    """Return the floors of a run, from its A/A pairs with a round in common.

    There is one for each case, phase and precision that a pair was measured in, and one for each case as a whole. Of
    several pairs it is the one that is farthest apart.
    """
    found: dict[Work, Floor] = {}
    for one in beside(results.rounds):
        environment, _, workload, case, phase, precision = one.cell.split("/")
        floor = Floor(abs(math.log(one.ratio)), environment.removesuffix(TWIN), phase, precision)
        for work in ((f"{workload}/{case}", phase, precision), (f"{workload}/{case}", "", "")):
            found[work] = max(found.get(work, floor), floor)
    return found


def mean_floor(results: Results) -> Floor | None:
    """Return how far apart an environment beside itself came out in the mean over its cells; None with fewer than two.

    It is taken as ``overall`` takes its means: each workload with the same weight, without compile times. Of several
    environments it is that which is farthest apart; its phase and precision are empty.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for one in beside(results.rounds):
        environment, _, workload, _, phase, _ = one.cell.split("/")
        if not phase.startswith("compile"):
            of_environment = found.setdefault(environment.removesuffix(TWIN), {})
            of_environment.setdefault(workload, []).append(math.log(one.ratio))
    means = [
        Floor(abs(fmean(map(fmean, logs.values()))), name, "", "")
        for name, logs in found.items()
        if sum(map(len, logs.values())) > 1
    ]
    return max(means, default=None)


def over_the_noise(means: Iterable[Overall], floor: Floor | None) -> Iterator[Overall]:
    """Yield the means, those told apart that are no farther from 1 than an environment beside itself came out."""
    for one in means:
        if floor and not is_twin(one.environment) and abs(math.log(one.ratio)) <= floor.apart:
            noise = f"{floor.environment} beside itself came out {math.expm1(floor.apart):.1%} apart, no less than this"
            yield replace(one, noise=noise)
        else:
            yield one


def above(rows: Iterable[Row], known: Mapping[str, Mapping[Work, Floor]]) -> Iterator[Row]:
    """Yield the rows, those inconclusive whose difference is no larger than what an A/A pair had.

    The pair is one of the same case, phase and precision; where none was measured in these, of the same case.

    Args:
        rows: with their verdicts.
        known: run -> its floors.
    """
    for row in rows:
        of_run = known.get(row.run, {})
        floor = of_run.get((row.case_id, row.phase, row.precision)) or of_run.get((row.case_id, "", ""))
        called = row.verdict in ("slower", "faster") and not is_twin(row.environment)
        if floor and called and abs(math.log(row.ratio or 1)) <= floor.apart:
            yield replace(
                row, verdict="inconclusive", code="noise-floor", reason=_reason(row, floor), more=stats.FEWEST
            )
        else:
            yield row


def _reason(row: Row, floor: Floor) -> str:
    same = (row.phase, row.precision) == (floor.phase, floor.precision)
    where = "here" if same else f"in {floor.phase} {floor.precision} of this case"
    return f"{floor.environment} beside itself differed by {math.expm1(floor.apart):.1%} {where}, as much as this"
