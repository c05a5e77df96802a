"""The four numbers on top of a page: the largest gain, the largest loss, the smallest change, and the last run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runner.analysis.comparison_model import Comparison
from runner.report import comparison_notes
from runner.report.compared_rows import ComparedRow
from runner.report.last_run import LastRun
from runner.report.wording import Word

MIN_ROWS = 4
"""Comparisons from which a page has numbers on top of them; fewer are read at a glance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyNumber:
    """One of the four numbers.

    Attributes:
        title: what the number is; ``value`` the number, and ``text`` what it is about.
        word: the verdict whose colour it has; empty without one.
        anchor: the row that it is from; empty without one.
        questioned: whether a serious warning puts it into question.
    """

    title: str
    value: str
    text: str
    word: str = ""
    anchor: str = ""
    questioned: bool = False


def key_numbers(
    rows: Sequence[ComparedRow], comparisons: Iterable[Comparison], last: LastRun | None
) -> list[KeyNumber]:
    """Return the numbers on top of a page.

    Args:
        rows: of all comparisons of releases.
        comparisons: those that they are from.
        last: the run before on the same machine; None if that is not known.
    """
    return [
        _largest("largest gain", "faster", rows),
        _largest("largest loss", "slower", rows),
        _smallest_visible(comparisons),
        _agreement(last),
    ]


def _largest(title: str, word: Word, rows: Sequence[ComparedRow]) -> KeyNumber:
    """Return the largest change of one direction of the decided rows, if possible without a serious warning.

    Where larger ones have a warning, its text says so: the reader sees those rows, too.
    """
    decided = [each for each in rows if each.word == word]
    if not decided:
        return KeyNumber(title=title, value="none", text=f"no test is clearly {word}")
    row = max(decided, key=lambda each: (not each.serious, each.size))
    note = "; larger ones have a serious warning" if any(each.size > row.size for each in decided) else ""
    return KeyNumber(
        title=title,
        value=row.change,
        text=f"{row.label}, {row.base} → {row.other}{note}",
        word=word,
        anchor=row.anchor,
        questioned=bool(row.serious),
    )


def _smallest_visible(comparisons: Iterable[Comparison]) -> KeyNumber:
    """Return the smallest change that 8 of 10 such runs call, of the comparison with most tests, and of the others."""
    title = "smallest change this run can see"
    sizes = comparison_notes.detectable_sizes(comparisons)
    if not sizes:
        return KeyNumber(title=title, value="not known", text="one round shows no noise")
    (name, size), *others = sizes
    return KeyNumber(title=title, value=size, text=", ".join([name, *(f"{size} {name}" for name, size in others)]))


def _agreement(last: LastRun | None) -> KeyNumber:
    title = "last run on this machine"
    if last is None:
        return KeyNumber(title=title, value="not known", text="the history was not read")
    if not last.compared:
        return KeyNumber(title=title, value="no earlier run", text="has these tests and releases, of the last few")
    text = f"with the run of {last.measured}"
    if last.farthest:
        text += "; the others are apart by chance" if last.agrees else f"; farthest apart: {last.farthest}"
    value = "agrees" if last.agreeing == last.compared else f"{last.agreeing} of {last.compared} agree"
    return KeyNumber(title=title, value=value, text=text, word="" if last.agrees else "slower")


def limits_sentence(numbers: Sequence[KeyNumber]) -> str:
    """Return the smallest change that a run can see, and whether the last run agrees, for a page of few rows."""
    *_, smallest, last = numbers
    return f"{smallest.title}: {smallest.value}; {last.title}: {last.value}"
