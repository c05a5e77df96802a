"""What Rich prints, as text: for a terminal and for files."""

import functools
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from runner.core.text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

COMMAND = re.compile("`[^`]+`|^fix: ")
"""What marks a command in a line of a table."""
GAP = 2
"""Spaces between the columns of a table without lines."""
MIN_FOLDED_WIDTH = 40
"""Columns that a folded last column has at least; with less room it stands below the others."""


@functools.cache
def _console_class() -> "type[Console]":
    """Return Rich's console with every character visible that is in what it prints; colours are no part of that."""
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(self, renderable: "RenderableType", options: "ConsoleOptions | None" = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text
                safe = text if segment.control or text.isprintable() else printable(text, multiline=True)
                yield segment if safe is text else Segment(safe, segment.style)

    return VisibleConsole


def as_text(parts: Iterable["RenderableType"], width: int, *, colour: bool = False) -> str:
    """Return what Rich prints, as lines without trailing spaces.

    Args:
        parts: a ``str`` is never wrapped, anything else fits ``width``.
        width: columns.
        colour: whether the lines have ANSI colours.
    """
    stream = io.StringIO()
    console = _console_class()(
        file=stream,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        force_jupyter=False,  # in a notebook Rich shows what it prints, and the text would be empty
    )
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def aligned(rows: "Iterable[Sequence[RenderableType]]", count: int) -> "Table":
    """Return rows of so many fields as a table without lines; the last column is folded to the width."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, GAP, 0, 0))
    for _ in range(count - 1):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def listed(rows: "Iterable[Sequence[Text]]", width: int) -> "Iterator[RenderableType]":
    """Yield rows as a table whose last column is folded, then the lines with a command that it would break.

    Those stand below it, each in one line however long it is, with the field before it, so that it can be copied.

    Args:
        rows: fields with their styles; the last one may have several lines.
        width: columns.
    """
    from rich.table import Table

    rows = [tuple(row) for row in rows]
    if not rows:
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, GAP, 0, 0))
    heads = list(zip(*rows, strict=True))[:-1]
    room = width - sum(max(map(len, head)) + GAP for head in heads)
    for _ in heads:
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    below = []
    for *fields, last in rows:
        lines = last.split("\n", allow_blank=True)
        broken = [line for line in lines if len(line) > room and COMMAND.search(line.plain)]
        table.add_row(*fields, type(last)("\n").join(line for line in lines if line not in broken))
        below += [f"{fields[-1].plain.strip()}: {line.plain}" for line in broken]
    yield table
    yield from dict.fromkeys(below)


def columns(rows: Sequence[Sequence[str]], width: int) -> str:
    """Return rows as aligned columns; the last one is folded to the width, below the others if that is narrow."""
    from rich.padding import Padding
    from rich.text import Text

    table = aligned((tuple(map(Text, row)) for row in rows), len(rows[0]))
    others = sum(max(map(len, column)) + GAP for column in list(zip(*rows, strict=True))[:-1])
    if width - others >= min(MIN_FOLDED_WIDTH, max(len(row[-1]) for row in rows)):
        return as_text([table], width)
    parts: list[RenderableType] = []
    for *row, last in rows:
        parts += [Text("  ".join(row)), Padding(Text(last), (0, 0, 0, 4))]
    return as_text(parts, width)
