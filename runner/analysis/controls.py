"""The controls of a run: A/A pairs, which show the noise between servers, and a canary, which shows machine drift."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from runner.analysis.model import Dataset, QualityIssue, Turns, log_ratio
from runner.core.model import Cell
from runner.core.model.cells import is_twin, without_twin

if TYPE_CHECKING:
    import pandas as pd

MAX_AA_CHANGE = 0.02
"""The largest relative difference between the sides of an A/A pair: the margin that counts as no change."""
AA_FALSE_DISCOVERY_RATE = 0.01
"""Where all pairs are equal, about 1 run in 100 reports one that differs, whatever the number of pairs."""
MAX_DRIFT = 0.05
"""The largest relative change of the canary from the first quarter of its times to the last."""


class AAPair(NamedTuple):
    """An A/A pair: the twin's cell, the ratio of its times to its origin's, and the p-value of no difference."""

    twin: Cell
    ratio: float
    p_value: float


def aa_pairs(rounds: "pd.DataFrame", looks: tuple[int, ...] = ()) -> Iterator[AAPair]:
    """Yield the A/A pairs in a table of rounds whose sides share at least one round.

    Args:
        rounds: the good rounds of a run, one row each.
        looks: the numbers of rounds at which verdicts were taken; the p-value holds for all of them together. Empty if
            the number of rounds was fixed.
    """
    import numpy as np

    from runner.analysis import statistics

    times: dict[Cell, dict[int, tuple[float, Turns | None]]] = defaultdict(dict)
    servers: dict[Cell, dict[int, str]] = defaultdict(dict)
    columns = (rounds[name].tolist() for name in ("cell", "round", "seconds", "turns", "server"))
    for cell_id, number, seconds, turns, server in zip(*columns, strict=True):
        cell = Cell.parse(cell_id)
        times[cell][number] = (seconds, turns)
        servers[cell][number] = server
    for cell, twin_times in times.items():
        if not is_twin(cell.environment):
            continue
        origin = _origin(cell)
        origin_times = times.get(origin, {})
        shared = sorted(twin_times.keys() & origin_times.keys())
        if shared:
            ratios = np.array([log_ratio(origin_times[number], twin_times[number]) for number in shared])
            pairs_of_servers = [(servers[origin][number], servers[cell][number]) for number in shared]
            recorded = pairs_of_servers if all(map(all, pairs_of_servers)) else None
            evidence = statistics.paired(ratios, recorded)
            p_value = float(statistics.p_value(evidence, looks or (len(shared),)))
            yield AAPair(cell, float(np.exp(evidence.mean)), p_value)


def different_pairs(pairs: Sequence[AAPair]) -> list[AAPair]:
    """Return the A/A pairs whose sides differ beyond chance, given how many pairs there are, and by more than 2 %.

    References:
        Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995.
    """
    import numpy as np

    from runner.analysis import statistics

    beyond_chance = statistics.discoveries(np.array([pair.p_value for pair in pairs]), AA_FALSE_DISCOVERY_RATE)
    return [
        pair
        for pair, is_beyond in zip(pairs, beyond_chance.tolist(), strict=True)
        if is_beyond and abs(math.log(pair.ratio)) > math.log1p(MAX_AA_CHANGE)
    ]


def _origin(twin_cell: Cell) -> Cell:
    """Return the cell that a twin is a copy of."""
    return replace(twin_cell, environment=without_twin(twin_cell.environment))


def canary_drift(canary: Sequence[tuple[str, int, float]]) -> float | None:
    """Return the relative change of the canary over the run; None without a trend, or with fewer than 8 times.

    A drift is a trend as in the samples of a round (``sample_shape.trend``), of more than MAX_DRIFT. Times that only
    scatter are no drift.

    Args:
        canary: (case id, round, seconds), in the order measured.
    """
    import numpy as np

    from runner.analysis import sample_shape

    if len(canary) < sample_shape.MIN_SAMPLES:
        return None
    change = sample_shape.trend(np.array([seconds for _, _, seconds in canary]))
    return change if change is not None and abs(change) > MAX_DRIFT else None


def control_issues(dataset: Dataset) -> Iterator[QualityIssue]:
    """Yield a quality issue for each control of a run that shows a difference."""
    for pair in different_pairs(list(aa_pairs(dataset.rounds, dataset.looks))):
        change = max(pair.ratio, 1 / pair.ratio) - 1
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
    drift = canary_drift(dataset.canary)
    if drift is not None:
        speed = "slower" if drift > 0 else "faster"
        text = f"a fixed product became {abs(drift):.0%} {speed} from the first quarter of the run to the last: "
        text += "the machine drifted"
        yield QualityIssue(code="host-drift", sentence=text, serious=False, extent=abs(drift))
