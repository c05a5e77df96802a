"""When a night confirms a regression, and when an earlier confirmation still stands.

A cell that stays open is tested again every night, so each further night would add its false alarms. Hence only the
first test of a change may confirm it by itself; every further one needs a night before it that leaned the same way.

References:
    benchmarks/nights.py: false alarms and power of these rules.
"""

from collections.abc import Sequence
from typing import Literal

from runner.analysis.model import Row
from runner.workflows.nightly.history import Look, last_in_turns

CLEAR = "beyond-margin"
"""The code of a verdict of which the entire interval is beyond the margin; chance hardly ever does that."""

Against = Literal["baseline", "anchor"]
"""What a cell is compared with: its last good run, or its pinned one."""


def confirming_night(night: str, against: Against, again: Row | None, looks: Sequence[Look], margin: float) -> str:
    """Return the night whose confirmation of a regression stands after tonight; empty if there is none.

    - Tonight's verdict ``slower`` confirms by itself if the entire interval that decides is beyond the margin, if it is
      the first test against a baseline, or the first since one that decided otherwise. Else the last night that
      measured the pair in turns has to have leaned the same way. So a creep that has just left the margin, which is
      tested every few nights for ever, is confirmed by two nights.
    - A confirmation stands while nobody could measure again, and while an open verdict has a ratio beyond the margin.
      ``same``, ``faster`` and a ratio within the margin end it.

    Args:
        night: tonight's run.
        against: what was compared with.
        again: the row in turns; None if there is none.
        looks: of earlier nights at the same pair, oldest first.
        margin: the relative change that counts as none.
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
    is_confirmed = again.code == CLEAR or is_first or leaned_before
    return standing or (night if is_confirmed else "")
