"""The tests of a pair of releases as a table for a terminal, a line for each, the slowest first."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model_checks import UNCHECKED
from runner.catalog.cases import is_network_of_user
from runner.core.progress import shortened
from runner.report import answer_text, comparison_notes, wording
from runner.report.answer import base_name
from runner.report.compared_rows import both_times, test_phase

QUESTIONED = "?"
"""What follows the change of a test that rests on a measurement with a serious warning."""
TIMES_WIDTH = 96
"""Columns of a terminal from which both times fit next to the change and its interval."""
INTERVAL_WIDTH = 76
"""Columns from which the interval fits."""
BARS_WIDTH = 140
"""Columns from which bars fit."""
HALF_BAR = 8
"""Columns of the longest bar to either side."""
MIN_TEST = 22
"""Columns that the name of a test has at least."""
MIN_CASE = 8
"""Columns that the case has at least in the name of a test."""
INDENT = 2
EIGHTHS = " ▏▎▍▌▋▊▉█"
GAP = 2
INTERVAL = "95 % interval"
DEFAULT_SIZES = "default"
"""The case of a network whose file names no sizes."""


def table(comparison: Comparison, other: str, width: int) -> Table:
    """Return the tests of an environment against the base, a line each.

    Args:
        comparison: on one kind of device.
        other: the environment.
        width: columns. A test that was not measured has no line next to others that were.
    """
    of_other = [row for row in comparison.rows if row.environment == other]
    rows = [row for row in of_other if row.verdict != "not-measured"] or of_other
    rows.sort(key=lambda row: -(row.ratio or 0.0))
    columns = _columns(comparison, other, rows, width)
    room = _room(columns, width)
    longest = max((len(str(each)) for each in _names(rows, 0)), default=0)
    for optional in (_Column.is_time, _Column.is_interval):  # the times give way before the intervals do
        if room < longest:
            columns = [column for column in columns if not optional(column)]
            room = _room(columns, width)
    drawn = Table(box=None, header_style="dim", pad_edge=False, padding=(0, GAP, 0, 0))
    drawn.add_column("test", no_wrap=True)
    for column in columns:
        drawn.add_column(Text(column.head), no_wrap=True, justify="right" if column.is_number else "left")
    for number, name in enumerate(_fitted(_names(rows, room), room)):
        drawn.add_row(Text(f"{'':{INDENT}}{name}"), *(column.fields[number] for column in columns))
    return drawn


def _room(columns: "Sequence[_Column]", width: int) -> int:
    """Return how many columns of a terminal the names of tests have beside the others."""
    others = sum(max([len(column.head), *(text.cell_len for text in column.fields)]) + GAP for column in columns)
    return max(width - others - GAP - INDENT, MIN_TEST)


def is_questioned(row: Row) -> bool:
    """Return whether a test rests on a measurement with a serious warning."""
    return any(issue.serious and issue.code != UNCHECKED for issue in row.quality_issues)


class _Column(NamedTuple):
    head: str
    fields: list[Text]
    is_number: bool = False

    def is_time(self) -> bool:
        """Return whether it has the times of a side."""
        return self.is_number

    def is_interval(self) -> bool:
        """Return whether it has the intervals of the changes."""
        return self.head == INTERVAL


def _columns(comparison: Comparison, other: str, rows: Sequence[Row], width: int) -> list[_Column]:
    """Return the columns after the test for a terminal of a width."""
    columns = []
    if width >= TIMES_WIDTH:
        base, names = comparison.base, comparison.releases
        heads = base_name(base, other, names), base_name(other, base, names)
        sides = zip(*map(both_times, rows), strict=True)
        columns += list(map(_of_side, heads, sides))
    columns.append(_Column("change", [_change(row) for row in rows]))
    if width >= INTERVAL_WIDTH:
        ends = list(map(wording.row_range, rows))
        columns += [_Column(INTERVAL, list(map(Text, ends)))] if any(ends) else []
    if width >= BARS_WIDTH:
        columns.append(_Column("slower \N{BOX DRAWINGS LIGHT VERTICAL} faster", _bars(rows)))
    return columns


def _of_side(head: str, times: Iterable[str]) -> _Column:
    return _Column(shortened(head.rpartition("/")[2], 16), list(map(Text, times)), is_number=True)


def _change(row: Row) -> Text:
    """Return the verdict of a row with its size: ``2.00x faster``, ``probably 12 % slower``, ``can't tell``."""
    text = wording.verdict(row)
    unchecked = any(issue.code == UNCHECKED for issue in row.quality_issues)
    text += f" {QUESTIONED}" * is_questioned(row) + f" {UNCHECKED}" * unchecked
    return Text(text, style=answer_text.WORD_STYLES[wording.word(row)])


