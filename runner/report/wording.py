"""A ratio as a change, and a verdict in words, as every text for people shows them.

A ratio is other over base. People read "3.7x faster" more easily than 0.271, and "5.2 % slower" more easily than 1.052,
so every text has the change with its direction, as ``change`` and ``change_range`` write it; only JSON and CSV have the
ratio.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, Protocol, get_args

from runner.analysis.compare.tails import LONGER_TAIL, OPEN_TAIL, SHORTER_TAIL
from runner.analysis.comparison_model import LEANING, Comparison, Row, Verdict
from runner.core.metrics import BY_NAME, TIME, Metric
from runner.report.formatting import DASH, counted

Word = Literal[
    "faster",
    "probably faster",
    "same",
    "same median, shorter tail",
    "same median, longer tail",
    "same median",
    "can't tell",
    "probably slower",
    "slower",
    "not comparable",
    "not measured",
]
"""What a comparison says: its verdict. Of an open row that is LEANING, on which side of 1 it probably is; where only
the medians are the same, on which side the ratio of the means of all calls is, if that is known."""
WORDS: tuple[Word, ...] = get_args(Word)
TAIL_WORDS: Mapping[str, Word] = {
    LONGER_TAIL: "same median, longer tail",
    SHORTER_TAIL: "same median, shorter tail",
    OPEN_TAIL: "same median",
}
"""Code of a row whose medians are the same -> its word."""
VERDICT_WORDS: Mapping[Verdict, Word] = {
    "faster": "faster",
    "same": "same",
    "slower": "slower",
    "not-comparable": "not comparable",
    "not-measured": "not measured",
}
"""Verdict -> its word, where that depends on nothing else."""
CANNOT_TELL: Word = "can't tell"
PROBABLY: tuple[Word, Word] = ("probably faster", "probably slower")
STATE_WORDS: Mapping[str, str] = {
    **{str(verdict): word for verdict, word in VERDICT_WORDS.items()},
    "inconclusive": CANNOT_TELL,
    "undecided": CANNOT_TELL,
    "same-median": "same median",
}
"""Verdict, or state of a comparison in JSON -> its word, where only that is known."""
FARTHEST = 1e3
"""Factor beyond which an end of an interval is no limit: few rounds that scatter much leave it open."""
FARTHEST_AROUND_ONE = 10.0
"""The same of an interval that leaves the direction open: that a release is at most 300x faster is no answer."""
NOTHING = "the rounds show nothing"
"""An interval of which both ends are open."""
AT_LEAST: Mapping[str, str] = {
    "slower": "at least as slow",
    "faster": "at least as fast",
    "more": "at least as much",
    "less": "at most as much",
    "fewer": "at most as many",
}
"""Direction of the open end of an interval -> the interval, if its other end is no change."""
PERCENT_BELOW = 1.195
"""Factor below which a change is written as a share: the first that would be rounded to 1.20x."""
NO_CHANGE = "0.0 %"


class WithRatio(Protocol):
    """What was compared: a row, a change of a night, a step of a search, a point of the history."""

    @property
    def ratio(self) -> float | None:
        """Other over base; None if there is none."""

    @property
    def ratio_low(self) -> float | None:
        """The lower end of its 95 % interval; None if there is none."""

    @property
    def ratio_high(self) -> float | None:
        """The upper end of its 95 % interval; None if there is none."""


def amount(ratio: float, *, of_less: bool = False, as_factor: bool = False) -> str:
    """Return how large a change is, without a direction: a factor, and below 20 % a share.

    Args:
        ratio: other over base, above 0.
        of_less: whether a smaller value is less of something, so that 5 % less is 0.95 of it. A smaller time is a
            higher speed: 5 % faster is 1.05 times as fast.
        as_factor: never as a share.

    >>> amount(0.021), amount(0.271), amount(1.206), amount(1.106), amount(1.052), amount(0.95)
    ('48x', '3.7x', '1.21x', '11 %', '5.2 %', '5.3 %')
    >>> amount(0.95, of_less=True), amount(1.106, as_factor=True)
    ('5.0 %', '1.11x')
    """
    factor = max(ratio, 1 / ratio)
    if factor < PERCENT_BELOW and not as_factor:
        percent = 100 * (1 - ratio if of_less and ratio < 1 else factor - 1)
        return f"{percent:.{1 if percent < 9.95 else 0}f} %"
    decimals = 0 if factor >= 19.95 else 1 if factor >= 2.995 else 2
    return f"{factor:.{decimals}f}x"


def change(metric: Metric, ratio: float | None) -> str:
    """Return a ratio as a change for people, ``3.7x faster``, ``5.2 % more memory``; a dash if there is none."""
    if ratio is None:
        return DASH
    text = amount(ratio, of_less=metric.better != "faster")
    return text if text == NO_CHANGE else " ".join(filter(None, (text, metric.change(ratio), metric.noun)))


def change_range(metric: Metric, low: float | None, high: float | None, *, direction: bool = True) -> str:
    """Return an interval of ratios as changes, the smaller change first; empty if there is none.

    Without ``direction``, an interval on one side of 1 has none: it stands next to a change that has one. Its ends are
    both factors or both shares. An interval around 1 has both directions, the worse one first, without the noun of the
    metric. An end beyond FARTHEST is open: the other one is then "more than 1.20x slower", or "at most 3.2x faster"; if
    both are beyond FARTHEST_AROUND_ONE, it is NOTHING.
    """
    if low is None or high is None:
        return ""
    if low < 1 / FARTHEST_AROUND_ONE and high > FARTHEST_AROUND_ONE:
        return NOTHING
    if low < 1 / FARTHEST or high > FARTHEST:
        return _open_range(metric, low, high, direction=direction)
    return _closed_range(metric, low, high, direction=direction)


def _closed_range(metric: Metric, low: float, high: float, *, direction: bool) -> str:
    as_factor = min(low, 1 / high) < 1 / PERCENT_BELOW and not low < 1 < high
    smaller, larger = (
        amount(end, of_less=metric.better != "faster", as_factor=as_factor)
        for end in ((low, high) if low >= 1 else (high, low))
    )
    if low < 1 < high and not smaller == larger == NO_CHANGE:
        ends = (smaller, metric.worse), (larger, metric.better)
        return " to ".join(text if text == NO_CHANGE else f"{text} {word}" for text, word in ends)
    text = smaller if smaller == larger else f"{smaller} to {larger}"
    return f"{text} {metric.change(high)} {metric.noun}".rstrip() if direction and text != NO_CHANGE else text


def _open_range(metric: Metric, low: float, high: float, *, direction: bool) -> str:
    """Return an interval of which one end is open."""
    end, is_around_one, toward = (low, low < 1, metric.worse) if high > FARTHEST else (high, high > 1, metric.better)
    text = amount(end, of_less=metric.better != "faster")
    if text == NO_CHANGE:
        return f"{AT_LEAST[toward]} {metric.noun}".rstrip() if direction else AT_LEAST[toward]
    if is_around_one:
        return f"at most {text} {metric.change(end)}"
    return f"more than {text} {metric.change(end)} {metric.noun}".rstrip() if direction else f"more than {text}"


def change_with_range(metric: Metric, measured: WithRatio) -> str:
    """Return a change with its 95 % interval: ``3.7x faster (3.2x to 4.2x)``; a dash if there is no ratio."""
    ends = change_range(metric, measured.ratio_low, measured.ratio_high, direction=False)
    return change(metric, measured.ratio) + (f" ({ends})" if ends else "")


def speedup(ratio: float | None) -> str:
    """Return a ratio of times as a change of speed; a dash if there is none.

    >>> speedup(0.271), speedup(1.14), speedup(1.0001)
    ('3.7x faster', '14 % slower', '0.0 %')
    """
    return change(BY_NAME[TIME], ratio)


def speedup_range(low: float | None, high: float | None, *, direction: bool = True) -> str:
    """Return an interval of ratios of times as changes of speed; see ``change_range``.

    >>> speedup_range(0.24, 0.31), speedup_range(1.1, 1.17), speedup_range(1.1, 1.34)
    ('3.2x to 4.2x faster', '10 % to 17 % slower', '1.10x to 1.34x slower')
    >>> speedup_range(0.31, 1.01), speedup_range(0.5, 0.5), speedup_range(0.9999, 1.0001)
    ('1.0 % slower to 3.2x faster', '2.00x faster', '0.0 %')
    >>> speedup_range(0.24, 0.31, direction=False), speedup_range(0.31, 1.01, direction=False)
    ('3.2x to 4.2x', '1.0 % slower to 3.2x faster')
    """
    return change_range(BY_NAME[TIME], low, high, direction=direction)


def speedup_spread(low: float, high: float) -> str:
    """Return how far the ratios of the times of tests are apart; unlike an interval, it has two ends.

    >>> speedup_spread(1e-4, 1.1)
    '10 % slower to 10000x faster'
    """
    return _closed_range(BY_NAME[TIME], low, high, direction=True)


def visible_size(detectable_change: float) -> str:
    """Return the smallest change that a run can see, a share; empty beyond FARTHEST_AROUND_ONE: it sees none."""
    return amount(1 + detectable_change) if 1 + detectable_change <= FARTHEST_AROUND_ONE else ""


def interval(ends: str) -> str:
    """Return the ends of an interval as a clause: ``95 % interval 3.2x to 4.2x``; empty without ends."""
    return ends if ends in ("", NOTHING) else f"95 % interval {ends}"


def mean_sentences(comparison: Comparison) -> list[str]:
    """Return a sentence for each environment that has a mean over its tests: the change, its interval and its scope."""
    sentences = []
    several = len({mean.device_name for mean in comparison.overall}) > 1
    for mean in comparison.overall:
        on_kind = f" on {mean.device_name}" if several else ""
        ends = speedup_range(mean.ratio_low, mean.ratio_high) or "no interval from one round"
        text = f"{mean.environment} against {comparison.base}{on_kind}: {speedup(mean.ratio)} on average, {ends}"
        scope = f"over {counted(mean.cells, 'test')} in {counted(len(mean.workloads), 'workload')}"
        median = f"median {speedup(mean.median_ratio)}"
        sentences.append("; ".join(filter(None, (f"{text}, {scope}", median, mean.noise))))
    return sentences


def word(row: Row) -> Word:
    """Return the verdict of a row about times in words."""
    if row.verdict == "same-median":
        return TAIL_WORDS[row.code]
    if row.verdict in VERDICT_WORDS:
        return VERDICT_WORDS[row.verdict]
    if row.code == LEANING and row.ratio:
        return "probably faster" if row.ratio < 1 else "probably slower"
    return CANNOT_TELL


def row_range(row: Row) -> str:
    """Return the 95 % interval of a row about times, to stand beside its verdict: that has the direction, if any."""
    return speedup_range(row.ratio_low, row.ratio_high, direction=not has_direction(word(row)))


def has_direction(of_row: Word) -> bool:
    """Return whether a word says that something is faster or slower, if only probably."""
    return of_row in ("faster", "slower", *PROBABLY)


def is_slower(of_row: Word) -> bool:
    """Return whether a word says that something is slower, if only probably."""
    return of_row in ("slower", "probably slower")


def verdict(row: Row) -> str:
    """Return the verdict of a row about times with its size: ``2.00x faster``, ``probably 12 % slower``, ``same``."""
    of_row = word(row)
    if of_row in ("faster", "slower"):
        return speedup(row.ratio)
    if of_row in PROBABLY:
        return f"probably {speedup(row.ratio)}"
    if row.ratio and row.rounds == 1 and row.verdict == "inconclusive":
        return f"{speedup(row.ratio)}, one round"
    return f"{of_row} ({speedup(row.ratio)})" if row.ratio and of_row == "not comparable" else of_row


def verdict_word(verdict: str) -> str:
    """Return the word of a verdict of which no more is known; one without a word, such as ``more``, is its own."""
    return STATE_WORDS.get(verdict, verdict)


def counts(words: Iterable[Word]) -> dict[Word, int]:
    """Return how often each word is there, in the order of ``WORDS``, without those that are not.

    >>> counts(["same", "faster", "same"])
    {'faster': 1, 'same': 2}
    """
    counter = Counter(words)
    return {each: counter[each] for each in WORDS if each in counter}


def counted_words(words: Mapping[Word, int], between: str = ", ") -> str:
    """Return counts in a line: ``5 faster, 1 can't tell``."""
    return between.join(f"{count} {each}" for each, count in words.items())
