"""The page of a session, one self-contained HTML file in the style of the reports; pure."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from benchmarks.first_day.predictions import Judged
from benchmarks.first_day.products import BLOCK, GRAPH, SHOWN
from benchmarks.first_day.rows import Result, Row, counts
from runner.catalog.hardware.peaks import PRECISIONS
from runner.core import units
from runner.report import formatting
from runner.report.page_templates import environment

HERE = Path(__file__).parent
WIDTH, HEIGHT, LEFT, BOTTOM = 480, 220, 34, 26
LOW, HIGH = 0.5, 8.0  # ratios at the ends of the picture's axis
RATIO_TICKS = (0.5, 1.0, 2.0, 4.0, 8.0)
TIME_TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


class Product(NamedTuple):
    """A row of the table of products: the size, a text for each clock of SHOWN, the largest spread, and the row."""

    size: int
    times: Sequence[str]
    spread: str
    row: Row


class Precision(NamedTuple):
    """A row of the table of precisions: the case, and (text, state, title) for each precision."""

    case: str
    entries: Sequence[tuple[str, str, str]]


def page(document: Mapping[str, Any], results: Sequence[Result], predictions: Sequence[Judged]) -> str:
    """Return the page.

    Args:
        document: what ``first-day.json`` has besides the results: ``machine``, ``settings``, ``started``, ``seconds``.
        results: of the checks, with a row for each that did not finish.
        predictions: each with its verdict.
    """
    by_check = {result.check: result for result in results}
    report = environment()  # whose templates stay as they are: all reports share them
    loaders = [jinja2.FileSystemLoader(HERE), report.loader or jinja2.DictLoader({})]
    templates = report.overlay(loader=jinja2.ChoiceLoader(loaders))
    products = [row for row in _rows(by_check, "clocks") if "seconds" in row.values]
    return templates.get_template("page.html.j2").render(
        document=document,
        title=title(document),
        results=results,
        total=counts(results),
        failed=[(result, row) for result in results for row in result.rows if row.state == "did not hold"],
        untested=[(result, row) for result in results for row in result.rows if row.state == "not tested"],
        predictions=[each for each in predictions if each.verdict != "not tested"],
        open_predictions=[each for each in predictions if each.verdict == "not tested"],
        clocks=SHOWN,
        products=[product(row) for row in products],
        picture=Markup(picture(products)),
        precisions=PRECISIONS,
        table=precisions(_rows(by_check, "precisions")),
        css=_css,
        counts=counts,
        seconds=lambda value: f"{value:.0f} s" if value < 90 else f"{value / 60:.1f} min",
    )


def title(document: Mapping[str, Any]) -> str:
    """Return the title: the GPU, or that there is none."""
    gpu = document["machine"].get("gpu")
    if document["settings"]["standin"] or not gpu:
        return "First day without a GPU"
    return f"First day with {gpu['name']}"


def _rows(by_check: Mapping[str, Result], name: str) -> Sequence[Row]:
    return by_check[name].rows if name in by_check else ()


def _css(state: str) -> str:
    return {"held": "faster", "did not hold": "slower", "confirmed": "slower", "refuted": "faster"}.get(state, "soft")


def product(row: Row) -> Product:
    """Return the texts of a product's row: for each clock, its time and the ratio to the reference.

    The reference is the CUDA graph; where there is none, it is the block of 400 calls with one wait.
    """
    seconds = row.values["seconds"]
    base = seconds.get(GRAPH) or seconds.get(BLOCK)
    texts = []
    for name in SHOWN:
        if name not in seconds:
            texts.append(formatting.DASH)
            continue
        ratio = f" ({seconds[name] / base:.2f})" if base else ""
        texts.append(units.step_time(seconds[name]) + ratio)
    spread = max(row.values["spread"].values(), default=0.0)
    return Product(row.values["size"], texts, f"{100 * spread:.1f} %", row)


def precisions(rows: Iterable[Row]) -> list[Precision]:
    """Return the table of cases and precisions; a case may have several implementations, the last one counts."""
    by_case: dict[str, dict[str, Row]] = {}
    for row in rows:
        if "precision" in row.values:
            by_case.setdefault(row.values["case"], {})[row.values["precision"]] = row
    return [Precision(case, [_entry(rows.get(name)) for name in PRECISIONS]) for case, rows in by_case.items()]


def _entry(row: Row | None) -> tuple[str, str, str]:
    if row is None:
        return formatting.DASH, "not tested", "not in the matrix"
    if "seconds" not in row.values:
        return str(row.values.get("class") or row.values.get("skip")), row.state, row.detail
    share = row.values.get("share")
    text = units.step_time(row.values["seconds"]) + (f", {100 * share:.2g} %" if share else "")
    return text, row.state, row.detail


def picture(products: Sequence[Row]) -> str:
    """Return an SVG of each clock's ratio to the CUDA graph, or to a block of calls, by the product's time."""
    series: dict[str, list[tuple[float, float]]] = {name: [] for name in SHOWN}
    for row in products:
        seconds = row.values["seconds"]
        base = seconds.get(GRAPH) or seconds.get(BLOCK)
        for name in SHOWN:
            if base and name in seconds:
                series[name].append((_x(base), _y(seconds[name] / base)))
    if not any(series.values()):
        return ""
    lines = (_series(number, points) for number, points in enumerate(series.values()) if points)
    head = f'<svg class="ratios" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="ratio of each clock by time">'
    return "".join([head, *_axes(), *lines, "</svg>"])


def _axes() -> Iterator[str]:
    for ratio in RATIO_TICKS:
        y, kind = _y(ratio), "one" if ratio == 1 else "grid"
        yield f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" style="text-anchor:end">{ratio:g}</text>'
    for seconds in TIME_TICKS:
        yield f'<text x="{_x(seconds):.1f}" y="{HEIGHT - 6}">{units.step_time(seconds)}</text>'


def _series(number: int, points: Sequence[tuple[float, float]]) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    circles = "".join(f'<circle class="c{number}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points)
    return f'<polyline class="c{number}" points="{path}"/>{circles}'


def _x(seconds: float) -> float:
    share = math.log(max(seconds, TIME_TICKS[0]) / TIME_TICKS[0]) / math.log(TIME_TICKS[-1] / TIME_TICKS[0])
    return LEFT + 12 + min(share, 1.0) * (WIDTH - LEFT - 40)


def _y(ratio: float) -> float:
    share = math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
    return (HEIGHT - BOTTOM) - share * (HEIGHT - BOTTOM - 12)
