"""One environment in one run as a side of a comparison, and which cells of two sides are compared."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from runner.analysis.boards import Board, boards_of
from runner.analysis.compare.machine_outliers import MachineOutliers
from runner.analysis.compare.sample_sizes import SampleSize, sample_sizes
from runner.analysis.model import Dataset, TurnMedians
from runner.catalog.published import PHASE_SUFFIX, Figure
from runner.core.facts import COMPARABLE
from runner.core.grouping import grouped
from runner.core.model import Cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLOCK_DIGITS = 9
"""Times are read to a nanosecond; differences below are of the arithmetic."""


class CellPair(NamedTuple):
    """Two cells of the same case, phase and precision."""

    base: Cell
    other: Cell


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """The good rounds of one cell.

    Attributes:
        medians: round -> median of its samples in seconds; empty for a published figure.
        seconds: the median of the medians, or the published time.
        facts: name -> the values that it had.
        servers: round -> the server that it was measured on.
        turns: round -> the medians of its turns, for rounds in which it took turns.
        tick: the smallest difference between its sample times in seconds, if medians repeat; otherwise 0.
        sizes: round -> the size of its samples, on a GPU.
        check: how the computation of a user's network was verified, in a round; None for other workloads.
        boards: round -> the board that it was measured on; empty for a published figure.
        times: round -> its samples in seconds, (N,); empty for a published figure.
        batches: round -> how many calls a sample has, where that is known.
    """

    medians: Mapping[int, float]
    seconds: float
    facts: Mapping[str, frozenset[str]]
    servers: Mapping[int, str] = field(default_factory=dict)
    turns: Mapping[int, TurnMedians] = field(default_factory=dict)
    tick: float = 0.0
    sizes: Mapping[int, SampleSize] = field(default_factory=dict)
    check: Mapping[str, Any] | None = None
    boards: Mapping[int, Board] = field(default_factory=dict)
    times: Mapping[int, "NDArray[np.float64]"] = field(default_factory=dict)
    batches: Mapping[int, int] = field(default_factory=dict)

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that measured it; none if one of them is not known."""
        names = frozenset(board.host for board in self.boards.values())
        return frozenset() if "" in names else names


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One environment in one run, or in one publication.

    Attributes:
        run: its id; empty for a publication.
        framework: empty if it is not known.
        kinds: every requested or measured cell -> its implementation's kind.
        measured: the cells with a good record.
        ends: every other cell -> (failure class or skip code, sentence).
        skipped: the cells that the plan skips.
        figures: the published figure of each measured cell; empty for a run.
        looks: the numbers of rounds at which verdicts were, or could have been, taken; empty for a publication.
        outliers: case, phase and precision -> the outliers of the machine.
    """

    environment: str
    run: str = ""
    framework: str = ""
    kinds: Mapping[Cell, str] = field(default_factory=dict)
    measured: Mapping[Cell, MeasuredCell] = field(default_factory=dict)
    ends: Mapping[Cell, tuple[str, str]] = field(default_factory=dict)
    skipped: frozenset[Cell] = frozenset()
    figures: Mapping[Cell, Figure] = field(default_factory=dict)
    looks: tuple[int, ...] = ()
    outliers: Mapping[tuple[str, str, str], MachineOutliers] = field(default_factory=dict)

    def check_of(self, cell: Cell) -> Mapping[str, Any] | None:
        """Return how a user's network was verified; None for other workloads, and for cells without a good record."""
        return self.measured[cell].check if cell in self.measured else None

    def names(self, fact: str) -> str:
        """Return the values of a fact over all measured cells, as text."""
        return ", ".join(sorted({value for measured in self.measured.values() for value in measured.facts[fact]}))


def environment_side(
    dataset: Dataset,
    environment: str,
    outliers: Mapping[tuple[str, str, str], MachineOutliers] = MappingProxyType({}),
) -> Side:
    """Return an environment of a run; without cells if the run does not have it. ``outliers`` are ``Side``'s."""
    rounds = dataset.rounds[dataset.rounds["environment"] == environment]
    failures = dataset.failures[dataset.failures["environment"] == environment]
    plan = [planned for planned in dataset.plan if planned.cell.environment == environment]
    measured = {cell: _with_tick(of_cell, cell, dataset.samples) for cell, of_cell in _measured(rounds).items()}
    kinds = {planned.cell: planned.kind for planned in plan}
    kinds.update({cell: kind for cell, kind in _by_cell(failures, "kind") if kind or cell not in kinds})
    kinds.update({cell: kind for cell, kind in _by_cell(rounds, "kind") if kind or cell not in kinds})
    ends = {planned.cell: (planned.code, planned.reason) for planned in plan if planned.verdict == "skip"}
    skipped = frozenset(ends)
    unfinished = ("unfinished", f"run {dataset.run} ended before it was measured")
    ends.update({planned.cell: unfinished for planned in plan if planned.verdict == "run"})
    failed = zip(failures["failure"].tolist(), failures["reason"].tolist(), strict=True)
    ends.update(zip(_cells(failures), failed, strict=True))
    frameworks = [*rounds["framework"].tolist()[:1], dataset.environments.get(environment, {}).get("framework", "")]
    frameworks += [planned.framework for planned in plan]
    return Side(
        run=dataset.run,
        environment=environment,
        framework=next(filter(None, frameworks), ""),
        kinds=kinds,
        measured=measured,
        ends={cell: end for cell, end in ends.items() if cell not in measured},
        skipped=skipped,
        looks=dataset.looks,
        outliers=outliers,
    )


