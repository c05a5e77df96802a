"""What a release changes against another: the average over its tests, or its only test, with what may be claimed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.analysis.comparison_model import Row
from runner.analysis.process_states import TWO_STATES
from runner.report import wording
from runner.report.formatting import counted, few
from runner.report.wording import Word

MAX_NAMED_WORKLOADS = 6
"""Workloads that a card names; more are counted."""
UNCOMPARED: tuple[Word, Word] = ("not comparable", "not measured")
ONE_ROUND = "one round: no verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChange:
    """What one release changes, against another of the same comparison.

    Attributes:
        base: name of the release it is compared with, without the framework if both have the same; ``other`` its own
            with the framework; ``environment`` the id of its environment.
        pair: both, ``PyTorch 1.0.0 → 2.13.0``.
        ratio: geometric mean over its tests, or the ratio of its only test; None without a ratio.
        low: end of the 95 % interval of the ratio, ``high`` the other; None without an interval.
        tests: number of tests that the average is over, or without one of those with a ratio; ``workloads`` are theirs.
        median_ratio: the ratio of the median test; None without a mean.
        p_value: of no difference on average; None without a mean, and with one round.
        word: what is said about an only test; of an average that it is probably faster or slower; else None.
        clear: whether the change is called: of an only test its verdict, else by the p-values of all averages.
        noise: a sentence if an A/A control differs as much; otherwise empty.
        words: how many of these tests have each word, in the order of ``WORDS``; of all tests where none has a ratio.
        others: the same of the other tests.
        rows: these tests, the slowest first.
        rounds: the most rounds that one of them has; 0 if they are published figures.
    """

    base: str
    other: str
    pair: str
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
    others: Mapping[Word, int] = field(default_factory=dict)
    rounds: int = 0
    median_ratio: float | None = None
    p_value: float | None = None
    word: Word | None = None

    @property
    def has_direction(self) -> bool:
        """Whether it says which release is faster: the change is called, or probable."""
        return self.ratio is not None and (self.clear or self.word in wording.PROBABLY)

    @property
    def is_comparable(self) -> bool:
        """Whether any of its tests could be compared."""
        return any(word not in UNCOMPARED for word in self.words)

    @property
    def _uncompared(self) -> str:
        """What is said of tests none of which could be compared."""
        return "not measured" if set(self.words) <= {"not measured"} else "not comparable"

    @property
    def big(self) -> str:
        """The change in large letters."""
        if self.has_direction:
            return f"{'' if self.clear else 'probably '}{wording.speedup(self.ratio)}"
        if not self.is_comparable:
            return self._uncompared
        if self.ratio is None:
            return "no average"
        if self.word == "same":
            return "same"
        return ONE_ROUND if self.rounds == 1 else "no clear difference"

    @property
    def states(self) -> str:
        """The times of both states of a program, where they alone decide the only test; empty otherwise."""
        return self.rows[0].reason if len(self.rows) == 1 and self.rows[0].code == TWO_STATES else ""

    @property
    def ends(self) -> str:
        """The interval; empty where the states of a program take its place."""
        return "" if self.states else wording.speedup_range(self.low, self.high, direction=not self.has_direction)

    @property
    def scope(self) -> str:
        """The interval, what it covers and how far single tests are apart."""
        ends = "" if self.states else wording.speedup_range(self.low, self.high)
        if self.tests == 1:
            tests = "in the only test that both ran" + "".join(f": {row.case_id}" for row in self.rows[:1])
        else:
            tests = f"{counted(self.tests, 'test')} of {few(self.workloads, MAX_NAMED_WORKLOADS)}"
            tests = tests if self.ratio is None else f"on average over {tests}"
        about = self.states or wording.interval(ends)
        return "; ".join(filter(None, (about, tests, self.median, self.extremes, self.not_averaged)))

    @property
    def median(self) -> str:
        """The change of the median test; empty without an average."""
        return "" if self.median_ratio is None else f"median {wording.speedup(self.median_ratio)}"

    @property
    def extremes(self) -> str:
        """How far single tests are apart; empty of fewer than two."""
        ratios = [row.ratio for row in self.rows if row.ratio]
        return f"single tests {wording.speedup_spread(min(ratios), max(ratios))}" if len(ratios) > 1 else ""

    @property
    def counts(self) -> str:
        """How many tests there are, and how many of them have each word: ``10 tests: 8 faster, 2 slower``."""
        return f"{counted(sum(self.words.values()), 'test')}: {wording.counted_words(self.words)}"

    @property
    def not_averaged(self) -> str:
        """How many more tests there are, and their words; empty if there is none."""
        if not self.others:
            return ""
        count = sum(self.others.values())
        where = (
            counted(count, "more test")
            if self.median_ratio is None
            else f"not in the average: {counted(count, 'test')}"
        )
        return f"{where}: {wording.counted_words(self.others)}"

    @property
    def sentence(self) -> str:
        """The change as a clause of the headline."""
        if self.has_direction:
            return f"{self.other} is {self.big} than {self.base}"
        if not self.is_comparable:
            return f"{self.other} and {self.base} are {self._uncompared}"
        if self.ratio is None:
            return f"{self.other} has no average against {self.base}, with {self.counts}"
        if self.word == "same":
            return f"{self.other} takes the same time as {self.base}"
        if self.rounds == 1:
            return f"{self.other} and {self.base} have one round and no verdict"
        return f"{self.other} and {self.base} do not clearly differ" + (f": {self.states}" if self.states else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A comparison in short: its newest release, and the releases between it and the base, the newest first.

    ``device_name`` is its kind of device if the run has several, and else empty.
    """

    newest: ReleaseChange
    between: tuple[ReleaseChange, ...]
    device_name: str = ""
