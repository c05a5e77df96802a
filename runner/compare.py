"""Which of two environments is faster, cell by cell, and how far the stored rounds can tell."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from runner import stats
from runner.comparison import COMPARABLE, Comparison, Planned, Results, Row
from runner.errors import Problem, RunnerError, UsageError
from runner.model import Cell


class _Pair(NamedTuple):
    base: Cell
    other: Cell


@dataclass(frozen=True, slots=True)
class _Measured:
    """The good rounds of one cell: round -> log of the median in seconds, and the values of each fact."""

    logs: Mapping[int, float]
    facts: Mapping[str, frozenset[str]]

    @property
    def seconds(self) -> float:
        return float(np.exp(np.median(list(self.logs.values()))))


@dataclass(frozen=True, slots=True)
class _Side:
    """What one run knows of one environment; ``ends`` holds the (code, reason) of a cell without a good record."""

    run: str
    environment: str
    framework: str
    measured: Mapping[Cell, _Measured]
    kinds: Mapping[Cell, str]
    planned: frozenset[Cell]
    ends: Mapping[Cell, tuple[str, str]]

    @property
    def cells(self) -> Collection[Cell]:
        """Every cell that was asked for or measured."""
        return self.kinds.keys()


def compare(
    results: Iterable[Results],
    base: str,
    others: Sequence[str],
    *,
    margin: float = stats.MARGIN,
    best: bool = False,
    known: Collection[str] = (),
) -> Comparison:
    """Return what the newest run with both sides says of each other environment against the base.

    Args:
        results: newest first; only as many are taken as it needs.
        base: environment id.
        others: environment ids.
        margin: the change that counts as none, above 0.
        best: take the fastest implementation of each side, instead of equal ones.
        known: further environment ids that are no mistake, those of the matrix.

    Raises:
        UsageError: an id that neither a run nor ``known`` has, or one that is asked for twice.
        RunnerError: nothing can be compared; it says what is missing, why, and what to do.
    """
    asked = (base, *others)
    if not others or len(set(asked)) < len(asked):
        raise UsageError(Problem("compare needs a base and other environments, each once", hint="runner compare BASE OTHER..."))
    runs = _Runs(results, asked)
    found = {other: _choose(runs, base, other, best=best) for other in others}
    usable = {other: match for other, match in found.items() if match is not None and match.usable}
    if not usable:
        _unknown(runs, asked, known)
        raise RunnerError(_nothing(runs, found, asked))
    rows = [row for match in found.values() if match for row in match.rows(margin)]
    order = {other: index for index, other in enumerate(others)}
    rows.sort(key=lambda r: (r.workload, r.case, r.phase, r.precision, r.implementation, order[r.environment]))
    first = next(iter(usable.values()))
    return Comparison(
        base=base,
        others=tuple(others),
        device=first.device,
        rows=tuple(rows),
        only=tuple(note for other in others for note in _notes(runs, found[other], other)),
        margin=margin,
    )
