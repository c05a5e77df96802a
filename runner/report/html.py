"""A run, or a comparison, as one HTML page that needs nothing else."""

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup

from runner.analysis.model import Comparison, Row
from runner.report import differences, formatting, quality
from runner.report.accuracy import ERRORS
from runner.report.charts import MOST_LINES, chart
from runner.report.page import Line, Page
from runner.report.published import Beside

SMALL = 1000
"""Cells of a page whose every case has a chart; a chart takes some 5 ms for each."""
DRAWN = 144
"""Cells in the charts of a larger page, at least. The cases after them have their table alone."""
CHANGES = 12
"""Cells named in the summary, those that changed most."""


def page_text(page: Page, reference: Beside | None = None, *, drawn: int | None = None) -> str:
    """Return the report of a run.

    Args:
        page: what it says.
        reference: what was published of the same cases; shown where it is given.
        drawn: cells in its charts, at least; whole cases are drawn until there are as many. All by default, and
            DRAWN on a page of more than SMALL cells.
    """
    if drawn is None:
        count = sum(len(case.lines) for case in page.cases)
        drawn = count if count <= SMALL else DRAWN
    charts = _charts(page, drawn)
    left = len(page.cases) - len(charts)
    notes = [*page.notes]
    if left > 0:
        notes.append(f"Charts are drawn for the first {len(charts)} cases; the other {left} have their table alone.")
    crowded = [case.name for case in page.cases[: len(charts)] if len(case.lines) > MOST_LINES]
    if crowded:
        notes.append(
            f"The charts of {formatting.few(crowded)} show the first {MOST_LINES} cells; their tables show all."
        )
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            reference=reference,
            charts=charts,
            notes=notes,
            summaries=[_summary(one) for one in page.comparisons],
            changes=_changes(page.comparisons),
            most=CHANGES,
        )
    )


def comparison_text(comparison: Comparison) -> str:
    """Return a comparison alone."""
    return (
        _environment()
        .get_template("comparison.html.j2")
        .render(
            comparison=comparison,
            title=f"{', '.join(comparison.others)} against {comparison.base}",
            summaries=[_summary(comparison)],
            cases=formatting.by_case(comparison.rows),
        )
    )


def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        groupby_phase=_by_phase,
        duration=formatting.duration,
        spread_duration=formatting.spread_duration,
        devices=formatting.devices,
        sources=formatting.sources,
        ratio=formatting.ratio,
        few=formatting.few,
        error=formatting.error,
        partners=formatting.partners,
        marks=quality.marks,
        of_rows=quality.of_rows,
        sentence=formatting.sentence,
    )
    made.globals.update(interval=formatting.interval, reasons=formatting.reasons, phase_of=formatting.phase)
    made.globals.update(dash=formatting.DASH, errors=ERRORS)
    made.globals.update(differing=differences.sentence, differences_of=differences.groups)
    made.globals.update(taken_over=formatting.taken_over, mean_of=formatting.sentence(formatting.MEAN))
    return made


def _by_phase(lines: Iterable[Line]) -> list[tuple[str, list[Line]]]:
    """Return the lines of each phase, in their order."""
    return [(phase, list(group)) for phase, group in itertools.groupby(lines, key=lambda line: line.label)]


def _charts(page: Page, room: int) -> Mapping[str, Markup]:
    """Return the charts of the first cases."""
    environments = list(dict.fromkeys(line.environment for case in page.cases for line in case.lines))
    found = {}
    for case in page.cases:
        if room <= 0:
            break
        room -= min(len(case.lines), MOST_LINES)
        found[case.name] = Markup(chart(case, environments))  # noqa: S704  Vega escapes the names in it
    return found


def _summary(comparison: Comparison) -> list[dict[str, object]]:
    """Return for each environment how many of its cells have which verdict, and the mean over them."""
    overall = {one.environment: one for one in comparison.overall}
    return [
        {"base": comparison.base, "other": other, "counts": comparison.count(other), "overall": overall.get(other)}
        for other in comparison.others
    ]


def _changes(comparisons: Iterable[Comparison]) -> list[tuple[str, Row]]:
    """Return the base and the row of what got faster or slower, the largest changes first."""
    changed = [(one.base, row) for one in comparisons for row in one.rows if row.verdict in {"faster", "slower"}]
    return sorted(changed, key=lambda found: -abs(float(np.log(found[1].ratio or 1.0))))
