"""A ratio as a speed-up with its direction, and a verdict in words, as every output shows them.

A ratio is other over base time. People read "3.7x faster" more easily than 0.271, so every text has the factor with its
direction; JSON and CSV have the ratio.
"""

from collections.abc import Mapping
from typing import Literal, get_args

from runner.analysis.compare.tails import LONGER_TAIL, OPEN_TAIL, SHORTER_TAIL
from runner.analysis.comparison_model import LEANING, Comparison, Row, Verdict
from runner.report.comparison_notes import mean_scope
from runner.report.formatting import DASH

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


def factor(ratio: float) -> str:
    """Return how many times as fast the faster side is, without a direction.

    >>> factor(0.021), factor(0.271), factor(1.106)
    ('48x', '3.7x', '1.11x')
    """
    value = max(ratio, 1 / ratio)
    decimals = 0 if value >= 19.95 else 1 if value >= 2.995 else 2
    return f"{value:.{decimals}f}x"


def speedup(ratio: float | None) -> str:
    """Return a ratio of times as a change of speed; a dash if there is none.

    >>> speedup(0.271), speedup(1.14), speedup(1.001)
    ('3.7x faster', '1.14x slower', '1.00x')
    """
    if ratio is None:
        return DASH
    text = factor(ratio)
    return text if text == "1.00x" else f"{text} {'faster' if ratio < 1 else 'slower'}"


def speedup_range(low: float | None, high: float | None, *, direction: bool = True) -> str:
    """Return an interval of ratios as changes of speed, the smaller change first; empty if there is none.

    Without ``direction``, an interval on one side of 1 has none: it stands next to a change that has one.

    >>> speedup_range(0.24, 0.31), speedup_range(1.1, 1.17), speedup_range(0.31, 1.01), speedup_range(0.5, 0.5)
    ('3.2x to 4.2x faster', '1.10x to 1.17x slower', '1.01x slower to 3.2x faster', '2.00x faster')
    >>> speedup_range(0.24, 0.31, direction=False), speedup_range(0.31, 1.01, direction=False)
    ('3.2x to 4.2x', '1.01x slower to 3.2x faster')
    """
    if low is None or high is None or low <= 0:
        return ""
    smaller, larger = (high, low) if high <= 1 else (low, high) if low >= 1 else (high, low)
    ends = speedup(smaller), speedup(larger)
    if ends[0] == ends[1]:
        return ends[0]
    if low < 1 < high:
        return f"{ends[0]} to {ends[1]}"
    return f"{factor(smaller)} to {ends[1] if direction else factor(larger)}"


def mean_sentences(comparison: Comparison) -> list[str]:
    """Return a sentence for each environment that has a mean over its tests: the change, its interval and its scope."""
    sentences = []
    several = len({mean.device_name for mean in comparison.overall}) > 1
    for mean in comparison.overall:
        on_kind = f" on {mean.device_name}" if several else ""
        ends = speedup_range(mean.ratio_low, mean.ratio_high) or "no interval from one round"
        text = f"{mean.environment} against {comparison.base}{on_kind}: {speedup(mean.ratio)} on average, {ends}, over "
        median = f"median {speedup(mean.median_ratio)}"
        sentences.append("; ".join(filter(None, (text + mean_scope(mean), median, mean.noise))))
    return sentences


def word(row: Row) -> Word:
    """Return the verdict of a row about times in words."""
    if row.verdict == "same-median":
        return TAIL_WORDS[row.code]
    if row.verdict in VERDICT_WORDS:
        return VERDICT_WORDS[row.verdict]
    if row.code == LEANING and row.ratio:
        return "probably faster" if row.ratio < 1 else "probably slower"
    return "can't tell"


def counts(comparison: Comparison, environment: str) -> dict[Word, int]:
    """Return how many rows of an environment have each word, without those that no row has."""
    words = [word(row) for row in comparison.rows if row.environment == environment]
    return {each: words.count(each) for each in WORDS if each in words}


def counted_words(words: dict[Word, int]) -> str:
    """Return counts in a line: ``5 faster, 1 can't tell``."""
    return ", ".join(f"{count} {each}" for each, count in words.items())
