"""A comparison as a picture of its own: a forest plot as SVG or PNG, made of the same marks as those of the page."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.releases import EnvironmentRelease
from runner.core.errors import Problem, UsageError
from runner.core.grouping import grouped
from runner.report import pictures, speedup_axis, wording
from runner.report.answer import base_name, name
from runner.report.compared_rows import ComparedRow, compared_rows
from runner.report.comparison_notes import devices
from runner.report.formatting import date, escape, few

SUFFIXES = (".svg", ".png")
"""Endings of the files that a chart can be written to."""
WIDTH = 300
"""Width of the axis of speed-ups in pixels."""
LINE = 24
"""Height of a row in pixels, for text of 12 pixels."""
PADDING = 16
"""Space around the chart and between its columns, in pixels."""
LETTER = 7.0
"""Reserved width of a letter in pixels: a test's name of 64 letters takes 6.3 for each in DejaVu Sans at 12 pixels."""
SHARP_HEIGHT = 8000
"""Height in pixels up to which a PNG is twice as large as its SVG: 8,000 x 2,200 pixels of four bytes are 70 MB."""

AXIS_COLOURS = {"band": 'fill="#dfe3e8"', "grid": 'stroke="#dfe3e8"', "one": 'stroke="#5b6570"'}
"""Class of a part of the axis -> its colour: a rule that names the chart matches nothing in a symbol that is used."""
STYLE = """text { font: 12px "DejaVu Sans", Verdana, Arial, sans-serif; fill: #1c2127 }
.title { font-weight: 700; font-size: 15px }
.side { font-weight: 700 }
.soft { fill: #5b6570 }
.head text { font-size: 10px; fill: #5b6570; text-anchor: middle }
.cut { fill: none; stroke: currentColor; stroke-width: 2 }
.faster { color: #0a62a5 }
.probably-faster { color: #0a62a5 }
.slower { color: #a84300 }
.probably-slower { color: #a84300 }
.same { color: #4a5568 }
.same-median { color: #4a5568 }
.same-median-longer-tail { color: #a84300 }
.same-median-shorter-tail { color: #0a62a5 }
.cant-tell { color: #6b5a00 }
.not-comparable { color: #5b6570 }
.not-measured { color: #5b6570 }
.word { fill: currentColor }
circle { fill: #fff; stroke: currentColor; stroke-width: 1.6 }
.faster circle { fill: currentColor }
.slower circle { fill: currentColor }
.same circle { fill: currentColor }
.same-median circle { fill: currentColor }
.same-median-longer-tail circle { fill: currentColor }
.same-median-shorter-tail circle { fill: currentColor }
.d { stroke: currentColor; stroke-width: 1 }
.i { stroke: currentColor; stroke-width: 3.5; opacity: .75 }"""
"""The colours of the page's light style sheet, without the variables that only browsers know: a rule in each line."""

Texts = tuple[str, str, str]
"""A row's test, its change with the 95 % interval, and its verdict."""


def content(comparisons: Sequence[Comparison], suffix: str, names: Mapping[str, EnvironmentRelease]) -> str | bytes:
    """Return the chart of some comparisons as a file with one of ``SUFFIXES``.

    Args:
        comparisons: A/A controls are left out.
        suffix: ``.svg`` or ``.png``.
        names: environment -> its release.

    Raises:
        UsageError: there is no row to draw.
    """
    if not compared_rows(comparisons, names):
        hint = "the chart leaves out A/A controls; `runner compare BASE OTHER` prints them"
        raise UsageError(Problem("there is no comparison of releases to draw", hint=hint))
    text = svg(comparisons, names)
    return png(text) if suffix == ".png" else text


def png(text: str) -> bytes:
    """Return an SVG as PNG, without a browser; twice as large up to ``SHARP_HEIGHT``."""
    import vl_convert

    height = float(text.partition('height="')[2].partition('"')[0])
    image: bytes = vl_convert.svg_to_png(text, scale=2.0 if 2 * height <= SHARP_HEIGHT else 1.0)
    return image


