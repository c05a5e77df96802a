"""The controls of a run: A/A pairs, which show the noise between servers, and a canary, which shows machine drift.

The rounds themselves are a control, too: ``widening`` looks whether they are independent of each other.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from runner.analysis.model import Dataset, QualityIssue, Turns, log_ratio
from runner.core.model import Cell
from runner.core.model.cells import is_twin, without_twin

if TYPE_CHECKING:
    import pandas as pd

    from runner.analysis.independence import Correlation, Widening
    from runner.analysis.statistics import Evidence

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
    evidence: "Evidence"


class RoundTimes(NamedTuple):
    """The times and the servers of the good rounds of each cell."""

    times: dict[Cell, dict[int, tuple[float, Turns | None]]]
    servers: dict[Cell, dict[int, str]]

    @classmethod
    def of_table(cls, rounds: "pd.DataFrame") -> "RoundTimes":
        """Return those in a table of rounds, one row each."""
        times: dict[Cell, dict[int, tuple[float, Turns | None]]] = defaultdict(dict)
        servers: dict[Cell, dict[int, str]] = defaultdict(dict)
        columns = (rounds[name].tolist() for name in ("cell", "round", "seconds", "turns", "server"))
        for cell_id, number, seconds, turns, server in zip(*columns, strict=True):
            cell = Cell.parse(cell_id)
            times[cell][number] = (seconds, turns)
            servers[cell][number] = server
        return cls(times, servers)

    def log_ratios(self, base: Cell, other: Cell) -> dict[int, float]:
        """Return round -> the logarithm of other over base, of the rounds that both have."""
        of_base, of_other = self.times.get(base, {}), self.times.get(other, {})
        shared = sorted(of_base.keys() & of_other.keys())
        return {number: log_ratio(of_base[number], of_other[number]) for number in shared}

    def pairs_of_servers(self, base: Cell, other: Cell, numbers: Iterable[int]) -> list[tuple[str, str]] | None:
        """Return the servers of two cells in some rounds; None if they were not recorded."""
        pairs = [(self.servers[base][number], self.servers[other][number]) for number in numbers]
        return pairs if all(map(all, pairs)) else None


def aa_pairs(rounds: "pd.DataFrame", looks: tuple[int, ...] = ()) -> Iterator[AAPair]:
    """Yield the A/A pairs in a table of rounds whose sides share at least one round.

    Args:
        rounds: the good rounds of a run, one row each.
        looks: the numbers of rounds at which verdicts were taken; the p-value holds for all of them together. Empty if
            the number of rounds was fixed.
    """
    import numpy as np

    from runner.analysis import statistics

    measured = RoundTimes.of_table(rounds)
    for cell in measured.times:
        ratios = measured.log_ratios(_origin(cell), cell) if is_twin(cell.environment) else {}
        if ratios:
            servers = measured.pairs_of_servers(_origin(cell), cell, ratios)
            evidence = statistics.paired(np.array(list(ratios.values())), servers)
            p_value = float(statistics.p_value(evidence, looks or (len(ratios),)))
            yield AAPair(cell, float(np.exp(evidence.mean)), p_value, evidence)


def serial_correlation(rounds: "pd.DataFrame") -> "Correlation | None":
    """Return the correlation of consecutive rounds of a run; None with too few rounds.

    Each cell is paired with the first one of its case, phase and precision. Rounds on the same servers count once.

    Args:
        rounds: the good rounds of a run, one row each.
    """
    from runner.analysis.independence import correlation

    measured = RoundTimes.of_table(rounds)
    first: dict[tuple[str, str, str], Cell] = {}
    rows = []
    for cell in measured.times:
        base = first.setdefault((cell.case_id, cell.phase, cell.precision), cell)
        if base != cell:
            ratios = measured.log_ratios(base, cell)
            servers: Sequence[Hashable] = measured.pairs_of_servers(base, cell, ratios) or list(ratios)
            by_server: dict[Hashable, list[tuple[int, float]]] = defaultdict(list)
            for server, entry in zip(servers, ratios.items(), strict=True):
                by_server[server].append(entry)
            rows.append([(group[0][0], sum(value for _, value in group) / len(group)) for group in by_server.values()])
    return correlation(rows)


def widening(dataset: Dataset) -> "Widening":
    """Return by how much the errors of a run's pairs are to be widened, because its rounds are not independent."""
    from runner.analysis.independence import Widening, aa_factor

    serial = serial_correlation(dataset.rounds)
    return Widening(
        serial.coefficient if serial and serial.is_serial else 0.0,
        aa_factor([pair.evidence for pair in aa_pairs(dataset.rounds, dataset.looks)]),
    )


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
    yield from _independence_issues(dataset)
    drift = canary_drift(dataset.canary)
    if drift is not None:
        speed = "slower" if drift > 0 else "faster"
        text = f"a fixed product became {abs(drift):.0%} {speed} from the first quarter of the run to the last: "
        text += "the machine drifted"
        yield QualityIssue(code="host-drift", sentence=text, serious=False, extent=abs(drift))


def _independence_issues(dataset: Dataset) -> Iterator[QualityIssue]:
    """Yield an issue if consecutive rounds are correlated, and one if A/A pairs scatter more than their rounds."""
    from runner.analysis.independence import aa_factor

    serial = serial_correlation(dataset.rounds)
    if serial is not None and serial.is_serial:
        text = f"the rounds are not independent: a round resembles the previous one (correlation {serial.lag_one:.2f} "
        text += f"over {serial.pairs} pairs), so the intervals are widened"
        yield QualityIssue(code="serial-correlation", sentence=text, serious=True, extent=serial.coefficient)
    factor = aa_factor([pair.evidence for pair in aa_pairs(dataset.rounds, dataset.looks)])
    if factor > 1:
        text = f"the A/A pairs scatter {math.sqrt(factor):.1f} times as much as their rounds suggest, "
        text += "so the intervals are widened"
        yield QualityIssue(code="a-a-scatter", sentence=text, serious=False, extent=factor)
