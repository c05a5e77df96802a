"""Quality issue ``calls-differ``: a step whose calls differ from each other, and come back after so many."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from runner.analysis.model import QualityIssue
from runner.analysis.quality.cell_checks import CellSamples
from runner.core import units
from runner.stats.periods import period


def calls_differ(cell: CellSamples) -> Iterator[QualityIssue]:
    """Check whether the calls of a cell repeat, such as those of a loop over batches of different lengths."""
    plans = [each.calls.plan if each and each.calls else None for each in cell.turns]
    places = [_places(len(seconds), plan) for seconds, plan in zip(cell.times, plans, strict=True)]
    turn = plans[0][1] + plans[0][2] if plans and plans[0] else 0
    repeating = period(cell.times, places, turn)
    if repeating:
        batch = max([int(each) for each in cell.known_values("batch")], default=1)
        samples = f"samples of {batch} calls" if batch > 1 else "calls"
        text = f"its calls differ, and repeat every {repeating.length} {samples}: "
        text += f"the slowest of them take {units.digits(repeating.difference)} times as long as "
        text += "the quickest" if repeating.is_of_all else "most others"
        yield cell.issue("calls-differ", text, serious=not cell.took_turns, extent=repeating.difference)


def _places(count: int, plan: tuple[int, int, int, int] | None) -> NDArray[np.int_]:
    """Return the numbers of a round's samples among all samples of its turns, those that lead a turn included."""
    numbers = np.arange(count)
    if plan is None:
        return numbers
    _, size, leads, _ = plan
    return numbers + (numbers // size + 1) * leads
