"""The answer of a run: which release is faster, by how much, on what, and whether to believe it.

The page, ``report.md`` and the end of ``runner run`` show it first.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from runner.analysis.comparison_model import Comparison, GeometricMean, Row
from runner.analysis.model import Grade
from runner.analysis.releases import EnvironmentRelease
from runner.report import metric_text, panels, wording
from runner.report.formatting import counted, few
from runner.report.wording import Word
from runner.stats.intervals import probable, significant

MAX_NAMED_WORKLOADS = 6
"""Workloads that a card names; more are counted."""
PROBABLY: tuple[Word, Word] = ("probably faster", "probably slower")
SHOWN_IN_HEADLINE = 2
"""Frameworks that the headline names; the cards have all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChange:
    """What one release changes, against another of the same comparison.

    Attributes:
        base: name of the release it is compared with; ``other`` its own; ``environment`` the id of its environment.
        ratio: geometric mean over its tests, or the ratio of its only test; None without a ratio.
        low: end of the 95 % interval of the ratio, ``high`` the other; None without an interval.
        tests: number of tests with a ratio; ``workloads`` are what they belong to.
        median_ratio: the ratio of the median test; None without a mean.
        p_value: of no difference on average; None without a mean, and with one round.
        word: what is said about an only test; of an average that it is probably faster or slower; else None.
        clear: whether the change is called: of an only test its verdict, else ``_with_claims``.
        noise: a sentence if an A/A control differs as much; otherwise empty.
        words: how many of its tests have each word, in the order of ``WORDS``.
        rows: its tests with a ratio, the slowest first.
    """

    base: str
    other: str
    environment: str
    ratio: float | None
    low: float | None
    high: float | None
    tests: int
    workloads: tuple[str, ...]
    clear: bool
    noise: str
    words: Mapping[Word, int]
    rows: tuple[Row, ...]
    median_ratio: float | None = None
    p_value: float | None = None
    word: Word | None = None

    @property
    def has_direction(self) -> bool:
        """Whether it says which release is faster: the change is called, or probable."""
        return self.ratio is not None and (self.clear or self.word in PROBABLY)

    @property
    def big(self) -> str:
        """The change in large letters."""
        if self.ratio is None:
            return "no average"
        if self.clear:
            return wording.speedup(self.ratio)
        if self.word in PROBABLY:
            return f"probably {wording.speedup(self.ratio)}"
        return "same" if self.word == "same" else "no clear difference"

    @property
    def scope(self) -> str:
        """The interval, what it covers and how far single tests are apart."""
        ends = wording.speedup_range(self.low, self.high)
        interval = f"95 % interval {ends}" if ends else ""
        if self.tests == 1:
            tests = "in the only test that both ran" + "".join(f": {row.case_id}" for row in self.rows[:1])
        else:
            tests = f"{counted(self.tests, 'test')} of {few(self.workloads, MAX_NAMED_WORKLOADS)}"
            tests = tests if self.ratio is None else f"on average over {tests}"
        return "; ".join(filter(None, (interval, tests, self.median, self._extremes())))

    @property
    def median(self) -> str:
        """The change of the median test; empty without an average."""
        return "" if self.median_ratio is None else f"median {wording.speedup(self.median_ratio)}"

    def _extremes(self) -> str:
        if len(self.rows) < 2:
            return ""
        slowest, quickest = self.rows[0].ratio, self.rows[-1].ratio
        return f"single tests {wording.speedup_range(quickest, slowest)}"

    @property
    def sentence(self) -> str:
        """The change as a clause of the headline."""
        if self.ratio is None:
            return f"{self.other} and {self.base} cannot be compared"
        if self.word == "same":
            return f"{self.other} takes the same time as {self.base}"
        if not self.has_direction:
            return f"{self.other} and {self.base} do not clearly differ"
        return f"{self.other} is {'' if self.clear else 'probably '}{wording.speedup(self.ratio)} than {self.base}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A comparison in short: its newest release, and the releases between it and the base, the newest first.

    ``device_name`` is its kind of device if the run has several, and else empty.
    """

    newest: ReleaseChange
    between: tuple[ReleaseChange, ...]
    device_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a run.

    Attributes:
        headline: a sentence.
        cards: one for each comparison of releases on each kind of device, A/A controls left out.
        slower: the rows that are slower, or probably, the largest change first, with the names of their releases.
        grade: of the run; None without a good record.
        undecided: how many comparisons of releases are not decided, of ``compared``; the run gave ``abandoned`` of them
            up.
        disturbed: how many rounds other programs disturbed, and were measured again, as a sentence; empty if none.
        changed: the rows about other metrics than time that changed, the largest change first, with the same names.
    """

    headline: str
    cards: tuple[Card, ...]
    slower: tuple[tuple[Row, str, str], ...]
    grade: Grade | None
    undecided: int
    compared: int
    abandoned: int = 0
    disturbed: str = ""
    changed: tuple[tuple[Row, str, str], ...] = ()


