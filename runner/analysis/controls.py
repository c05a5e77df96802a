"""The controls of a run: A/A pairs, which show the noise between servers, and a canary, which shows machine drift."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from runner.analysis.model import QualityIssue, Turns, log_ratio
from runner.core.model import Cell
from runner.core.model.cells import is_twin, without_twin

if TYPE_CHECKING:
    import pandas as pd

MAX_AA_CHANGE = 0.02
"""The largest relative difference between the sides of an A/A pair: the margin that counts as no change."""
AA_P_VALUE = 0.01
"""The largest p-value at which the sides of an A/A pair count as different."""
MAX_DRIFT = 0.05
"""The largest relative difference between the canary's slowest and fastest round."""


class AAPair(NamedTuple):
    """An A/A pair: the twin's cell, the ratio of its times to its origin's, and the p-value of no difference."""

    twin: Cell
    ratio: float
    p_value: float


class Drift(NamedTuple):
    """The canary's fastest and slowest round, and the slowest time over the fastest."""

    fastest_round: int
    slowest_round: int
    ratio: float


def aa_pairs(rounds: "pd.DataFrame") -> Iterator[AAPair]:
    """Yield the A/A pairs in a table of rounds whose sides share at least one round."""
    import numpy as np

    from runner.analysis import statistics

    times: dict[Cell, dict[int, tuple[float, Turns | None]]] = defaultdict(dict)
    columns = (rounds[name].tolist() for name in ("cell", "round", "seconds", "turns"))
    for cell_id, number, seconds, turns in zip(*columns, strict=True):
        times[Cell.parse(cell_id)][number] = (seconds, turns)
    for cell, twin_times in times.items():
        if not is_twin(cell.environment):
            continue
        origin_times = times.get(_origin(cell), {})
        shared = sorted(twin_times.keys() & origin_times.keys())
        if shared:
            ratios = np.array([log_ratio(origin_times[number], twin_times[number]) for number in shared])
            evidence = statistics.paired(ratios)
            p_value = float(statistics.p_value(evidence, (len(shared),)))
            yield AAPair(cell, float(np.exp(evidence.mean)), p_value)


def _origin(twin_cell: Cell) -> Cell:
    """Return the cell that a twin is a copy of."""
    return replace(twin_cell, environment=without_twin(twin_cell.environment))


def canary_drift(canary: Sequence[tuple[str, int, float]]) -> Drift | None:
    """Return how much the medians of the canary differ between rounds; None with fewer than two rounds.

    Args:
        canary: (case id, round, seconds), in the order measured.
    """
    times: dict[int, list[float]] = defaultdict(list)
    for _, number, seconds in canary:
        times[number].append(seconds)
    medians = {number: median(seconds) for number, seconds in times.items()}
    if len(medians) < 2:
        return None
    fastest, slowest = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    return Drift(fastest, slowest, medians[slowest] / medians[fastest])


def control_issues(rounds: "pd.DataFrame", canary: Sequence[tuple[str, int, float]]) -> Iterator[QualityIssue]:
    """Yield a quality issue for each control that shows a difference."""
    for pair in aa_pairs(rounds):
        change = max(pair.ratio, 1 / pair.ratio) - 1
        if pair.p_value <= AA_P_VALUE and change > MAX_AA_CHANGE:
            origin = _origin(pair.twin)
            yield QualityIssue(
                code="a-a-differs",
                sentence=f"{origin.environment} differs from itself on another server by {change:.1%}: "
                "do not trust this case",
                serious=True,
                extent=change,
                environment=origin.environment,
                cell=origin.id,
            )
    drift = canary_drift(canary)
    if drift and drift.ratio > 1 + MAX_DRIFT:
        text = f"a fixed product took {drift.ratio - 1:.0%} longer in round {drift.slowest_round} "
        text += f"than in {drift.fastest_round}: the machine drifted"
        yield QualityIssue(code="host-drift", sentence=text, serious=False, extent=drift.ratio)
