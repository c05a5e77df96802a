# ruff: noqa: INP001  a script's module, not a package's
"""The tables of what runs where as coloured grids: a square for each field, with a mark and a legend."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from drawing import EDGE, INK, LINE, SOFT, box, document, lines, number, path, text, wrapped

WIDTH = 520
LABELS = 132
"""Width of the names of the rows."""
CELL = 24
"""Height of a row."""


class Mark(NamedTuple):
    """How a status is drawn: the colour of its square, its letter or ``check``, and what the legend says."""

    fill: str
    letter: str
    colour: str
    meaning: str


MARKS: Mapping[str, Mark] = {
    "runs": Mark("#0a62a5", "check", "#fff", "runs"),
    "runs by JIT": Mark("#3f86bf", "check", "#fff", "runs; the driver compiles PTX made for this GPU"),
    "runs, not by cuDNN": Mark("#5f9dcc", "C", INK, "runs, but not the implementations that call cuDNN"),
    "by JIT": Mark("#bcd8ee", "J", INK, "runs only with --allow-jit: the driver compiles PTX"),
    "needs-gpu": Mark("#f6d3b5", "G", INK, "needs-gpu: no build for this device"),
    "processors": Mark("#f6d3b5", "P", INK, "processors: needs more processes than threads"),
    "arch": Mark("#f0b68a", "A", INK, "arch: no code for the GPU"),
    "driver": Mark("#e8975a", "D", INK, "driver: too old for the environment, or too new for the GPU"),
    "image-unavailable": Mark("#ece3b8", "I", INK, "image-unavailable: no image or no lock yet"),
    "framework-lacks": Mark("#eef0f3", "\N{EN DASH}", SOFT, "framework-lacks: nothing in the framework computes it"),
    "": Mark("#fff", "", SOFT, ""),
}
"""Status, as in the tables -> how it is drawn, in the order of the legend."""

Rows = Mapping[str, Sequence[str]]
"""Name of a row -> its statuses."""


def fields(page: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the first table of environments of a page: its head, and its rows by environment."""
    table = page[page.index("\n| environment |") :].strip().partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return rows[0][1:], {name: statuses for name, *statuses in rows[2:]}


def coverage(page: str) -> str:
    """Return the grid of environments and workloads, from the page about coverage."""
    workloads, rows = fields(page)
    top = EDGE + 196
    width = _cell_width(len(workloads))
    marks = [text(EDGE, EDGE + 16, "What runs on a machine without a GPU", "title")]
    for index, name in enumerate(workloads):
        x = EDGE + LABELS + (index + 0.5) * width + 4
        marks.append(text(x, top - 8, name, transform=f"rotate(-90 {number(x)} {top - 8})"))
    return _grid("Which environment runs which workload without a GPU", marks, rows, top)


def gpus(page: str) -> str:
    """Return the grid of environments and GPUs with their drivers, from the page about GPUs."""
    heads, rows = fields(page)
    boards = [head.rpartition(", ") for head in heads]
    top = EDGE + 76
    width = _cell_width(len(heads))
    marks = [text(EDGE, EDGE + 16, "What runs on which GPU", "title")]
    marks.append(text(EDGE, top - 10, "driver", "soft"))
    for index, (name, _, driver) in enumerate(boards):
        x = EDGE + LABELS + (index + 0.5) * width
        marks.append(text(x, top - 10, driver.partition(".")[0], "small middle"))
        if index == 0 or boards[index - 1][0] != name:
            members = sum(board[0] == name for board in boards)
            marks.append(text(x + (members - 1) * width / 2, top - 32, short_name(name), "small middle name"))
    return _grid("Which environment runs on which GPU with which driver", marks, rows, top)


def short_name(board: str) -> str:
    """Return the name of a board without its maker and its memory.

    >>> short_name("NVIDIA GeForce GTX 1080"), short_name("Tesla V100-SXM2-16GB")
    ('GTX 1080', 'V100')
    """
    words = [word for word in board.split() if word not in {"NVIDIA", "GeForce", "Tesla"}]
    return " ".join(words).partition("-")[0]


def _grid(title: str, marks: list[str], rows: Rows, top: int) -> str:
    """Return a grid below its heads, with a legend of what occurs."""
    frameworks = [name.partition("-")[0] for name in rows]
    y = float(top)
    for index, (name, statuses) in enumerate(rows.items()):
        y += 6 * (index > 0 and frameworks[index] != frameworks[index - 1])
        marks.append(text(EDGE, y + CELL - 7, name))
        width = _cell_width(len(statuses))
        for column, status in enumerate(statuses):
            marks += _square(EDGE + LABELS + column * width, y, width - 2, MARKS[status])
        y += CELL
    y += 18
    used = {status for statuses in rows.values() for status in statuses}
    for mark in (mark for status, mark in MARKS.items() if status in used and mark.meaning):
        marks += _square(EDGE, y, 30, mark)
        y = _legend_text(marks, mark, y)
    return document(title, WIDTH, round(y) + EDGE, marks)


def _legend_text(marks: list[str], mark: Mark, y: float) -> float:
    """Add what a mark means, and return where the next one starts."""
    shown = wrapped(mark.meaning, WIDTH - 2 * EDGE - 42)
    marks += lines(EDGE + 42, y + CELL - 7, shown, "soft")
    return y + CELL + 4 + 18 * (len(shown) - 1)


def _square(x: float, y: float, width: float, mark: Mark) -> Iterator[str]:
    """Yield the square of a status with its mark."""
    yield box(x, y, width, CELL - 2, mark.fill, stroke=LINE if mark.fill == "#fff" else "")
    middle = x + width / 2
    if mark.letter == "check":
        yield path(f"M{number(middle - 6)} {number(y + 11)}l4 5l8 -10", mark.colour, stroke_width="2.2")
    elif mark.letter:
        yield text(middle, y + CELL - 8, mark.letter, "middle", style=f"fill: {mark.colour}")


def _cell_width(columns: int) -> float:
    return (WIDTH - 2 * EDGE - LABELS) / columns
