# ruff: noqa: INP001  a script's module, not a package's
"""Marks of the pictures of the documentation: SVG on a white sheet, in the colours of the report's light page."""

import textwrap
from collections.abc import Iterable
from html import escape

INK, SOFT, LINE = "#1c2127", "#5b6570", "#dfe3e8"
BLUE, ORANGE, OCHRE, GREY = "#0a62a5", "#a84300", "#6b5a00", "#4a5568"
SIZE = 14
"""Height of text in pixels; a picture of 520 pixels is scaled to two thirds on a phone."""
LETTER = 0.54
"""Reserved width of a letter, as a share of the height of its text: a little more than prose takes in DejaVu Sans."""
EDGE = 16
"""Space around a picture."""

STYLE = (
    f'text {{ font: {SIZE}px "DejaVu Sans", Verdana, Arial, sans-serif; fill: {INK} }}\n'
    f".title {{ font-weight: 700; font-size: 16px }} .name {{ font-weight: 700 }} "
    f".soft {{ fill: {SOFT}; font-size: 13px }} .small {{ font-size: 12.5px }} "
    ".middle { text-anchor: middle }"
)


def document(title: str, width: int, height: int, marks: Iterable[str], style: str = "") -> str:
    """Return a picture as a file.

    Args:
        title: what the picture shows, as a sentence.
        width: in pixels.
        height: in pixels.
        marks: its elements, in the order in which they are drawn.
        style: rules of a style sheet beyond ``STYLE``.
    """
    sheet = f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6" fill="#fff" stroke="{LINE}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-labelledby="title">\n<title id="title">{escape(title)}</title>\n'
        f"<style>{STYLE}\n{style}</style>\n{sheet}\n" + "\n".join(marks) + "\n</svg>\n"
    )


def text(x: float, y: float, content: str, names: str = "", **attributes: str) -> str:
    """Return a line of text with its baseline at ``y``; ``names`` are its classes."""
    shown = {"class": names, "x": number(x), "y": number(y), **attributes}
    return f"<text{_attributes(shown)}>{escape(content, quote=False)}</text>"


def lines(x: float, y: float, contents: Iterable[str], names: str = "", height: int = 18) -> list[str]:
    """Return lines of text, the first with its baseline at ``y``."""
    return [text(x, y + index * height, content, names) for index, content in enumerate(contents)]


def wrapped(content: str, width: float, size: int = 13) -> list[str]:
    """Return a sentence as lines that fit a width in pixels."""
    return textwrap.wrap(content, int(width / (size * LETTER)))


def box(x: float, y: float, width: float, height: float, fill: str, **attributes: str) -> str:
    """Return a rectangle."""
    shown = {"x": number(x), "y": number(y), "width": number(width), "height": number(height), "fill": fill}
    return f"<rect{_attributes({**shown, **attributes})}/>"


def path(shape: str, stroke: str = SOFT, **attributes: str) -> str:
    """Return a line."""
    return f"<path{_attributes({'d': shape, 'stroke': stroke, 'fill': 'none', **attributes})}/>"


def arrow(x: float, top: float, bottom: float) -> str:
    """Return an arrow that points down."""
    head = f"M{number(x - 5)} {number(bottom - 6)}l5 6l5 -6"
    return path(f"M{number(x)} {number(top)}V{number(bottom)}{head}", **{"stroke-width": "1.6"})


def number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    return f"{round(value, 1):g}"


def _attributes(values: dict[str, str]) -> str:
    return "".join(f' {name.replace("_", "-")}="{escape(value)}"' for name, value in values.items() if value)
