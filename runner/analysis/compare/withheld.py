"""Verdicts that hold in the runner's processes alone, or in one of two states of a program: they are withheld."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from runner.analysis.comparison_model import Row
from runner.analysis.plain_control import DIFFERS, REMEDY, PlainPair, differ_unlike
from runner.analysis.process_states import TWO_STATES, ProcessStates
from runner.core import units
from runner.core.model import Cell
from runner.core.model.cells import is_control

WITHHELD = frozenset({DIFFERS, TWO_STATES})
"""Codes of rows whose verdict is withheld: no mean includes their ratios."""
JUDGED = frozenset({"faster", "slower", "same", "same-median", "inconclusive"})
"""Verdicts that follow from the rounds of a row."""


class ProcessFindings(NamedTuple):
    """What the processes of a run show of its cells: plain-process controls, and two states."""

    plain: Mapping[Cell, PlainPair]
    states: Mapping[Cell, ProcessStates]


def withhold(rows: Iterable[Row], findings: Mapping[str, ProcessFindings], margin: float) -> Iterator[Row]:
    """Yield the rows; those whose verdict depends on how a process was started, or on its state, become inconclusive.

    More rounds do not decide them, so they ask for none.

    Args:
        rows: with their verdicts.
        findings: run -> what its processes show.
        margin: the relative change that counts as none.
    """
    for row in rows:
        of_run = findings.get(row.runs[0]) if len(row.runs) == 1 and row.rounds else None
        code, reason = "", ""
        if of_run and row.verdict in JUDGED and not is_control(row.environment):
            code, reason = _two_states(row, of_run.states, margin) or _differs_from_plain(row, of_run.plain)
        if code:
            yield replace(row, verdict="inconclusive", code=code, reason=reason, more_rounds=0, more_rounds_low=0)
        else:
            yield row


def _two_states(row: Row, states: Mapping[Cell, ProcessStates], margin: float) -> tuple[str, str] | None:
    """Return code and reason if the states of a side differ in what the row would say; else None."""
    sides = (row.base, row.other)
    if states.keys().isdisjoint(sides) or not row.base_seconds or not row.seconds:
        return None
    base_times, other_times = (
        (states[cell].fast, states[cell].slow) if cell in states else (seconds,)
        for cell, seconds in zip(sides, (row.base_seconds, row.seconds), strict=True)
    )
    limit = math.log1p(margin)
    changes = [math.log(other / base) for base in base_times for other in other_times]
    directions = {(change > limit) - (change < -limit) for change in changes}
    if len(directions) == 1:
        return None
    texts = [f"{cell.environment} takes {states[cell].sentence}" for cell in sides if cell in states]
    return TWO_STATES, f"{'; '.join(texts)}: the state of a process decides which side is faster"


def _differs_from_plain(row: Row, plain: Mapping[Cell, PlainPair]) -> tuple[str, str]:
    """Return code and reason if plain processes show another ratio of the sides; else two empty texts."""
    base, other = plain.get(row.base), plain.get(row.other)
    if base is None or other is None or not differ_unlike(base, other):
        return "", ""
    in_plain = (row.ratio or 1.0) * other.ratio / base.ratio
    texts = [f"{units.digits(pair.ratio)} times for {pair.cell.environment}" for pair in (base, other)]
    reason = f"plain processes take {' and '.join(texts)} what was measured: "
    reason += f"with them the ratio is {units.digits(in_plain)}, not {units.digits(row.ratio or 1.0)}; {REMEDY}"
    return DIFFERS, reason