def answer(
    comparisons: Iterable[Comparison],
    names: Mapping[str, EnvironmentRelease],
    grade: Grade | None,
    fallback: str,
    disturbed: str = "",
) -> Answer:
    """Return the answer of a run.

    Args:
        comparisons: of its environments, each against a base; those with an A/A control do not count.
        names: environment -> its release; an environment that it lacks is called by its id.
        grade: of the run.
        fallback: the headline where nothing is compared.
        disturbed: a sentence about its disturbed rounds; empty if it has none.
    """
    of_releases = [each for each in comparisons if not each.is_control]
    several = panels.has_several_kinds(of_releases)
    parts = panels.split(of_releases)
    changes = _with_claims([[_change(part, other, names) for other in part.others] for part in parts])
    cards = tuple(
        replace(card, device_name=part.device_name if several else "")
        for part, of_part in zip(parts, changes, strict=True)
        if (card := _card(of_part))
    )
    rows = [row for each in of_releases for row in each.rows if row.ratio is not None]
    return Answer(
        headline=_headline(cards, grade) or fallback,
        cards=cards,
        slower=tuple(_slower(of_releases, names)),
        grade=grade,
        undecided=sum(row.verdict == "inconclusive" for row in rows),
        compared=len(rows),
        abandoned=sum(row.abandoned for row in rows),
        disturbed=disturbed,
        changed=changed_metrics(of_releases, names),
    )


def changed_metrics(
    comparisons: Iterable[Comparison], names: Mapping[str, EnvironmentRelease]
) -> tuple[tuple[Row, str, str], ...]:
    """Return the rows about other metrics than time that changed, the largest change first, with their releases.

    A quantile of the calls that changed as the time did is left out: it repeats the verdict.

    Args:
        comparisons: those with an A/A control do not count.
        names: environment -> its release.
    """
    of_releases = [each for each in comparisons if not each.is_control]
    bases = {id(row): each.base for each in of_releases for row in each.metrics}
    times = {(row.base, row.other): row.verdict for each in of_releases for row in each.rows}
    return tuple(
        (row, name(bases[id(row)], names), base_name(row.environment, bases[id(row)], names))
        for row in metric_text.changed(row for each in of_releases for row in each.metrics)
        if not (metric_text.metric_of(row).quantile and times.get((row.base, row.other)) == row.verdict)
    )


def _with_claims(changes: Sequence[Sequence[ReleaseChange]]) -> list[list[ReleaseChange]]:
    """Return the changes of all comparisons; an average is clear or probable only by what all of them show.

    The levels are those of a row's verdict, and so are the shares of false ones among all that are called, and among
    those that are called probable.
    """
    p_values = np.array([change.p_value for of_part in changes for change in of_part if change.p_value is not None])
    called = significant(p_values)
    levels = np.where(called, "called", np.where(probable(p_values, called), "probable", ""))
    of_averages = iter(levels.tolist())
    return [
        [change if change.p_value is None else _judged(change, next(of_averages)) for change in of_part]
        for of_part in changes
    ]