def _names(rows: "Sequence[Row]", room: int) -> "list[_Name]":
    """Return the names of tests, if possible of at most ``room`` columns.

    Where they do not fit, all lose first their workload, unless that is a network of the user, and then the base's API
    where it differs. A test whose name would then be that of another test keeps them.
    """
    names = [_Name(row.case_id, test_phase(row), comparison_notes.implementations(row)) for row in rows]
    for shorter in (_Name.without_workload, _Name.without_base):
        if max(map(len, map(str, names)), default=0) <= room:
            break
        short = [shorter(each) for each in names]
        uses = Counter(short)
        names = [brief if uses[brief] == 1 else name for brief, name in zip(short, names, strict=True)]
    return names


def _fitted(names: "Sequence[_Name]", room: int) -> list[str]:
    """Return names in at most ``room`` columns, no two of which are the same.

    Names that are the same without their middle have a number.
    """
    texts = [each.fitting(room) for each in names]
    uses, numbers = Counter(texts), Counter[str]()
    for index, (text, name) in enumerate(zip(texts, map(str, names), strict=True)):
        numbers[text] += 1
        if uses[text] > 1:
            number = f" #{numbers[text]}"
            texts[index] = shortened(name, room - len(number)) + number
    return texts


class _Name(NamedTuple):
    case: str
    phase: str
    api: str

    def __str__(self) -> str:
        return f"{self.case} {self.phase}, {self.api}"

    def without_workload(self) -> "_Name":
        workload, _, case = self.case.rpartition("/")
        if is_network_of_user(self.case):
            return self._replace(case=workload if case == DEFAULT_SIZES else self.case)
        return self._replace(case=case)

    def without_base(self) -> "_Name":
        return self._replace(api=self.api.partition(" / ")[0])

    def fitting(self, room: int) -> str:
        """Return it in at most ``room`` columns, if need be with a shorter case, or without the middle of all of it."""
        case = shortened(self.case, max(room - len(str(self)) + len(self.case), MIN_CASE))
        return shortened(str(self._replace(case=case)), room)


def _bars(rows: Sequence[Row]) -> list[Text]:
    """Return a bar for each row, on a logarithmic scale that all share: to the left of a line if it is slower."""
    logs = [math.log(row.ratio) if row.ratio else 0.0 for row in rows]
    largest = max(map(abs, logs), default=0.0) or 1.0
    return [_bar(log / largest, row) for log, row in zip(logs, rows, strict=True)]


def _bar(share: float, row: Row) -> Text:
    eighths = round(abs(share) * HALF_BAR * 8)
    blocks, rest = divmod(eighths, 8)
    drawn = "█" * blocks + (EIGHTHS[rest] if rest else "")
    style = answer_text.WORD_STYLES[wording.word(row)]
    if share > 0:  # the blocks of an eighth begin on the left, so a bar to the left has whole blocks only
        return Text(f"{'█' * round(share * HALF_BAR):>{HALF_BAR}}│{'':{HALF_BAR}}", style=style)
    return Text(f"{'':{HALF_BAR}}│{drawn:{HALF_BAR}}", style=style)
