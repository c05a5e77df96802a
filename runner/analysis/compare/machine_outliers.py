"""How many slow outliers among the calls of a case are the machine's: what the A/A pair of the case shows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from runner.core.model import Cell
from runner.core.model.cells import is_twin, origin
from runner.stats.sample_shape import slow_share

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


class MachineOutliers(NamedTuple):
    """What an A/A pair shows of slow outliers.

    Attributes:
        random_share: the share of calls that are outliers of the machine.
        rate: the share of its calls that are slow outliers, those of the program included.
        calls: the number of its calls.
        longest: its longest call, in medians of its round.
    """

    random_share: float = 0.0
    rate: float = 0.0
    calls: int = 0
    longest: float = 1.0


NO_OUTLIERS = MachineOutliers()


def machine_outliers(rounds: "pd.DataFrame") -> dict[tuple[str, str, str], MachineOutliers]:
    """Return case, phase and precision -> what an A/A pair shows of the outliers of the machine; the worst of several.

    In a round, the sides of an A/A pair have counts of slow outliers (``sample_shape.slow_share``) that differ by
    chance alone. If the machine makes them at random, half of the mean squared difference is their mean (the variance
    of Poisson's distribution). What both sides have in each round is a part of the program.

    Args:
        rounds: the good rounds of a run.
    """
    if not any(map(is_twin, rounds["environment"].unique())):
        return {}
    by_cell: dict[Cell, dict[int, NDArray[np.float64]]] = {}
    for cell_id, number, times in zip(*(rounds[name].tolist() for name in ("cell", "round", "times")), strict=True):
        by_cell.setdefault(Cell.parse(cell_id), {})[number] = times
    outliers: dict[tuple[str, str, str], MachineOutliers] = {}
    for twin, of_twin in by_cell.items():
        of_origin = by_cell.get(origin(twin), {}) if is_twin(twin.environment) else {}
        shared = [(of_twin[number], of_origin[number]) for number in of_twin if number in of_origin]
        if shared:
            work = (twin.case_id, twin.phase, twin.precision)
            outliers[work] = max(outliers.get(work, NO_OUTLIERS), _of_pair(shared))
    return outliers


def _of_pair(rounds: "Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]") -> MachineOutliers:
    counts = [[slow_share(side) * len(side) for side in sides] for sides in rounds]
    calls = sum(len(side) for sides in rounds for side in sides)
    random_count = sum((twin - base) ** 2 / 2 for twin, base in counts) / len(rounds)
    longest = max(float(side.max() / np.median(side)) for sides in rounds for side in sides)
    return MachineOutliers(random_count * 2 * len(rounds) / calls, sum(map(sum, counts)) / calls, calls, longest)
