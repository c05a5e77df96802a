"""The comparisons of a run as rows of text: for the table of all comparisons, the heat map and ``report.md``."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from runner.analysis.comparison_model import LEANING, MAX_MORE_ROUNDS, Comparison, Row
from runner.analysis.releases import EnvironmentRelease
from runner.catalog.api_names import api_name
from runner.catalog.cases import CASES, is_network_of_user
from runner.catalog.cases.description import NETWORK, case_names, describe
from runner.core import units
from runner.core.grouping import grouped
from runner.core.metrics import BY_NAME, TIME
from runner.report import comparison_notes, formatting, panels, wording
from runner.report.answer import base_name, name
from runner.report.quality import SHORT, IssueMark, marks
from runner.report.wording import Word

NOISE_FLOOR = "noise-floor"
"""The code of an open row whose A/A control differs as much."""
LONGEST_ADVICE = 32
"""Letters of an advice that stands beside its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """A test that two releases ran.

    Attributes:
        row: the comparison.
        anchor: its id on the page.
        name: the case in plain words, which no other case of the comparisons has; ``api_name`` likewise, and empty for
            a user's network without variants.
        test: case, phase and precision; ``api`` is the implementation, and that of the base if they differ.
        description: what the case computes; empty for an own corpus.
        base: name of the base's release; ``other`` the other's.
        base_time: the base's time with its unit, as measured in the rounds that are compared; ``other_time`` the
            other's.
        unlike: a sentence if the quotient of the two times is not in the interval of the change; otherwise empty.
        change: the speed-up with its direction; ``ends`` is its 95 % interval.
        word: the verdict in words.
        means: the speed-up of the mean of all calls, and its 95 % interval; empty if it is not known.
        slow_calls: the times that 95 % of the calls of both sides do not exceed; empty if one is not known.
        advice: how many more rounds should decide it; empty if it is decided.
        marks: its quality issues, serious ones first.
        options: those of the run's command that measuring again needs, each after a space.
        device_name: its kind of device if the comparisons have several, and else empty.
        measured_on: its boards if the comparisons have several, and else empty.
    """

    row: Row
    anchor: str
    name: str
    api_name: str
    test: str
    api: str
    description: str
    base: str
    other: str
    base_time: str
    other_time: str
    change: str
    ends: str
    word: Word
    means: str
    slow_calls: str
    advice: str
    marks: tuple[IssueMark, ...]
    unlike: str = ""
    options: str = ""
    device_name: str = ""
    measured_on: str = ""

    @property
    def size(self) -> float:
        """How large the change is: the absolute logarithm of the ratio."""
        return abs(math.log(self.row.ratio)) if self.row.ratio else 0.0

    @property
    def phase(self) -> str:
        """The phase, with its precision unless that is fp32."""
        return test_phase(self.row)

    @property
    def label(self) -> str:
        """What was measured, in plain words: ``LSTM, 1 layer of 128 · nn.LSTM · forward``."""
        return " · ".join(filter(None, (self.name, self.api_name, self.phase)))

    @property
    def verdict(self) -> str:
        """What is said of the test, with the size of a change that has a direction."""
        return wording.verdict(self.row)

    @property
    def bare_ends(self) -> str:
        """The 95 % interval of the change, without a direction where the verdict has it."""
        return wording.row_range(self.row)

    @property
    def doubt(self) -> str:
        """Its first serious warning in a few words, with the release that it is about, and the number of the others."""
        issues = [issue for issue in self.row.quality_issues if issue.serious]
        if not issues:
            return ""
        first, words = issues[0], SHORT.get(issues[0].code, issues[0].code)
        of_base = first.environment == self.row.base.environment
        text = f"{self.base if of_base else self.other} {words}" if first.cell else words
        return f"{text}, and {len(issues) - 1} more" if len(issues) > 1 else text

    @property
    def short_advice(self) -> str:
        """What decides the test, in a few words: more rounds, or nothing beyond its A/A control.

        It is empty for a decided test, for one that was given up, since ``trust`` has a mark for all, and for a
        reason that is longer than LONGEST_ADVICE.
        """
        if self.row.code == NOISE_FLOOR:
            return "no farther than its A/A control"
        if self.row.abandoned:
            return ""
        if self.row.more_rounds > MAX_MORE_ROUNDS:
            return f"{MAX_MORE_ROUNDS}+ more rounds"
        return self.advice if len(self.advice) <= LONGEST_ADVICE else ""

    @property
    def serious(self) -> tuple[IssueMark, ...]:
        """Its serious quality issues."""
        return tuple(mark for mark in self.marks if mark.serious)

    @property
    def again(self) -> str:
        """The command that measures it again with more rounds."""
        cells = " ".join(f"'{cell.id}'" for cell in (self.row.base, self.row.other))
        return f"runner run {cells} --rounds 10{self.options}"


def compared_rows(
    comparisons: Iterable[Comparison], names: Mapping[str, EnvironmentRelease], options: str = ""
) -> list[ComparedRow]:
    """Return the rows of all comparisons of releases, the largest change first; of equal ones the slower first.

    Args:
        comparisons: rows with their quality issues; those with A/A controls are left out.
        names: environment -> its release.
        options: see ``ComparedRow``.
    """
    of_releases = [each for each in comparisons if not each.is_control]
    kinds, boards = panels.has_several_kinds(of_releases), panels.has_several_boards(of_releases)
    plain_names = case_names(row.case_id for each in of_releases for row in each.rows)
    rows = [
        replace(
            _compared(comparison, row, names),
            name=plain_names[row.case_id],
            device_name=comparison.device_name if kinds else "",
            measured_on=panels.measured_on(row) if boards else "",
            options=options,
        )
        for comparison in panels.split(of_releases)
        for row in comparison.rows
    ]
    return sorted(rows, key=lambda each: (-round(each.size, 6), -(each.row.ratio or 0.0)))