def _cells(frame: pd.DataFrame) -> list[Cell]:
    return [Cell.parse(cell_id) for cell_id in frame["cell"].tolist()]


def _by_cell(frame: pd.DataFrame, column: str) -> Iterable[tuple[Cell, str]]:
    return zip(_cells(frame), frame[column].tolist(), strict=True)


def _measured(rounds: pd.DataFrame) -> dict[Cell, MeasuredCell]:
    rows_by_cell = grouped((cell_id, row) for row, cell_id in enumerate(rounds["cell"].tolist()))
    known = list(zip(*(rounds[name].tolist() for name in COMPARABLE), strict=True))
    numbers, times, servers, turns = (rounds[name].tolist() for name in ("round", "seconds", "server", "turns"))
    checks, boards = rounds["model_check"].tolist(), boards_of(rounds)
    samples, batches = rounds["times"].tolist(), rounds["batch"].tolist()
    sizes: dict[Cell, dict[int, SampleSize]] = defaultdict(dict)
    for (cell, number), size in sample_sizes(rounds).items():
        sizes[cell][number] = size
    values_of: dict[frozenset[tuple[str, ...]], dict[str, frozenset[str]]] = {}
    measured = {}
    for cell_id, rows in rows_by_cell.items():
        cell, facts = Cell.parse(cell_id), frozenset(known[row] for row in rows)
        if facts not in values_of:
            values_of[facts] = _values(facts)
        medians = {numbers[row]: times[row] for row in rows}
        measured[cell] = MeasuredCell(
            medians,
            median(medians.values()),
            values_of[facts],
            {numbers[row]: servers[row] for row in rows},
            {numbers[row]: turns[row] for row in rows if turns[row] is not None},
            sizes=sizes[cell],
            check=next((checks[row] for row in rows if isinstance(checks[row], Mapping)), None),
            boards={numbers[row]: boards[row] for row in rows},
            times={numbers[row]: samples[row] for row in rows},
            batches={numbers[row]: batches[row] for row in rows if isinstance(batches[row], int)},
        )
    return measured


def _with_tick(measured: MeasuredCell, cell: Cell, samples: pd.DataFrame) -> MeasuredCell:
    """Return a cell with the tick of its times, if two of its rounds or turns have the same median."""
    medians = np.array([*measured.medians.values()]).round(CLOCK_DIGITS)
    turns = np.array([seconds for turns in measured.turns.values() for seconds in turns.medians]).round(CLOCK_DIGITS)
    if len(np.unique(medians)) == len(medians) and len(np.unique(turns)) >= len(turns) / 2:
        return measured
    seconds = samples["seconds"][(samples["cell"] == cell.id).to_numpy()].to_numpy()
    distinct = pd.unique(seconds.round(CLOCK_DIGITS))
    distinct.sort()
    return replace(measured, tick=float(min(distinct[1:] - distinct[:-1], default=0.0)))


def _values(facts: frozenset[tuple[str, ...]]) -> dict[str, frozenset[str]]:
    """Return fact -> its values, given the values of all facts in each round."""
    return {name: frozenset(values) for name, values in zip(COMPARABLE, zip(*facts, strict=True), strict=True)}


def pairs(base: Side, other: Side, *, best: bool) -> list[CellPair]:
    """Return the cells to compare: those of equal slug, of equal kind across frameworks, or the fastest.

    A pair with a skipped cell is left out if its environment runs others: the plan says why. If all of an environment
    was skipped, its pairs are kept, so that the comparison names the reason. A published cell belongs to both
    protocols.
    """
    half_published = bool(base.figures) != bool(other.figures)
    of_base, of_other = (_by_work(side, both_protocols=half_published and bool(side.figures)) for side in (base, other))
    shared = {cell.implementation for cell in base.kinds} & {cell.implementation for cell in other.kinds}
    known = bool(base.framework and other.framework)
    same = base.framework == other.framework if known else bool(shared)
    matches = []
    for work in of_base:
        if best:
            partners = of_other.get(work)
            candidates = [CellPair(_fastest(base, of_base[work]), _fastest(other, partners))] if partners else []
        else:
            candidates = [
                CellPair(base_cell, other_cell)
                for base_cell in of_base[work]
                for other_cell in of_other.get(work, ())
                if (
                    base_cell.implementation == other_cell.implementation
                    if same
                    else base.kinds[base_cell] == other.kinds[other_cell] != ""
                )
            ]
        matches += [
            pair for pair in candidates if not (_is_left_out(base, pair.base) or _is_left_out(other, pair.other))
        ]
    return matches


def _is_left_out(side: Side, cell: Cell) -> bool:
    """Return True if a cell was skipped although its environment runs others."""
    return cell in side.skipped and len(side.skipped) < len(side.kinds)


def _by_work(side: Side, *, both_protocols: bool) -> dict[tuple[str, str, str], list[Cell]]:
    """Return the cells by case, phase and precision, each under the phases of both protocols if requested."""
    suffixes = ("", PHASE_SUFFIX) if both_protocols else ("",)
    return grouped(
        ((cell.case_id, cell.phase + suffix, cell.precision), cell) for cell in side.kinds for suffix in suffixes
    )


def _fastest(side: Side, cells: list[Cell]) -> Cell:
    """Return the fastest measured cell; if none was measured, the first that was not skipped, or the first."""
    measured = [cell for cell in cells if cell in side.measured]
    if measured:
        return min(measured, key=lambda cell: side.measured[cell].seconds)
    return min(cells, key=lambda cell: cell in side.skipped)
