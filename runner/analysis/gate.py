"""The gate of ``--fail-on``: which rows of a comparison a build does not accept (decision 0106).

>>> parse_conditions(["slower:5%,undecided"])
(Condition(word='slower', limit=0.05), Condition(word='undecided', limit=0.0))
"""

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runner.analysis.comparison_model import Comparison, Row
from runner.core.errors import Problem, UsageError
from runner.core.metrics import BY_CONDITION, TIME

UNDECIDED = "undecided"
WITHOUT_VERDICT = frozenset({"inconclusive", "not-comparable"})
"""Verdicts of the rows that ``undecided`` is about."""
_CONDITION = re.compile(r"(?P<word>[a-z0-9-]+)(?::(?P<percent>[0-9]+(?:\.[0-9]+)?) ?%)?", re.ASCII)
_EXAMPLE = "write --fail-on slower:5%, --fail-on slower:5%,memory:5%, or --fail-on slower,undecided"


@dataclass(frozen=True, slots=True)
class Condition:
    """What a row may not be.

    Attributes:
        word: of a metric, see ``core.metrics.BY_CONDITION``, or UNDECIDED.
        limit: the share by which a side has to be worse, by its estimate, 0.05 for 5 %; 0 leaves it to the verdict.
    """

    word: str
    limit: float = 0.0

    @property
    def text(self) -> str:
        """The condition as it is typed."""
        return f"{self.word}:{100 * self.limit:.6g}%" if self.limit else self.word

    def is_broken_by(self, row: Row) -> bool:
        """Return whether a row breaks the condition.

        The verdict says whether there is a change: its false ones are controlled over all rows of the table. The
        estimate says how large it is. The low end of the interval would let the same change pass on a noisier machine.
        """
        if self.word == UNDECIDED:
            return row.verdict in WITHOUT_VERDICT
        metric = BY_CONDITION[self.word]
        if row.metric != metric.name or row.verdict != metric.worse or row.ratio is None:
            return False
        return row.ratio >= 1 + self.limit

    @property
    def metric(self) -> str:
        """The metric whose rows it is about; empty for UNDECIDED, which is about those of the other conditions."""
        return "" if self.word == UNDECIDED else BY_CONDITION[self.word].name


@dataclass(frozen=True, slots=True)
class BrokenCondition:
    """A row that breaks a condition."""

    condition: Condition
    row: Row


@dataclass(frozen=True, slots=True)
class GateResult:
    """What the gate makes of some comparisons.

    Attributes:
        conditions: what rows may not be.
        broken: the rows that break them, in the order of the conditions, the largest ratio first.
        compared: how many rows the gate looked at: those of releases whose sides both have the metric of a condition.
        without_rows: the conditions for which there is no such row.
    """

    conditions: tuple[Condition, ...]
    broken: tuple[BrokenCondition, ...]
    compared: int
    without_rows: tuple[Condition, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether something was compared for each condition, and no row breaks one."""
        return self.compared > 0 and not self.broken and not self.without_rows


def parse_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Return the conditions of ``--fail-on``, each once.

    Args:
        texts: conditions with commas between them.

    Raises:
        UsageError: there is no such condition.
    """
    parts = [part.strip() for text in texts for part in text.split(",")]
    return tuple(dict.fromkeys(map(_parsed, parts)))


def _parsed(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    words = (*BY_CONDITION, UNDECIDED)
    if match is None:
        raise UsageError(Problem(f"--fail-on: cannot read {text!r:.100}", hint=_EXAMPLE))
    word = match["word"]
    if word not in words:
        close = difflib.get_close_matches(word, words, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(words)}"
        raise UsageError(Problem(f"--fail-on: there is no condition {word!r:.100}", hint=hint))
    if match["percent"] is None:
        return Condition(word)
    limit = float(match["percent"]) / 100
    if word == UNDECIDED or not math.isfinite(limit):
        raise UsageError(Problem(f"--fail-on: {word} takes no limit {text.partition(':')[2]:.100}", hint=_EXAMPLE))
    return Condition(word, limit)


def gate(comparisons: Iterable[Comparison], conditions: Sequence[Condition]) -> GateResult:
    """Return which rows break a condition; those of A/A controls do not count.

    Args:
        comparisons: with their verdicts.
        conditions: what a row may not be.
    """
    metrics = {each.metric for each in conditions} - {""} or {TIME}
    rows = [row for each in comparisons if not each.is_control for row in (*each.rows, *each.metrics)]
    measured = [row for row in rows if row.metric in metrics and None not in row.values]
    known = {row.metric for row in measured}
    slowest = sorted(measured, key=lambda row: -(row.ratio or 0.0))
    broken = (BrokenCondition(each, row) for each in conditions for row in slowest if each.is_broken_by(row))
    without_rows = tuple(each for each in conditions if each.metric and each.metric not in known)
    return GateResult(tuple(conditions), tuple(broken), len(measured), without_rows)
