"""When a night confirms a regression, and when an earlier confirmation still stands.

Rounds of a night may depend on each other without showing it, and a cell that stays open is tested again every night.
Hence a confirmation takes two witnesses that do not share a night's errors: the series of ratios to the pinned base, or
an earlier night that leaned the same way.

References:
    benchmarks/nights.py: false alarms and power of these rules.
"""

from collections.abc import Sequence

from runner.analysis.comparison_model import Row
from runner.nights.looks import Look, last_in_turns
from runner.nights.night import Against

CLEAR = "beyond-margin"
"""The code of a verdict of which the entire interval is beyond the margin; chance hardly ever does that."""

SUPPORT_LEVEL = 0.01
"""The p-value at which a series bears out a slow-down.

By its rounds in turns alone, a cell whose rounds depend on each other (AR(1), 0.5) has 26 false alerts in 1,000 nights.
"""
DENIAL_LEVEL = 0.1
"""The p-value above which a series denies a slow-down."""


def confirming_night(
    night: str,
    against: Against,
    again: Row | None,
    looks: Sequence[Look],
    margin: float,
    *,
    series_p: float | None = None,
) -> str:
    """Return the night whose confirmation of a regression stands after tonight; empty if there is none.

    - Tonight's verdict ``slower`` needs a second witness. Without a series, that is the last night that measured the
      pair in turns, if it leaned the same way; or an interval that decides and is entirely beyond the margin.
    - A series whose p-value is at most SUPPORT_LEVEL is the witness of such an interval, and of the first test against
      a baseline, or the first since one that decided otherwise. Further tests, and those against anchors and series,
      are repeated every few nights for ever: they need the night before.
    - If the p-value is above DENIAL_LEVEL, both the night before and an interval beyond the margin are needed; in
      between, the night before.
    - A confirmation stands while nobody could measure again, and while an open verdict has a ratio beyond the margin.
      ``same``, ``faster`` and a ratio within the margin end it.

    Args:
        night: tonight's run.
        against: what was compared with.
        again: the row in turns; None if there is none.
        looks: of earlier nights at the same pair, oldest first.
        margin: the relative change that counts as none.
        series_p: one-sided p-value of no slow-down by the series (``series.slow_down_p``); None without a series.
    """
    standing = looks[-1].confirmed_in if looks else ""
    verdict = again.verdict if again else "not-measured"
    if again is None or verdict in ("not-measured", "not-comparable"):
        return standing
    if verdict == "inconclusive":
        return standing if (again.ratio or 1.0) > 1 + margin else ""
    if verdict != "slower":
        return ""
    last = last_in_turns(looks)
    is_first = against == "baseline" and (last is None or last.verdict in ("same", "faster"))
    leaned_before = last is not None and last.leans_slower
    return standing or (night if _has_witness(again.code == CLEAR, is_first, leaned_before, series_p) else "")


def _has_witness(is_clear: bool, is_first: bool, leaned_before: bool, series_p: float | None) -> bool:  # noqa: FBT001
    """Return True where more than tonight's rounds say that a cell is slower."""
    if series_p is None:
        return is_clear or leaned_before
    if series_p > DENIAL_LEVEL:
        return is_clear and leaned_before
    return leaned_before or (series_p <= SUPPORT_LEVEL and (is_clear or is_first))
