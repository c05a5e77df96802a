"""The controls of a run: A/A pairs, which show the noise between servers, and a canary, which shows machine drift."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from runner.analysis.boards import host_of_case
from runner.analysis.cell_rounds import RoundRatios, round_ratios, rounds_by_cell
from runner.analysis.model import Dataset, QualityIssue
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.core.model.cells import is_twin, origin
from runner.core.units import percent

if TYPE_CHECKING:
    import pandas as pd

    from runner.stats.intervals import PairedEvidence

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

    from runner.stats import intervals

    if not any(map(is_twin, rounds["environment"].unique())):
        return
    cells = rounds_by_cell(rounds)
    for cell, measured in cells.items():
        base = cells.get(origin(cell), {}) if is_twin(cell.environment) else {}
        ratios = round_ratios(base, measured)
        count = len(ratios.log_ratios)
        if count:
            evidence = intervals.paired(np.array(list(ratios.log_ratios.values())), ratios.groups)
            p_value = float(intervals.p_value(evidence, looks or (count,)))
            yield AAPair(cell, float(np.exp(_estimate(ratios, evidence))), p_value)


def _estimate(ratios: RoundRatios, evidence: "PairedEvidence") -> float:
    """Return the logarithm of a pair's ratio, as a comparison estimates it."""
    import numpy as np

    from runner.stats import signed_rank

    independent = np.array(list(ratios.independent().values()))
    if len(independent) == len(ratios.log_ratios) >= signed_rank.MIN_ROUNDS:
        return float(signed_rank.Ranked(independent[None]).estimate()[0])
    return float(evidence.mean)


def different_pairs(pairs: Sequence[AAPair]) -> list[AAPair]:
    """Return the A/A pairs whose sides differ beyond chance, given how many pairs there are, and by more than 2 %.

    References:
        Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995.
    """
    import numpy as np

    from runner.stats import intervals

    beyond_chance = intervals.discoveries(np.array([pair.p_value for pair in pairs]), AA_FALSE_DISCOVERY_RATE)
    return [
        pair
        for pair, is_beyond in zip(pairs, beyond_chance.tolist(), strict=True)
        if is_beyond and abs(math.log(pair.ratio)) > math.log1p(MAX_AA_CHANGE)
    ]


def canary_drift(canary: Sequence[tuple[str, int, float]]) -> float | None:
    """Return the relative change of the canary over the run; None without a trend, or with fewer than 8 times.

    A drift is a trend as in the samples of a round (``sample_shape.trend``), of more than MAX_DRIFT. Times that only
    scatter are no drift.

    Args:
        canary: (case id, round, seconds), in the order measured.
    """
    import numpy as np

    from runner.stats import sample_shape

    if len(canary) < sample_shape.MIN_SAMPLES:
        return None
    change = sample_shape.trend(np.array([seconds for _, _, seconds in canary]))
    return change if change is not None and abs(change) > MAX_DRIFT else None


def canary_by_host(dataset: Dataset) -> dict[str, list[tuple[str, int, float]]]:
    """Return host -> the times of the canary there, in the order measured; the host is empty if it is not known."""
    host_of = host_of_case(dataset.rounds)
    only = next(iter(host_of.values())) if len(set(host_of.values())) == 1 else ""
    return grouped((host_of.get(reading[0], only), reading) for reading in dataset.canary)


def control_issues(dataset: Dataset, pairs: Sequence[AAPair]) -> Iterator[QualityIssue]:
    """Yield a quality issue for each control of a run that shows a difference; ``pairs`` are its A/A pairs."""
    for pair in different_pairs(pairs):
        change = max(pair.ratio, 1 / pair.ratio) - 1
        original = origin(pair.twin)
        yield QualityIssue(
            code="a-a-differs",
            sentence=f"{original.environment} differs from itself on another server by {percent(change)}: "
            "do not trust this case",
            serious=True,
            extent=change,
            environment=original.environment,
            cell=original.id,
        )
    by_host = canary_by_host(dataset)
    for host, canary in by_host.items():
        drift = canary_drift(canary)
        if drift is not None:
            speed = "slower" if drift > 0 else "faster"
            text = f"on {host}, " if len(by_host) > 1 and host else ""
            text += f"a fixed product became {percent(abs(drift))} {speed} from the first quarter of the run to the "
            text += "last: the machine drifted"
            yield QualityIssue(code="host-drift", sentence=text, serious=False, extent=abs(drift))
