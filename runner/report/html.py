"""A run, or a comparison, as one self-contained HTML page."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from runner.analysis.comparison_model import Comparison
from runner.core.model import SKIP_MEANINGS
from runner.report import formatting, pictures
from runner.report.answer import changed_metrics
from runner.report.compared_rows import ComparedRow, by_kind, compared_rows
from runner.report.controls_table import controls_summary
from runner.report.heat_map import heat_maps
from runner.report.page import Page
from runner.report.page_templates import template
from runner.report.pivots import pivots
from runner.report.profile_section import INTRODUCTION, SHOWN_PAIRS
from runner.report.published import PublishedComparison
from runner.report.timeline import timelines
from runner.report.times import Line

MAX_TABLE_ROWS = 150
"""Rows of the table of all comparisons. A larger run has its slower and undecided rows there, as many of the others as
fit, and the rest in a table for each workload."""


class Skips(NamedTuple):
    """How many tests were not run for a code, and what that means."""

    tests: int
    title: str


def page_text(page: Page, reference: PublishedComparison | None = None) -> str:
    """Return the report of a run.

    Args:
        page: its content.
        reference: published figures of the same cases, to show next to them.
    """
    of_releases = [each for each in page.comparisons if not each.is_control]
    maps = heat_maps(page.rows, page.releases)
    skips = _skips(page)
    lines_over_time = timelines(page.cases, page.releases)
    table = _table(page.rows, page.comparisons)
    return template("page.html.j2", page.releases, table["axis_scale"], page.samples, _lines(page)).render(
        page=page,
        reference=reference,
        notes=page.notes,
        maps=maps,
        sections=list(
            _sections(page, reference, has_map=bool(maps), has_skips=bool(skips), has_timeline=bool(lines_over_time))
        ),
        skips=skips,
        timelines=lines_over_time,
        releases_compared=of_releases,
        profiles={"content": page.profiles, "introduction": INTRODUCTION, "shown": SHOWN_PAIRS},
        accuracy_summary=_accuracy_summary(page),
        controls_summary=controls_summary(page.controls),
        **table,
    )


def comparison_text(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    rows = compared_rows([comparison], comparison.releases)
    table = _table(rows, [comparison])
    return template("comparison.html.j2", comparison.releases, table["axis_scale"], {}, {}).render(
        comparison=comparison,
        title=f"{', '.join(comparison.others)} against {comparison.base}",
        changed=changed_metrics([comparison], comparison.releases),
        **table,
    )


def _table(rows: Sequence[ComparedRow], comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return what the table of all comparisons shows."""
    margin = comparisons[0].margin if comparisons else 0.02
    shown = rows
    if len(rows) > MAX_TABLE_ROWS:
        by_need = sorted(rows, key=lambda each: each.word not in ("slower", "probably slower"))
        needed = sum(each.word in ("slower", "probably slower") for each in rows)
        kept = set(map(id, by_need[: max(needed, MAX_TABLE_ROWS)]))
        shown = [each for each in rows if id(each) in kept]
    anchors = {each.anchor for each in shown}
    axis_scale = pictures.scale(each.row for each in shown)
    return {
        "tables": by_kind(shown),
        "shown_anchors": anchors,
        "pivots": pivots(rows, anchors, [other for each in comparisons for other in each.others]),
        "margin": margin,
        "axis_scale": axis_scale if rows else None,
        "axis": Markup(pictures.axis(axis_scale, margin)),  # noqa: S704  numbers only
        "axis_labels": Markup(pictures.axis_labels(axis_scale)),  # noqa: S704  numbers only
    }


def _lines(page: Page) -> dict[str, Line]:
    """Return cell id -> its line."""
    return {
        f"{line.environment}/{line.implementation}/{case.name}/{line.phase}/{line.precision}": line
        for case in page.cases
        for line in case.lines
    }


def _sections(
    page: Page, reference: PublishedComparison | None, *, has_map: bool, has_skips: bool, has_timeline: bool
) -> Iterable[tuple[str, str]]:
    """Yield anchor and title of each section that the page has."""
    candidates = (
        *((panel.anchor, panel.device_name, True) for panel in page.panels),
        ("answer", "Trust" if page.panels else "Answer", True),
        ("failures", "Failed", any(each.outcome == "failed" for each in page.missing)),
        ("map", "Map", has_map and not page.panels),
        ("comparisons", "All comparisons", bool(page.rows)),
        ("published", "Published", reference is not None),
        ("timeline", "Over time", has_timeline),
        ("profiles", "Profiles", page.profiles is not None),
        ("times", "Times", True),
        ("controls", "Controls", bool(page.controls)),
        ("warnings", "Warnings", page.quality_issues is not None),
        ("skipped", "Not run", has_skips),
        ("correctness", "Correctness", bool(page.accuracy)),
        ("environments", "Environments", bool(page.environments or page.machine)),
        ("provenance", "Repeat", bool(page.provenance)),
    )
    yield from ((name, title) for name, title, exists in candidates if exists)


def _skips(page: Page) -> list[Skips]:
    """Return how many tests were not run, by reason, the most frequent first; a code of an older run is the reason."""
    tests = Counter[str]()
    for group in page.missing:
        if group.outcome == "skipped":
            tests[SKIP_MEANINGS.get(group.code, group.code)] += len(group.cells)
    return [Skips(count, title) for title, count in tests.most_common()]


def _accuracy_summary(page: Page) -> str:
    failed = sum(row.failed for row in page.accuracy)
    total = formatting.counted(len(page.accuracy), "implementation")
    if failed:
        return f"{failed} of {total} disagree with the reference"
    if unchecked := sum(row.unchecked for row in page.accuracy):
        return f"{unchecked} of {total} unchecked, the others within the tolerance of the reference"
    return f"{total}, all within the tolerance of the reference"
