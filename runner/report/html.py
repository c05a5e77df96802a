"""A run, or a comparison, as one self-contained HTML page."""

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup

from runner.analysis.model import Comparison, Row
from runner.report import differences, formatting, quality
from runner.report.accuracy import ERRORS
from runner.report.charts import MAX_LINES, chart
from runner.report.page import Line, Page
from runner.report.published import PublishedComparison

ALL_CHARTS_LIMIT = 1000
"""Cells of a page up to which every case has a chart; drawing takes about 5 ms for each cell."""
DRAWN_CELLS = 144
"""Minimum number of cells in the charts of a larger page; further cases have only their table."""
SHOWN_CHANGES = 12
"""Cells in the list of the largest changes."""


def page_text(page: Page, reference: PublishedComparison | None = None, *, drawn: int | None = None) -> str:
    """Return the report of a run.

    Args:
        page: its content.
        reference: published figures of the same cases, to show next to them.
        drawn: minimum number of cells in the charts; entire cases are drawn until it is reached. By default all cells,
            or DRAWN_CELLS on a page of more than ALL_CHARTS_LIMIT cells.
    """
    if drawn is None:
        count = sum(len(case.lines) for case in page.cases)
        drawn = count if count <= ALL_CHARTS_LIMIT else DRAWN_CELLS
    charts = _charts(page, drawn)
    rest = len(page.cases) - len(charts)
    notes = [*page.notes]
    if rest > 0:
        notes.append(f"Charts are drawn for the first {len(charts)} cases; the other {rest} have only their table.")
    crowded = [case.name for case in page.cases[: len(charts)] if len(case.lines) > MAX_LINES]
    if crowded:
        notes.append(
            f"The charts of {formatting.few(crowded)} show the first {MAX_LINES} cells; their tables show all cells."
        )
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            reference=reference,
            charts=charts,
            notes=notes,
            summaries=list(map(_summary, page.comparisons)),
            changes=_changes(page.comparisons),
            shown_changes=SHOWN_CHANGES,
        )
    )


def comparison_text(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    return (
        _environment()
        .get_template("comparison.html.j2")
        .render(
            comparison=comparison,
            title=f"{', '.join(comparison.others)} against {comparison.base}",
            summaries=[_summary(comparison)],
            cases=formatting.rows_by_case(comparison.rows),
        )
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        groupby_phase=_by_phase,
        time_with_spread=formatting.time_with_spread,
        devices=formatting.devices,
        sources=formatting.sources,
        detectable=formatting.detectable_sentences,
        ratio=formatting.ratio,
        few=formatting.few,
        error=formatting.error,
        implementations=formatting.implementations,
        marks=quality.marks,
        serious_of_rows=quality.serious_of_rows,
        sentence=formatting.sentence,
    )
    environment.globals.update(
        interval=formatting.interval, reasons=formatting.reasons, phase_label=formatting.phase_label
    )
    environment.globals.update(dash=formatting.DASH, errors=ERRORS)
    environment.globals.update(difference_sentence=differences.sentence, difference_groups=differences.groups)
    environment.globals.update(widening_sentences=formatting.widening_sentences)
    environment.globals.update(mean_scope=formatting.mean_scope, mean_note=formatting.sentence(formatting.MEAN))
    return environment


def _by_phase(lines: Iterable[Line]) -> list[tuple[str, list[Line]]]:
    """Return the lines of each phase, in their order."""
    return [(phase, list(group)) for phase, group in itertools.groupby(lines, key=lambda line: line.label)]


def _charts(page: Page, cells: int) -> Mapping[str, Markup]:
    """Return the charts of the first cases, with at least so many cells."""
    environments = list(dict.fromkeys(line.environment for case in page.cases for line in case.lines))
    charts = {}
    for case in page.cases:
        if cells <= 0:
            break
        cells -= min(len(case.lines), MAX_LINES)
        charts[case.name] = Markup(chart(case, environments))  # noqa: S704  Vega escapes the names in it
    return charts


def _summary(comparison: Comparison) -> list[dict[str, object]]:
    """Return for each environment the number of cells with each verdict, and the mean over its cells."""
    means = {mean.environment: mean for mean in comparison.overall}
    return [
        {"base": comparison.base, "other": other, "counts": comparison.count(other), "mean": means.get(other)}
        for other in comparison.others
    ]


def _changes(comparisons: Iterable[Comparison]) -> list[tuple[str, Row]]:
    """Return (base, row) for each row that is faster or slower, the largest changes first."""
    changed = [(each.base, row) for each in comparisons for row in each.rows if row.verdict in {"faster", "slower"}]
    return sorted(changed, key=lambda pair: -abs(float(np.log(pair[1].ratio or 1.0))))