def _judged(change: ReleaseChange, level: str) -> ReleaseChange:
    """Return an average as clear if it is called, or else as probable if its interval excludes 1, too."""
    low, high = change.low or 0.0, change.high or math.inf
    if change.clear and level == "probable" and (low > 1 or high < 1):
        return replace(change, clear=False, word=PROBABLY[0] if high < 1 else PROBABLY[1])
    return replace(change, clear=change.clear and level == "called")


def _card(changes: Sequence[ReleaseChange]) -> Card | None:
    measured = [change for change in changes if change.words]
    if not measured:
        return None
    *between, newest = measured
    return Card(newest=newest, between=tuple(reversed(between)))


def _change(comparison: Comparison, other: str, names: Mapping[str, EnvironmentRelease]) -> ReleaseChange:
    rows = sorted(
        (row for row in comparison.rows if row.environment == other and row.ratio is not None),
        key=lambda row: -(row.ratio or 0.0),
    )
    mean = next((each for each in comparison.overall if each.environment == other), None)
    ratio, low, high = _average(mean, rows)
    noise = mean.noise if mean else ""
    word = wording.word(rows[0]) if mean is None and len(rows) == 1 else None
    is_beyond = mean is not None and mean.p_value is not None and abs(mean.ratio - 1) > comparison.margin
    return ReleaseChange(
        base=base_name(comparison.base, other, names),
        other=name(other, names),
        environment=other,
        ratio=ratio,
        low=low,
        high=high,
        tests=mean.cells if mean else len(rows),
        workloads=tuple(mean.workloads if mean else dict.fromkeys(row.workload for row in rows)),
        clear=word in ("faster", "slower") or (is_beyond and not noise),
        median_ratio=mean.median_ratio if mean else None,
        p_value=mean.p_value if mean else None,
        word=word,
        noise=noise,
        words=wording.counts(comparison, other),
        rows=tuple(rows),
    )


def _average(mean: GeometricMean | None, rows: Sequence[Row]) -> tuple[float | None, float | None, float | None]:
    if mean:
        return mean.ratio, mean.ratio_low, mean.ratio_high
    if len(rows) == 1:
        return rows[0].ratio, rows[0].ratio_low, rows[0].ratio_high
    return None, None, None


def name(environment: str, names: Mapping[str, EnvironmentRelease]) -> str:
    """Return the name of an environment's release; its id if the release is not known."""
    return names[environment].name if environment in names else environment


def base_name(base: str, other: str, names: Mapping[str, EnvironmentRelease]) -> str:
    """Return the name of a base next to that of the other release: without the framework if both have the same."""
    if base not in names or other not in names or names[base].framework != names[other].framework:
        return name(base, names)
    return names[base].short


def _headline(cards: Sequence[Card], grade: Grade | None) -> str:
    """Return the largest comparisons in a sentence; empty without a comparison."""
    largest = sorted(cards, key=lambda card: -card.newest.tests)[:SHOWN_IN_HEADLINE]
    if not largest:
        return ""
    if grade and grade.level == "poor":
        reason = f": {grade.reasons[0].sentence}" if grade.reasons else ""
        return f"Not usable{reason}"
    clauses = list(_clauses(largest))
    text = clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}"
    return f"On average {text}" if any(card.newest.tests > 1 for card in largest) else text


def _clauses(cards: Sequence[Card]) -> Iterator[str]:
    """Yield a clause for each card, with its kind of device if there are several; releases are named once in a row."""
    named = ("", "")
    for card in cards:
        change, on_kind = card.newest, f" on {card.device_name}" if card.device_name else ""
        releases = (change.base, change.other) if change.clear else ("", "")
        yield (
            f"{wording.speedup(change.ratio)}{on_kind}" if releases == named != ("", "") else change.sentence + on_kind
        )
        named = releases


def _slower(
    comparisons: Iterable[Comparison], names: Mapping[str, EnvironmentRelease]
) -> Iterator[tuple[Row, str, str]]:
    slower = [
        (row, name(each.base, names), base_name(row.environment, each.base, names))
        for each in comparisons
        for row in each.rows
        if wording.word(row) in ("slower", "probably slower")
    ]
    yield from sorted(slower, key=lambda entry: -(entry[0].ratio or 0.0))