def svg(comparisons: Sequence[Comparison], names: Mapping[str, EnvironmentRelease]) -> str:
    """Return a forest plot of all comparisons of releases, the rows of each pair below a heading, as an SVG.

    The axis of speed-ups is logarithmic, with faster on the right and the band of the margin. A thick line is the 95 %
    interval, a thin one reaches as far as the interval that decides, and the dot is filled if the row is decided.
    Ids and style rules are those of this chart alone, so that a notebook can hold several.

    Args:
        comparisons: A/A controls are left out.
        names: environment -> its release.
    """
    groups = _groups(compared_rows(comparisons, names), names)
    rows = [row for group in groups.values() for row in group]
    margin = max((comparison.margin for comparison in comparisons), default=0.0)
    axis_scale = speedup_axis.scale(row.row for row in rows)
    columns = _columns([_texts(row) for row in rows])
    chart_id = f"chart-{hashlib.sha256(repr((rows, margin)).encode()).hexdigest()[:8]}"
    axis_id = f"{chart_id}-{pictures.AXIS}"
    parts = [*_head(columns[1], axis_scale, margin, axis_id), *_body(groups, columns, axis_scale, axis_id)]
    height = 4 * PADDING + 3 * LINE + LINE * (len(rows) + len(groups))
    note = f"Grey band: within {100 * margin:g} % is the same. Filled dot: decided. Thick line: 95 % interval."
    origin = _origin(comparisons)
    parts.append(_text(PADDING, height - PADDING - LINE, note, "soft"))
    parts.append(_text(PADDING, height - PADDING, origin, "soft"))
    width = max(columns[-1], round(PADDING * 2 + max(len(note), len(origin)) * LETTER))
    style = "".join(f"#{chart_id} {rule}\n" for rule in STYLE.splitlines())
    return (
        f'<svg id="{chart_id}" xmlns="http://www.w3.org/2000/svg" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'style="max-width: 100%; height: auto" '
        f'role="img" aria-label="{escape(_summary(rows))}"><style>{style}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _origin(comparisons: Sequence[Comparison]) -> str:
    """Return where the numbers are from: the device, and the runs with their dates and grades."""
    runs = dict.fromkeys(run for each in comparisons for row in each.rows for run in row.runs)
    grades = {run: grade.level for each in comparisons for run, grade in each.grades.items()}
    texts = [
        ", ".join(filter(None, (f"run {run}", date(run), f"trust: {grades[run]}" if run in grades else "")))
        for run in runs
    ]
    return "; ".join(filter(None, [*dict.fromkeys(map(devices, comparisons)), few(texts, 2)]))


def _head(left: int, axis_scale: speedup_axis.Scale, margin: float, axis_id: str) -> Iterator[str]:
    """Yield the symbol of the axis, the title and the labels of the axis."""
    symbol = pictures.axis(axis_scale, margin, axis_id)
    for css_class, colours in AXIS_COLOURS.items():
        symbol = symbol.replace(f'class="{css_class}"', colours)
    yield f"<defs>{symbol}</defs>"
    yield _text(PADDING, PADDING + 15, "Change of speed, faster on the right", "title")
    yield _placed(pictures.axis_labels(axis_scale), left, PADDING + LINE, 14)


def _body(
    groups: Mapping[str, Sequence[ComparedRow]], columns: Sequence[int], axis_scale: speedup_axis.Scale, axis_id: str
) -> Iterator[str]:
    """Yield the heading of each group and its rows."""
    y = 2 * PADDING + LINE + 14
    for heading, rows in groups.items():
        yield _text(PADDING, y + 12, heading, "side")
        y += LINE
        for row in rows:
            forest = pictures.forest(row.row, axis_scale, axis_id)
            yield _row(forest, row, columns, y)
            y += LINE


def _row(forest: str, row: ComparedRow, columns: Sequence[int], y: int) -> str:
    """Return a row: its test, its interval on the axis, its change, and its verdict in the colour of the dot."""
    test, change, word = _texts(row)
    return "".join(
        [
            _text(columns[0], y + 13, test),
            _placed(forest, columns[1], y, 18) if forest else "",
            _text(columns[2], y + 13, change),
            _text(columns[3], y + 13, word, f"word {pictures.css_class(word)}"),
        ]
    )


def _placed(picture: str, x: int, y: int, height: int) -> str:
    """Return a picture of the page at a position, in pixels, in the chart."""
    box = f'<svg x="{x}" y="{y}" width="{WIDTH}" height="{height}" '
    return picture.replace("<svg ", box, 1)


def _groups(rows: Sequence[ComparedRow], names: Mapping[str, EnvironmentRelease]) -> dict[str, list[ComparedRow]]:
    """Return the rows of each pair of releases, under both names, the slower first."""

    def heading(row: Row) -> str:
        other, base = row.environment, row.base.environment
        return f"{name(other, names)} against {base_name(base, other, names)}"

    slower_first = sorted(rows, key=lambda each: -(each.row.ratio or 0.0))
    return grouped((heading(each.row), each) for each in slower_first)


def _texts(row: ComparedRow) -> Texts:
    change = f"{row.change} ({row.bare_ends})" if row.bare_ends else row.change
    return row.label, change, row.word


def _columns(texts: Sequence[Texts]) -> tuple[int, int, int, int, int]:
    """Return the left edges of the four columns, and the width of the chart."""
    test, change, word = (
        round(max((len(row[index]) for row in texts), default=0) * LETTER) + PADDING for index in range(3)
    )
    edges = [PADDING, PADDING + test]
    edges.append(edges[-1] + WIDTH + PADDING)
    edges.append(edges[-1] + change)
    return edges[0], edges[1], edges[2], edges[3], edges[3] + word


def _text(x: int, y: int, content_text: str, css_class: str = "") -> str:
    attribute = f' class="{css_class}"' if css_class else ""
    return f'<text{attribute} x="{x}" y="{y}">{escape(content_text)}</text>'


def _summary(rows: Sequence[ComparedRow]) -> str:
    return f"{len(rows)} comparisons: {wording.counted_words(wording.counts(row.word for row in rows))}"
