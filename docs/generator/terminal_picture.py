# ruff: noqa: INP001  a script's module, not a package's
"""The end of a run in a terminal: the answer of the kept example, printed by the program as it prints its own runs."""

import re
from collections.abc import Iterator
from itertools import pairwise

from drawing import EDGE, document, number, text
from example_answer import answer
from rich.style import Style
from rich.text import Text

from runner.report import answer_text, rich_text

COMMAND = "runner run --preset heritage"
COLUMNS = 96
LINE, LETTER = 19, 7.83
"""Height of a line and width of a letter at 13 pixels."""
GROUND, INK, DIM = "#14171b", "#e6e9ed", "#9aa5b1"
COLOURS = {1: "#ff8d7a", 2: "#7ac77f", 3: "#dcc05a", 5: "#d69ad6", 6: "#6fc3d0"}
"""Number of a terminal's colour -> its colour on a dark ground: the contrast of the text is at least 4.5."""


def terminal(report: str) -> str:
    """Return the answer of a run as a terminal shows it.

    Args:
        report: the ``report.md`` of the run.
    """
    run = re.findall(r"run (\d{8}-\d{6}-\w+)", report)[0]
    output = rich_text.as_text(answer_text.parts(answer(report), COLUMNS), COLUMNS, colour=True)
    shown = [Text(f"$ {COMMAND}"), Text("...", Style(dim=True))]
    shown += [Text.from_ansi(line) for line in output.splitlines()]
    shown.append(Text(f"reports/runs/{run}/index.html"))
    width, height = round(COLUMNS * LETTER) + 2 * EDGE, LINE * len(shown) + 2 * EDGE + 24
    marks = [f'<rect width="{width}" height="{height}" rx="6" fill="{GROUND}"/>']
    marks += [f'<circle cx="{EDGE + 6 + 18 * index}" cy="{EDGE + 4}" r="5" fill="#3d4650"/>' for index in range(3)]
    for index, line in enumerate(shown):
        marks += _parts(line, EDGE + 38 + LINE * index)
    style = f'text {{ font: 13px "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: {INK}; white-space: pre }}'
    return document(f"The end of {COMMAND} in a terminal", width, height, marks, style)


def _parts(line: Text, y: int) -> Iterator[str]:
    """Yield the parts of a line, each at its column and in its style; its width is fixed, whatever the font."""
    for start, end, style in _styles(line):
        content = line.plain[start:end].rstrip()
        if content:
            yield text(EDGE + start * LETTER, y, content, style=_css(style), textLength=number(len(content) * LETTER))


def _styles(line: Text) -> Iterator[tuple[int, int, Style | str]]:
    """Yield where each part of a line starts and ends, and its style; columns of a table are parts of their own."""
    edges = {0, len(line), *(edge for span in line.spans for edge in (span.start, span.end))}
    edges |= {match.end() for match in re.finditer("  +", line.plain)}
    ordered = sorted(edges)
    for start, end in pairwise(ordered):
        spans = [span.style for span in line.spans if span.start <= start < span.end]
        yield start, end, spans[-1] if spans else line.style


def _css(style: Style | str) -> str:
    if not isinstance(style, Style):
        return ""
    colour = COLOURS.get(style.color.number or 0, "") if style.color else DIM if style.dim else ""
    rules = [f"fill: {colour}"] * bool(colour) + ["font-weight: 700"] * bool(style.bold)
    return "; ".join(rules)
