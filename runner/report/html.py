"""A run, or a comparison, as one self-contained HTML page."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from runner.analysis.comparison_model import Comparison
from runner.analysis.releases import EnvironmentRelease
from runner.core.grouping import grouped
from runner.core.model import SKIP_MEANINGS
from runner.report import formatting, key_numbers, pictures, speedup_axis, wording
from runner.report.answer import Answer, answer, changed_metrics
from runner.report.compared_rows import ComparedRow, compared_rows
from runner.report.controls_table import controls_summary
from runner.report.fastest import alone_by_release, measured_alone, races
from runner.report.heat_map import HeatMap, heat_maps
from runner.report.page import Page
from runner.report.page_templates import template
from runner.report.pairs import pairs
from runner.report.pivots import pivots
from runner.report.profile_section import INTRODUCTION, SHOWN_PAIRS
from runner.report.published import PublishedComparison
from runner.report.timeline import timelines
from runner.report.times import Line

MAX_ROWS = 150
"""Comparisons that are drawn. A larger run draws its slower ones, as many of the others as fit, the largest changes
first, and has the rest in a table for each workload."""
MIN_MAPPED = 2
"""Releases compared with one base, at least, for the page to have a map of them; a single release has all its changes
in the plot."""


class Skips(NamedTuple):
    """How many tests were not run for a code, and what that means."""

    tests: int
    title: str


class NotRun(NamedTuple):
    """The tests that were not run for one reason, in all of its environments; one of them is the example."""

    environments: list[str]
    code: str
    reason: str
    tests: int
    example: str


def page_text(page: Page, reference: PublishedComparison | None = None) -> str:
    """Return the report of a run.

    Args:
        page: its content.
        reference: published figures of the same cases, to show next to them.
    """
    of_releases = [each for each in page.comparisons if not each.is_control]
    known = {cell for each in page.rows for cell in each.row.cell_ids}
    numbers = key_numbers.key_numbers(page.rows, of_releases, page.last)
    has_numbers = len(page.rows) >= key_numbers.MIN_ROWS
    alone = measured_alone(page.cases, known, page.releases) if page.rows else []
    content: dict[str, Any] = {
        "page": page,
        "reference": reference,
        "notes": page.notes,
        "counts": _counts(page.rows),
        "numbers": numbers if has_numbers else [],
        "sentence": key_numbers.limits_sentence(numbers) if page.rows and not has_numbers else "",
        "marks": page.marks,
        "alone": alone,
        "alone_counts": alone_by_release(alone),
        "races": races(page.cases, page.releases),
        "maps": _maps(page),
        "skips": _skips(page),
        "not_run": _not_run(page),
        "timelines": timelines(page.cases, page.releases),
        "releases_compared": of_releases,
        "profiles": {"content": page.profiles, "introduction": INTRODUCTION, "shown": SHOWN_PAIRS},
        "accuracy_summary": _accuracy_summary(page),
        "controls_summary": controls_summary(page.controls),
        **drawn(page.rows, page.comparisons, page.answer, page.releases),
    }
    made = template("page.html.j2", page.releases, content["axis_scale"], page.samples, _lines(page))
    return made.render(**content, sections=list(_sections(page, content)))


def comparison_text(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    rows = compared_rows([comparison], comparison.releases)
    title = f"{', '.join(comparison.others)} against {comparison.base}"
    of_comparison = answer([comparison], comparison.releases, None, title)
    plots = drawn(rows, [comparison], of_comparison, comparison.releases)
    return template("comparison.html.j2", comparison.releases, plots["axis_scale"], {}, {}).render(
        comparison=comparison,
        title=of_comparison.headline,
        counts=_counts(rows),
        changed=changed_metrics([comparison], comparison.releases),
        **plots,
    )


def drawn(
    rows: Sequence[ComparedRow],
    comparisons: Sequence[Comparison],
    of_rows: Answer,
    names: Mapping[str, EnvironmentRelease],
) -> dict[str, Any]:
    """Return what the plots of all pairs show, and the tables of the comparisons that are not drawn."""
    margin = comparisons[0].margin if comparisons else 0.02
    shown = rows
    if len(rows) > MAX_ROWS:
        by_need = sorted(rows, key=lambda each: not wording.is_slower(each.word))
        needed = sum(wording.is_slower(each.word) for each in rows)
        kept = set(map(id, by_need[: max(needed, MAX_ROWS)]))
        shown = [each for each in rows if id(each) in kept]
    anchors = {each.anchor for each in shown}
    axis_scale = speedup_axis.scale(each.row for each in shown)
    return {
        "pairs": pairs(shown, of_rows, names),
        "labels": {each.row.other.id: each.label for each in rows},
        "shown_anchors": anchors,
        "pivots_of_rest": pivots(rows, anchors, [other for each in comparisons for other in each.others]),
        "axis_scale": axis_scale if rows else None,
        "axis": Markup(pictures.axis(axis_scale, margin)),  # noqa: S704  numbers only
        "axis_labels": Markup(pictures.axis_labels(axis_scale)),  # noqa: S704  numbers only
    }


def _counts(rows: Sequence[ComparedRow]) -> str:
    """Return how many comparisons have each word, ``23 faster, 3 slower of 28 comparisons``."""
    words = wording.counted_words(wording.counts(each.word for each in rows))
    return f"{words} of {formatting.counted(len(rows), 'comparison')}" if rows else ""


def _maps(page: Page) -> list[HeatMap]:
    """Return the maps of the bases that several releases are compared with."""
    return [each for each in heat_maps(page.rows, page.releases) if len(each.columns) >= MIN_MAPPED]


def _lines(page: Page) -> dict[str, Line]:
    """Return cell id -> its line."""
    return {line.cell_id(case.name): line for case in page.cases for line in case.lines}


def _sections(page: Page, content: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield anchor and title of each section that the page has."""
    candidates = (
        ("answer", "Answer", True),
        *((panel.anchor, panel.device_name, True) for panel in page.panels),
        ("alone", "Not compared", bool(content["alone"])),
        ("changed", "Also changed", bool(page.answer.changed)),
        ("failures", "Failed", any(each.outcome == "failed" for each in page.missing)),
        ("fastest", "Fastest", bool(content["races"])),
        ("published", "Published", content["reference"] is not None),
        ("profiles", "Profiles", page.profiles is not None),
        ("map", "Map", bool(content["maps"])),
        ("timeline", "Over time", bool(content["timelines"])),
        ("times", "Times", True),
        ("controls", "Controls", bool(page.controls)),
        ("warnings", "Warnings", page.quality_issues is not None),
        ("skipped", "Not run", bool(content["skips"])),
        ("correctness", "Correctness", bool(page.accuracy)),
        ("environments", "Environments", bool(page.comparisons or page.environments or page.machine)),
        ("provenance", "Method", True),
    )
    yield from ((name, title) for name, title, exists in candidates if exists)


def _skips(page: Page) -> list[Skips]:
    """Return how many tests were not run, by reason, the most frequent first; a code of an older run is the reason."""
    tests = Counter[str]()
    for group in page.missing:
        if group.outcome == "skipped":
            tests[SKIP_MEANINGS.get(group.code, group.code)] += len(group.cells)
    return [Skips(count, title) for title, count in tests.most_common()]


def _not_run(page: Page) -> list[NotRun]:
    """Return the tests that were not run, each reason once."""
    skipped = (each for each in page.missing if each.outcome == "skipped")
    groups = grouped(((each.code, each.reason), each) for each in skipped)
    return [
        NotRun(
            [each.environment for each in group],
            code,
            reason,
            sum(len(each.cells) for each in group),
            group[0].cells[0],
        )
        for (code, reason), group in groups.items()
    ]


def _accuracy_summary(page: Page) -> str:
    failed = sum(row.failed for row in page.accuracy)
    total = formatting.counted(len(page.accuracy), "API")
    if failed:
        return f"{failed} of {total} disagree with the reference"
    if unchecked := sum(row.unchecked for row in page.accuracy):
        return f"{unchecked} of {total} unchecked, the others within the tolerance of the reference"
    return f"{total}, all within the tolerance of the reference"
