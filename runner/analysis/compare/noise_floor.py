"""The noise floor: how much an environment differs from itself, on two servers, in the same rounds."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from runner.analysis.compare.geometric_mean import geometric_means
from runner.analysis.compare.pairing import Side, pairs
from runner.analysis.compare.verdicts import draft
from runner.analysis.comparison_model import GeometricMean, Row
from runner.analysis.controls import AAPair
from runner.analysis.model import MIN_ROUNDS
from runner.core.model.cells import is_control, is_twin, without_control
from runner.core.units import percent

FLOOR_LEVEL = 0.05
"""The p-value up to which an A/A pair differs by more than its rounds explain."""


MeanKey = tuple[str, str]
"""An environment and a kind of device."""


class Work(NamedTuple):
    """A case, a phase and a precision; the last two are empty for the case as a whole."""

    case_id: str
    phase: str = ""
    precision: str = ""


class Floor(NamedTuple):
    """The difference of an A/A pair: the absolute logarithm of its ratio, and what was measured."""

    log_ratio: float
    environment: str
    phase: str
    precision: str


def noise_floors(aa_pairs: Iterable[AAPair]) -> dict[Work, Floor]:
    """Return the noise floors of a run, from its A/A pairs with a round in common.

    There is one for each case, phase and precision that a pair was measured in, and one for each case as a whole. If
    there are several pairs, the largest difference counts. A pair that chance explains has none: its ratio is one draw
    of the noise that the intervals contain already.
    """
    floors: dict[Work, Floor] = {}
    for pair in aa_pairs:
        if pair.p_value > FLOOR_LEVEL:
            continue
        cell = pair.twin
        floor = Floor(abs(math.log(pair.ratio)), without_control(cell.environment), cell.phase, cell.precision)
        for work in (Work(cell.case_id, cell.phase, cell.precision), Work(cell.case_id)):
            floors[work] = max(floors.get(work, floor), floor)
    return floors


def mean_noise_floors(environments: Iterable[str], side_of: Callable[[str], Side]) -> dict[MeanKey, float]:
    """Return environment and kind of device -> the absolute logarithm of the geometric mean of its A/A pairs.

    Environments without a twin, and those with a single pair, are missing.

    Args:
        environments: of a run, with the controls.
        side_of: returns the side of one of them.
    """
    floors = {}
    for twin in sorted(filter(is_twin, environments)):
        base, other = side_of(without_control(twin)), side_of(twin)
        for mean in geometric_means(draft(base, other, pair) for pair in pairs(base, other, best=False)):
            floors[base.environment, mean.device_name] = abs(math.log(mean.ratio))
    return floors


def flag_noisy_means(
    means: Iterable[GeometricMean], base: str, floors: Mapping[MeanKey, float]
) -> Iterator[GeometricMean]:
    """Yield the means, with a note where an environment differed from itself by as much on the same kind of device.

    The floor is that of one of the two sides if there is one, else of any environment: the largest of these.
    """
    for mean in means:
        of_kind = {name: floor for (name, device_name), floor in floors.items() if device_name == mean.device_name}
        candidates = of_kind.keys() & {base, mean.environment} or of_kind.keys()
        name = max(candidates, key=lambda name: of_kind[name], default="")
        if name and not is_control(mean.environment) and abs(math.log(mean.ratio)) <= of_kind[name]:
            noise = f"{name} differs from itself by {percent(math.expm1(of_kind[name]))}, which is no less than this"
            yield replace(mean, noise=noise)
        else:
            yield mean


def apply_noise_floors(rows: Iterable[Row], floors_by_run: Mapping[str, Mapping[Work, Floor]]) -> Iterator[Row]:
    """Yield the rows; a difference that is no larger than the noise floor becomes inconclusive.

    The floor is that of the same case, phase and precision; if none was measured, that of the same case.

    Args:
        rows: with their verdicts.
        floors_by_run: run -> its floors.
    """
    for row in rows:
        floors = floors_by_run.get(row.runs[0], {}) if len(row.runs) == 1 else {}
        floor = floors.get(Work(row.case_id, row.phase, row.precision)) or floors.get(Work(row.case_id))
        called = row.verdict in ("slower", "faster") and not is_control(row.environment)
        if floor and called and abs(math.log(row.ratio or 1)) <= floor.log_ratio:
            reason = _reason(row, floor)
            yield replace(
                row,
                verdict="inconclusive",
                code="noise-floor",
                reason=reason,
                more_rounds=MIN_ROUNDS,
                more_rounds_low=MIN_ROUNDS,
            )
        else:
            yield row


def _reason(row: Row, floor: Floor) -> str:
    same = (row.phase, row.precision) == (floor.phase, floor.precision)
    where = "here" if same else f"in {floor.phase} {floor.precision} of this case"
    return f"{floor.environment} differs from itself by {percent(math.expm1(floor.log_ratio))} {where}, as much as this"
