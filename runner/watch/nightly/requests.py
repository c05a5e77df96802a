"""Which cells a night measures in turns, in which order, and how many the remaining time brings to a verdict."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, log1p
from typing import NamedTuple

from runner.analysis.compare.metric_rounds import subject_cell
from runner.analysis.comparison_model import Row
from runner.core.metrics import BY_NAME, NOT_WORSE
from runner.core.model import Cell
from runner.core.row_ids import row_id
from runner.nights.looks import Look, is_confirmed, is_slower_once, last_in_turns, nights_waiting
from runner.nights.night import Against
from runner.watch.nightly.baseline import Baseline
from runner.watch.nightly.build_scatter import BuildScatter

MIN_VERDICT_ROUNDS = 9
"""Rounds that are reserved for a verdict at the least: earlier looks of a night decide little."""


class NightCandidate(NamedTuple):
    """A cell that is to be measured in turns: tonight's row against an earlier run, and what nights said of the pair.

    Attributes:
        cell: in tonight's environment; it is what is measured in turns.
        row: tonight against the earlier run; the two did not take turns.
        baseline: the earlier run.
        against: whether that is the last good run, the anchor, or the run before the series changed its level.
        digest: what pins the environment's content tonight.
        looks: of earlier nights at the same pair, oldest first.
        series_p: one-sided p-value of no slow-down by the series of ratios to the pinned base; None without one.
        builds: how much builds of its environment differ from each other; None if too few were measured in turns.
    """

    cell: Cell
    row: Row
    baseline: Baseline
    against: Against = "baseline"
    digest: str = ""
    looks: tuple[Look, ...] = ()
    series_p: float | None = None
    builds: BuildScatter | None = None

    @property
    def subject(self) -> Cell:
        """What the row is about: the cell, or what stands for the environment where the metric is one of those."""
        return subject_cell(self.cell, BY_NAME[self.row.metric])

    @property
    def id(self) -> str:
        """The id of its row, see ``core.row_ids``."""
        return row_id(self.subject.id, self.row.metric)

    @property
    def is_open(self) -> bool:
        """Whether an earlier night left the row open, or found it worse."""
        last = last_in_turns(self.looks)
        return bool(self.looks) and (last is None or last.verdict not in NOT_WORSE)

    @property
    def suspicion(self) -> float:
        """The ratio of the two runs: the larger, the more it looks slower; 1 if they are not comparable."""
        return self.row.ratio or 1.0


def in_order(candidates: Iterable[NightCandidate], margin: float) -> list[NightCandidate]:
    """Return candidates in the order in which they are measured.

    First come those that were ``slower`` in a night, which another night has to confirm. The others come in the order
    of their suspicion, and each night without time for a cell counts as a suspicion of one margin. So a cell of equal
    suspicion that waited longer comes first, a clear slow-down does not queue behind cells that look the same, and no
    cell waits for ever. A regression that is confirmed already has no suspicion left: it is reported anyway.

    Args:
        candidates: of any environments and runs.
        margin: the relative change that counts as none.
    """
    return sorted(candidates, key=lambda candidate: (not is_slower_once(candidate.looks), -_urgency(candidate, margin)))


def _urgency(candidate: NightCandidate, margin: float) -> float:
    """Return the suspicion in margins, plus the number of nights without time."""
    suspicion = 0.0 if is_confirmed(candidate.looks) else log(candidate.suspicion) / log1p(margin)
    return nights_waiting(candidate.looks) + suspicion


def verdict_rounds(candidate: NightCandidate, limit: int) -> int:
    """Return the rounds to reserve for a verdict: a forecast, at least MIN_VERDICT_ROUNDS and at most ``limit``."""
    last = last_in_turns(candidate.looks)
    forecast = last.rounds + last.more_rounds if last and last.more_rounds else _forecast(candidate.row)
    return min(max(forecast, MIN_VERDICT_ROUNDS), limit)


def _forecast(row: Row) -> int:
    """Return the rounds in total that are forecast to decide a row; 0 without a forecast."""
    return row.rounds + row.more_rounds if row.more_rounds else 0


@dataclass(slots=True)
class TurnSeconds:
    """The estimated seconds until each of some candidates has a verdict.

    Attributes:
        seconds: cell -> seconds of one round of it.
        limit: the largest number of rounds.
        twins: whether each case of a pair of environments has an A/A pair: a third cell.
        total: of the candidates so far.
    """

    seconds: Mapping[Cell, float]
    limit: int
    twins: bool
    total: float = 0.0
    _of_twins: dict[tuple[str, str, str], float] = field(default_factory=dict)
    _of_cells: dict[tuple[Cell, str], float] = field(default_factory=dict)

    def cost(self, candidate: NightCandidate) -> float:
        """Return the seconds that a further candidate takes; the metrics of a cell share its rounds."""
        side = verdict_rounds(candidate, self.limit) * self.seconds[candidate.cell]
        of_cell = max(side - self._of_cells.get(_measured(candidate), 0.0), 0.0)
        of_twin = max(side - self._of_twins.get(_block(candidate), 0.0), 0.0)
        return 2 * of_cell + of_twin * self.twins

    def add(self, candidate: NightCandidate) -> None:
        """Count a candidate."""
        self.total += self.cost(candidate)
        side = verdict_rounds(candidate, self.limit) * self.seconds[candidate.cell]
        self._of_twins[_block(candidate)] = max(self._of_twins.get(_block(candidate), 0.0), side)
        self._of_cells[_measured(candidate)] = max(self._of_cells.get(_measured(candidate), 0.0), side)


def _measured(candidate: NightCandidate) -> tuple[Cell, str]:
    return candidate.cell, candidate.baseline.run


def _block(candidate: NightCandidate) -> tuple[str, str, str]:
    return candidate.cell.environment, candidate.baseline.run, candidate.cell.case_id


def turn_seconds(
    candidates: Collection[NightCandidate], seconds: Mapping[Cell, float], limit: int, *, twins: bool
) -> float:
    """Return the estimated seconds until each of some candidates has a verdict.

    Args:
        candidates: of any environments and runs.
        seconds: cell -> seconds of one round of it.
        limit: the largest number of rounds.
        twins: whether each case of a pair of environments has an A/A pair: a third cell.
    """
    turns = TurnSeconds(seconds, limit, twins)
    for candidate in candidates:
        turns.add(candidate)
    return turns.total


def affordable(
    candidates: Sequence[NightCandidate], seconds: Mapping[Cell, float], limit: int, budget: float, *, twins: bool
) -> list[NightCandidate]:
    """Return the candidates, in their order, that a budget brings to a verdict together; may be empty.

    A candidate that does not fit is passed over for those after it.

    Args:
        candidates: the most urgent first.
        seconds: cell -> seconds of one round of it.
        limit: the largest number of rounds.
        budget: seconds.
        twins: as for ``turn_seconds``.
    """
    chosen: list[NightCandidate] = []
    turns = TurnSeconds(seconds, limit, twins)
    for candidate in candidates:
        if turns.total + turns.cost(candidate) <= budget:
            turns.add(candidate)
            chosen.append(candidate)
    return chosen


def next_batch(
    queue: Sequence[NightCandidate],
    seconds: Mapping[Cell, float],
    limit: int,
    budget: float,
    *,
    twins: bool,
    is_first: bool,
) -> list[NightCandidate]:
    """Return what to measure now, the most urgent first; empty when the rest has to wait for the next night.

    Args:
        queue: what is left, the most urgent first.
        seconds: cell -> seconds of one round of it.
        limit: the largest number of rounds.
        budget: seconds that remain.
        twins: as for ``turn_seconds``.
        is_first: whether nothing was measured in turns tonight; then the cell of the first candidate is always taken,
            with all metrics of it that are left, for they share its rounds.
    """
    chosen = affordable(queue, seconds, limit, budget, twins=twins)
    if chosen or not is_first:
        return chosen
    return [candidate for candidate in queue if _measured(candidate) == _measured(queue[0])]


def groups_by_environment(candidates: Sequence[NightCandidate]) -> list[list[NightCandidate]]:
    """Return candidates in groups of an environment and an earlier run, which a single run in turns confirms.

    Groups and their candidates stay in the order in which they first occur.
    """
    groups: dict[tuple[str, str], list[NightCandidate]] = {}
    for candidate in candidates:
        groups.setdefault((candidate.cell.environment, candidate.baseline.run), []).append(candidate)
    return list(groups.values())
