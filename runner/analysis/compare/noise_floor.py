"""The noise floor: by how much an environment differed from itself, on two servers, in the same rounds."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from runner.analysis import statistics
from runner.analysis.compare.geometric_mean import geometric_means
from runner.analysis.compare.pairing import environment_side, pairs
from runner.analysis.compare.verdicts import draft
from runner.analysis.controls import aa_pairs
from runner.analysis.model import Dataset, GeometricMean, Row
from runner.core.model.cells import TWIN, is_twin

Work = tuple[str, str, str]
"""A case, a phase and a precision; the last two are empty where the case as a whole is meant."""


class Floor(NamedTuple):
    """What an A/A pair showed: the logarithm of its ratio, at least 0, and of what it was."""

    apart: float
    environment: str
    phase: str
    precision: str


def noise_floors(results: Dataset) -> dict[Work, Floor]:
    """Return the floors of a run, from its A/A pairs with a round in common.

    There is one for each case, phase and precision that a pair was measured in, and one for each case as a whole. Of
    several pairs it is the one that is farthest apart.
    """
    found: dict[Work, Floor] = {}
    for one in aa_pairs(results.rounds):
        environment, _, workload, case, phase, precision = one.cell.split("/")
        floor = Floor(abs(math.log(one.ratio)), environment.removesuffix(TWIN), phase, precision)
        for work in ((f"{workload}/{case}", phase, precision), (f"{workload}/{case}", "", "")):
            found[work] = max(found.get(work, floor), floor)
    return found


def mean_noise_floors(results: Dataset) -> dict[str, float]:
    """Return environment -> by how much it differed from itself in the mean over its cells: a logarithm, at least 0.

    Environments without a twin, and those with one cell beside it, are missing.
    """
    found = {}
    for name in sorted(name for name in results.rounds["environment"].unique() if is_twin(name)):
        base, other = environment_side(results, name.removesuffix(TWIN)), environment_side(results, name)
        for mean in geometric_means(draft(base, other, pair) for pair in pairs(base, other, best=False)):
            found[base.environment] = abs(math.log(mean.ratio))
    return found


def flag_noisy_means(means: Iterable[GeometricMean], base: str, floors: Mapping[str, float]) -> Iterator[GeometricMean]:
    """Yield the means, those told apart that are no farther from 1 than an environment beside itself came out.

    That is one of the two sides where one of them has a floor, else any: the one that is farthest apart.
    """
    for one in means:
        own = floors.keys() & {base, one.environment} or floors.keys()
        name = max(own, key=lambda name: floors[name], default="")
        if name and not is_twin(one.environment) and abs(math.log(one.ratio)) <= floors[name]:
            noise = f"{name} beside itself came out {math.expm1(floors[name]):.1%} apart, no less than this"
            yield replace(one, noise=noise)
        else:
            yield one


def apply_noise_floors(rows: Iterable[Row], known: Mapping[str, Mapping[Work, Floor]]) -> Iterator[Row]:
    """Yield the rows, those inconclusive whose difference is no larger than what an A/A pair had.

    The pair is one of the same case, phase and precision; where none was measured in these, of the same case.

    Args:
        rows: with their verdicts.
        known: run -> its floors.
    """
    for row in rows:
        of_run = known.get(row.runs[0], {}) if len(row.runs) == 1 else {}
        floor = of_run.get((row.case_id, row.phase, row.precision)) or of_run.get((row.case_id, "", ""))
        called = row.verdict in ("slower", "faster") and not is_twin(row.environment)
        if floor and called and abs(math.log(row.ratio or 1)) <= floor.apart:
            yield replace(
                row,
                verdict="inconclusive",
                code="noise-floor",
                reason=_reason(row, floor),
                more_rounds=statistics.MIN_ROUNDS,
            )
        else:
            yield row


def _reason(row: Row, floor: Floor) -> str:
    same = (row.phase, row.precision) == (floor.phase, floor.precision)
    where = "here" if same else f"in {floor.phase} {floor.precision} of this case"
    return f"{floor.environment} beside itself differed by {math.expm1(floor.apart):.1%} {where}, as much as this"
