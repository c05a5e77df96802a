"""One panel for each kind of device: what the comparisons of a run say about one kind, and which boards measured it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runner.analysis.boards import Board
from runner.analysis.compare.kinds import boards_of_rows, by_kind
from runner.analysis.comparison_model import Comparison, Row
from runner.report.formatting import counted, few

MAX_NAMED_BOARDS = 8
"""Boards that a panel names; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A kind of device.

    Attributes:
        device_name: the kind.
        anchor: its id on the page.
        tests: how many tests were measured on how many boards.
        boards: host and short UUID of the boards; of many, the first ones and the number of the others.
        meaning: what the intervals say of other boards.
    """

    device_name: str
    anchor: str
    tests: str
    boards: tuple[str, ...]
    meaning: str

    @property
    def scope(self) -> str:
        """All of it in a line."""
        named = f": {', '.join(self.boards)}" if self.boards else ""
        return f"{self.tests}{named}; {self.meaning}"


def panels(comparisons: Sequence[Comparison]) -> list[Panel]:
    """Return a panel for each kind of device, the kind with most rows first; none if there is only one kind.

    Comparisons with A/A controls do not count.
    """
    of_releases = [each for each in comparisons if not each.is_control]
    if not has_several_kinds(of_releases):
        return []
    rows: dict[str, list[Row]] = {}
    for comparison in split(of_releases):
        rows.setdefault(comparison.device_name, []).extend(comparison.rows)
    kinds = sorted(rows, key=lambda kind: -len(rows[kind]))
    return [panel(kind, rows[kind], number) for number, kind in enumerate(kinds, 1)]


def split(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Return the comparisons of each kind of device, for each comparison in its order."""
    return [each for comparison in comparisons for each in by_kind(comparison)]


def has_several_kinds(comparisons: Iterable[Comparison]) -> bool:
    """Return whether rows of several kinds of devices are compared."""
    return len({row.device_name for comparison in comparisons for row in comparison.rows} - {""}) > 1


def panel(kind: str, rows: Sequence[Row], number: int = 1) -> Panel:
    """Return the panel of some rows of one kind; ``number`` counts the panels of a page from 1."""
    boards = boards_of_rows(rows)
    tests = counted(len({(row.case_id, row.phase, row.precision, row.implementation) for row in rows}), "test")
    hosts = len({board.host for board in boards})
    on_hosts = f" of {counted(hosts, 'host')}" if hosts > 1 else ""
    where = f"{counted(len(boards), 'board')}{on_hosts}" if len(boards) > 1 else "one board of this kind"
    named = tuple(board.text for board in boards if board.text)
    if len(named) > MAX_NAMED_BOARDS:
        named = (*named[:MAX_NAMED_BOARDS], f"{len(named) - MAX_NAMED_BOARDS} more")
    return Panel(
        device_name=kind, anchor=f"kind-{number}", tests=f"{tests} on {where}", boards=named, meaning=meaning(rows)
    )


def meaning(rows: Iterable[Row]) -> str:
    """Return what the intervals of rows say of other boards of their kind."""
    rows = list(rows)
    counts = {len(row.boards) for row in rows if row.ratio_low is not None}
    if not counts or max(counts) == 1:
        each = "each test on one board of this kind, so " if len(boards_of_rows(rows)) > 1 else ""
        return f"{each}the intervals do not include how boards of this kind differ"
    if min(counts) > 1:
        return "each test on several boards, so its interval includes how boards differ"
    return "some tests on several boards: only their intervals include how boards differ"


def has_several_boards(comparisons: Iterable[Comparison]) -> bool:
    """Return whether several boards measured the rows of some comparisons."""
    return len(boards_of_rows(row for comparison in comparisons for row in comparison.rows)) > 1


def measured_on(row: Row) -> str:
    """Return which boards a row was measured on, and whether its interval includes how boards differ."""
    names = few([board.text for board in row.boards if board.text], MAX_NAMED_BOARDS)
    if len(row.boards) > 1 and row.ratio_low is not None:
        return f"{row.device_name}, {len(row.boards)} boards: {names}; the interval includes how they differ"
    return ", ".join(filter(None, (row.device_name, names)))


def board_name(board: Board) -> str:
    """Return the kind of a board, its host and its short UUID."""
    return f"{board.device_name} {board.text}".strip()