def anchor(row: Row) -> str:
    """Return the id of a row on a page: letters, digits, dots and hyphens."""
    return "r-" + re.sub(r"[^A-Za-z0-9.]+", "-", row.other.id).strip("-")


def _compared(comparison: Comparison, row: Row, names: Mapping[str, EnvironmentRelease]) -> ComparedRow:
    base_time, other_time = both_times(row)
    return ComparedRow(
        row=row,
        anchor=anchor(row),
        name=row.case_id,
        api_name=_api_name(row),
        test=f"{row.case_id} {test_phase(row)}",
        api=comparison_notes.implementations(row),
        description=description(row.case_id),
        base=name(row.base.environment, names),
        other=base_name(row.environment, row.base.environment, names),
        base_time=base_time,
        other_time=other_time,
        change=wording.speedup(row.ratio),
        ends=wording.speedup_range(row.ratio_low, row.ratio_high),
        word=wording.word(row),
        means=_means(row),
        slow_calls=_slow_calls(row),
        advice=_advice(row),
        marks=marks(row.quality_issues, comparison.base),
        unlike=unlike_times(row, comparison.margin),
    )


def _api_name(row: Row) -> str:
    """Return the name of a row's API, and that of its base if they differ."""
    return " / ".join(filter(None, dict.fromkeys(map(api_name, (row.implementation, row.base_implementation)))))


def test_phase(row: Row) -> str:
    """Return the phase of a test, with its precision unless that is fp32."""
    return row.phase if row.precision == "fp32" else f"{row.phase} {row.precision}"


def changed_test(row: Row, base: str, other: str) -> str:
    """Return a test with its change in a line, ``case train, API: 1.30x slower (1.25x to 1.35x), 1.0 → 2.0``."""
    change = wording.change_with_range(BY_NAME[TIME], row)
    test = f"{row.case_id} {test_phase(row)}, {comparison_notes.implementations(row)}"
    return f"{test}: {change}, {base} → {other}"


def description(case_id: str) -> str:
    """Return what a case computes; empty if it is not a shipped case, nor of a user's network."""
    if is_network_of_user(case_id):
        return NETWORK
    return describe(CASES[case_id]) if case_id in CASES else ""


def both_times(row: Row) -> tuple[str, str]:
    """Return the times of both sides, as measured or published, in the same unit."""
    if row.base_spread or row.spread:  # published figures, whose quotient the ratio is
        return (
            formatting.time_with_spread(row.base_seconds, row.base_spread),
            formatting.time_with_spread(row.seconds, row.spread),
        )
    if row.base_seconds is None:
        return formatting.DASH, formatting.step_time(row.seconds)
    unit = units.time_unit([row.base_seconds, row.seconds])
    return formatting.step_time(row.base_seconds, unit), formatting.step_time(row.seconds, unit)


def unlike_times(row: Row, margin: float) -> str:
    """Return a sentence if the quotient of a row's times is outside of its interval; else, or without one, nothing.

    A quotient that is within the margin of the ratio is no contradiction, however narrow the interval is.
    """
    if not row.base_seconds or not row.seconds or not row.ratio or row.ratio_low is None or row.ratio_high is None:
        return ""
    quotient = row.seconds / row.base_seconds
    if row.ratio_low <= quotient <= row.ratio_high or abs(math.log(quotient / row.ratio)) <= math.log1p(margin):
        return ""
    return (
        f"by these medians it would be {wording.speedup(quotient)}; the change compares the same moments, so it is the "
        "more certain one"
    )


def _means(row: Row) -> str:
    if row.mean_ratio is None:
        return ""
    ends = wording.speedup_range(row.mean_ratio_low, row.mean_ratio_high)
    return ", ".join(filter(None, (wording.speedup(row.mean_ratio), wording.interval(ends))))


def _slow_calls(row: Row) -> str:
    if row.base_p95_seconds is None or row.p95_seconds is None:
        return ""
    unit = units.time_unit([row.base_p95_seconds, row.p95_seconds])
    return f"{formatting.step_time(row.base_p95_seconds, unit)} → {formatting.step_time(row.p95_seconds, unit)}"


def _advice(row: Row) -> str:
    if row.verdict != "inconclusive":
        return ""
    if row.code in {"more-rounds", LEANING} and len(row.boards) > 1:
        return "more boards"
    if row.abandoned:
        return f"given up after {row.rounds} rounds"
    if row.code in {"more-rounds", LEANING}:
        if row.more_rounds > MAX_MORE_ROUNDS:
            return f"more than {MAX_MORE_ROUNDS} more rounds"
        low, high = max(row.more_rounds_low, 1), row.more_rounds
        return f"{high} more round{'s' * (high > 1)}" if low == high else f"{low} to {high} more rounds"
    return row.reason


def by_kind(rows: Sequence[ComparedRow]) -> dict[str, list[ComparedRow]]:
    """Return the rows of each kind of device, the kind with most rows first; under no name if there is only one."""
    groups = grouped((row.device_name, row) for row in rows)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def in_order(rows: Sequence[ComparedRow]) -> list[ComparedRow]:
    """Return rows by case, in the order of reports, then by phase and API."""
    return sorted(rows, key=lambda each: (_position(each.row.case_id), each.test, each.api))


_POSITIONS = {name: position for position, name in enumerate(CASES)}


def _position(case_id: str) -> int:
    return _POSITIONS.get(case_id, len(_POSITIONS))
