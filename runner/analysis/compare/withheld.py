"""Verdicts that hold in one of two states of a program alone: they are withheld."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from runner.analysis.comparison_model import Row
from runner.analysis.process_states import TWO_STATES, ProcessStates
from runner.core.model import Cell
from runner.core.model.cells import is_control

JUDGED = frozenset({"faster", "slower", "same", "same-median", "inconclusive"})
"""Verdicts that follow from the rounds of a row."""


def withhold(rows: Iterable[Row], states: Mapping[str, Mapping[Cell, ProcessStates]], margin: float) -> Iterator[Row]:
    """Yield the rows; those whose verdict depends on the state of a process become inconclusive, as ``two-states``.

    More rounds do not decide them, so they ask for none, and no mean includes their ratios.

    Args:
        rows: with their verdicts.
        states: run -> its cells that have two states over their processes.
        margin: the relative change that counts as none.
    """
    for row in rows:
        of_run = states.get(row.runs[0]) if len(row.runs) == 1 and row.rounds else None
        reason = ""
        if of_run and row.verdict in JUDGED and not is_control(row.environment):
            reason = _two_states(row, of_run, margin)
        if reason:
            yield replace(row, verdict="inconclusive", code=TWO_STATES, reason=reason, more_rounds=0, more_rounds_low=0)
        else:
            yield row


def _two_states(row: Row, states: Mapping[Cell, ProcessStates], margin: float) -> str:
    """Return why there is no verdict if the states of a side differ in what the row would say; else an empty text."""
    sides = (row.base, row.other)
    if states.keys().isdisjoint(sides) or not row.base_seconds or not row.seconds:
        return ""
    base_times, other_times = (
        (states[cell].fast, states[cell].slow) if cell in states else (seconds,)
        for cell, seconds in zip(sides, (row.base_seconds, row.seconds), strict=True)
    )
    limit = math.log1p(margin)
    changes = [math.log(other / base) for base in base_times for other in other_times]
    directions = {(change > limit) - (change < -limit) for change in changes}
    if len(directions) == 1:
        return ""
    texts = [f"{cell.environment} takes {states[cell].sentence}" for cell in sides if cell in states]
    return f"{'; '.join(texts)}: the state of a process decides which side is faster"
