"""What the controls of a run say: how far an environment was from itself, and how far the machine drifted."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.analysis.model import Turns, log_ratio
from runner.core.model.cells import TWIN, is_twin

if TYPE_CHECKING:
    import pandas as pd


APART = 0.02  # by which an environment is apart from itself: the margin that counts as no change
CHANCE = 0.01  # p-value of an environment beside itself
DRIFT = 0.05  # by which the canary's slowest round is above its quickest


class AAPair(NamedTuple):
    """An A/A pair: the twin's cell, the ratio of its times to its origin's, and the p-value of no difference."""

    cell: str
    ratio: float
    p_value: float


class Drift(NamedTuple):
    """The quickest and the slowest round of the canary, and the slowest's time over the quickest's."""

    quickest: int
    slowest: int
    ratio: float


def aa_pairs(rounds: "pd.DataFrame") -> Iterator[AAPair]:
    """Yield the A/A pairs of a table of rounds that share at least one round."""
    import numpy as np

    from runner.analysis import statistics

    found: dict[str, dict[int, tuple[float, Turns | None]]] = defaultdict(dict)
    columns = (rounds[name].tolist() for name in ("cell", "round", "seconds", "turns"))
    for cell, number, *times in zip(*columns, strict=True):
        found[cell][number] = tuple(times)
    for cell, own in found.items():
        environment, _, rest = cell.partition("/")
        origin = found.get(f"{environment.removesuffix(TWIN)}/{rest}", {}) if is_twin(environment) else {}
        shared = sorted(own.keys() & origin.keys())
        if shared:
            pair = statistics.paired(np.array([log_ratio(origin[number], own[number]) for number in shared]))
            yield AAPair(cell, float(np.exp(pair.mean)), float(statistics.p_value(pair, (len(shared),))))


def canary_drift(canary: Sequence[tuple[str, int, float]]) -> Drift | None:
    """Return how far the rounds' medians of the canary lie apart; None with fewer than two rounds.

    Args:
        canary: (case id, round, seconds), in the order measured.
    """
    times: dict[int, list[float]] = defaultdict(list)
    for _, number, seconds in canary:
        times[number].append(seconds)
    rounds = {number: median(found) for number, found in times.items()}
    if len(rounds) < 2:
        return None
    quickest, slowest = min(rounds, key=rounds.__getitem__), max(rounds, key=rounds.__getitem__)
    return Drift(quickest, slowest, rounds[slowest] / rounds[quickest])


def control_issues(rounds: "pd.DataFrame", canary: Sequence[tuple[str, int, float]]) -> Iterator[dict[str, Any]]:
    """Yield the fields of a ``doubts.Doubt`` for each control that did not come out as it should."""
    for one in aa_pairs(rounds):
        apart = max(one.ratio, 1 / one.ratio) - 1
        if one.p_value <= CHANCE and apart > APART:
            environment, _, rest = one.cell.partition("/")
            origin = environment.removesuffix(TWIN)
            text = f"{origin} beside itself on another server came out {apart:.1%} apart: distrust this case"
            place = {"environment": origin, "cell": f"{origin}/{rest}"}
            yield {"code": "a-a-differs", "sentence": text, "serious": True, "extent": apart, **place}
    moved = canary_drift(canary)
    if moved and moved.ratio > 1 + DRIFT:
        text = f"a fixed product took {moved.ratio - 1:.0%} longer in round {moved.slowest} than in {moved.quickest}"
        text += ": the machine drifted"
        yield {"code": "host-drift", "sentence": text, "serious": False, "extent": moved.ratio}
