"""The good rounds of a run by cell, and the log ratios of two cells in the rounds that both have."""

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from runner.analysis.boards import Board, boards_of, groups, shared_rounds
from runner.analysis.model import Round, TurnMedians, log_ratio
from runner.core.grouping import grouped
from runner.core.model import Cell

if TYPE_CHECKING:
    import pandas as pd


class CellRound(NamedTuple):
    """A good round of a cell: the median of its samples in seconds, its turns, its server (or empty), and its board."""

    seconds: float
    turns: TurnMedians | None
    server: str
    board: Board


class RoundRatios(NamedTuple):
    """The log ratios of two cells.

    Attributes:
        log_ratios: round -> the log ratio, in the order of rounds.
        groups: what each of them shares with those that it is not independent of, see ``boards.groups``.
    """

    log_ratios: Mapping[int, float]
    groups: Sequence[Hashable] | None

    def independent(self) -> dict[int, float]:
        """Return the log ratios with the rounds of a group averaged, by the first round of each group."""
        if self.groups is None or len(set(self.groups)) == len(self.groups):
            return dict(self.log_ratios)
        by_group = grouped(zip(self.groups, self.log_ratios.items(), strict=True))
        return {group[0][0]: sum(value for _, value in group) / len(group) for group in by_group.values()}


def rounds_by_cell(rounds: "pd.DataFrame") -> dict[Cell, dict[int, CellRound]]:
    """Return cell -> round -> its measurement, in the order of the table of rounds."""
    cells: dict[str, dict[int, CellRound]] = {}
    columns = (rounds[name].tolist() for name in ("cell", "round", "seconds", "turns", "server"))
    for cell_id, number, *measurement in zip(*columns, boards_of(rounds), strict=True):
        cells.setdefault(cell_id, {})[number] = CellRound(*measurement)
    return {Cell.parse(cell_id): measured for cell_id, measured in cells.items()}


def round_ratios(base: Mapping[int, CellRound], other: Mapping[int, CellRound]) -> RoundRatios:
    """Return the log ratios of other over base in the rounds that both have on the same board."""
    shared = shared_rounds(*({number: each.board for number, each in side.items()} for side in (base, other)))
    values = log_ratios([base[number][:2] for number in shared], [other[number][:2] for number in shared])
    servers = tuple((base[number].server, other[number].server) for number in shared)
    boards = [base[number].board for number in shared]
    return RoundRatios(dict(zip(shared, values, strict=True)), groups(boards, servers))


def log_ratios(base: Sequence[Round], other: Sequence[Round]) -> list[float]:
    """Return ``log_ratio`` of each of R rounds; the ratios of turns are calculated at once if all have as many."""
    import numpy as np

    pairs = [
        (base_turns.medians, other_turns.medians)
        for (_, base_turns), (_, other_turns) in zip(base, other, strict=True)
        if base_turns and other_turns and base_turns.name == other_turns.name
        if not (base_turns.calls and other_turns.calls)
    ]
    sizes = {len(medians) for pair in pairs for medians in pair}
    if len(pairs) < len(base) or len(sizes) != 1:
        return list(map(log_ratio, base, other))
    (size,) = sizes
    values = np.fromiter(chain.from_iterable(chain.from_iterable(pairs)), np.float64, 2 * size * len(pairs))
    turns = values.reshape(-1, 2, size)
    ratios = np.sort(turns[:, 1] / turns[:, 0], axis=1)
    ends = zip(ratios[:, (size - 1) // 2].tolist(), ratios[:, size // 2].tolist(), strict=True)
    return [math.log(low) if low == high else (math.log(low) + math.log(high)) / 2 for low, high in ends]


def ratios_to_first_cell(cells: Mapping[Cell, Mapping[int, CellRound]]) -> dict[Cell, RoundRatios]:
    """Return the log ratios of each cell over the first one of its case, phase and precision, which has none."""
    first: dict[tuple[str, str, str], Cell] = {}
    ratios = {}
    for cell, measured in cells.items():
        base = first.setdefault((cell.case_id, cell.phase, cell.precision), cell)
        if base is not cell:
            ratios[cell] = round_ratios(cells[base], measured)
    return ratios
