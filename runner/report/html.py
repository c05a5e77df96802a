"""A run, or a comparison, as one self-contained HTML page."""

import base64
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from runner.analysis.model import Comparison
from runner.analysis.quality.grade import ADVICE
from runner.analysis.releases import Release
from runner.core.model.cells import is_twin
from runner.report import differences, formatting, pictures, wording
from runner.report.accuracy import ERRORS
from runner.report.answer import Change
from runner.report.compared_rows import ComparedRow, anchor, by_workload, compared_rows, description, test_phase
from runner.report.heat_map import heat_maps
from runner.report.page import Page
from runner.report.palette import colours
from runner.report.published import PublishedComparison
from runner.report.timeline import picture, timelines
from runner.report.times import Case, Line

TEMPLATES = Path(__file__).parent / "templates"
MAX_TABLE_ROWS = 200
"""Rows of the table of all comparisons. A larger run has its slower and undecided rows there, as many of the others as
fit, and the rest in a table for each workload."""

SHOWN_TIMELINES, MAX_TIMELINES = 6, 60
"""Tests whose releases over time are shown at once, and at most; those with the most releases come first."""
SHOWN_SLOWER = 10
"""Slower tests that the answer lists; more are folded below them."""


class Skips(NamedTuple):
    """How many tests were not run for a code, and what that means."""

    tests: int
    title: str


SKIP_TITLES = {
    "excluded": "left out by the preset",
    "framework-lacks": "not offered by the release",
    "image-unavailable": "in environments that cannot be had",
    "no-gpu": "need a GPU",
}
"""Skip code -> its meaning in the summary; others are called by their code."""


def page_text(page: Page, reference: PublishedComparison | None = None) -> str:
    """Return the report of a run.

    Args:
        page: its content.
        reference: published figures of the same cases, to show next to them.
    """
    of_releases = [each for each in page.comparisons if not any(map(is_twin, each.others))]
    maps = heat_maps(page.rows, page.releases)
    skips = _skips(page)
    lines_over_time = timelines(page.cases, page.releases)
    return _template("page.html.j2", page.releases, page.rows, page.samples, _lines(page)).render(
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
        accuracy_summary=_accuracy_summary(page),
        **_table(page.rows, page.comparisons),
    )


def comparison_text(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    rows = compared_rows([comparison], comparison.releases)
    return _template("comparison.html.j2", comparison.releases, rows, {}, {}).render(
        comparison=comparison,
        title=f"{', '.join(comparison.others)} against {comparison.base}",
        **_table(rows, [comparison]),
    )


def _table(rows: Sequence[ComparedRow], comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return what the table of all comparisons shows."""
    margin = comparisons[0].margin if comparisons else 0.02
    shown, rest = rows, list[ComparedRow]()
    if len(rows) > MAX_TABLE_ROWS:
        by_need = sorted(rows, key=lambda each: each.word not in ("slower", "probably slower"))
        needed = sum(each.word in ("slower", "probably slower") for each in rows)
        kept = set(map(id, by_need[: max(needed, MAX_TABLE_ROWS)]))
        shown = [each for each in rows if id(each) in kept]
        rest = [each for each in rows if id(each) not in kept]
    axis_scale = pictures.scale(each.row for each in shown)
    return {
        "table_rows": shown,
        "workload_tables": by_workload(rest),
        "margin": margin,
        "axis": Markup(pictures.axis(axis_scale, margin)),  # noqa: S704  numbers only
        "axis_labels": Markup(pictures.axis_labels(axis_scale)),  # noqa: S704  numbers only
    }


def _template(
    name: str,
    releases: Mapping[str, Release],
    rows: Sequence[ComparedRow],
    samples: Mapping[str, pictures.Samples],
    lines: Mapping[str, Line],
) -> jinja2.Template:
    """Return a template with the functions that draw and name the releases and rows of a page."""
    templates = environment()
    of_releases = colours(releases)
    positions = {release: index for index, release in enumerate(of_releases)}
    axis_scale = pictures.scale(each.row for each in rows[:MAX_TABLE_ROWS])
    script = (TEMPLATES / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    templates.globals.update(
        colours=of_releases,
        lines=lines,
        script=Markup(script),  # noqa: S704  a file of ours
        shown_slower=SHOWN_SLOWER,
        shown_timelines=SHOWN_TIMELINES,
        max_timelines=MAX_TIMELINES,
        timeline_picture=lambda line: Markup(picture(line)),  # noqa: S704  it escapes its names
        script_hash=f"sha256-{digest}" if rows else "",
        swatch=lambda environment: _swatch(positions.get(environment)),
        release_name=lambda environment: releases[environment].name if environment in releases else environment,
        forest=lambda row: Markup(pictures.forest(row, axis_scale)),  # noqa: S704  numbers only
        samples_picture=_samples_picture(samples),
    )
    return templates.get_template(name)


def environment() -> jinja2.Environment:
    """Return the templates of this folder with what all pages use."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        by_workload=_cases_by_workload,
        counted=lambda items, noun: formatting.counted(len(items), noun),
        detectable=formatting.detectable_sentences,
        devices=formatting.devices,
        error=formatting.error,
        few=formatting.few,
        groupby_phase=_by_phase,
        implementations=formatting.implementations,
        sentence=formatting.sentence,
        sources=formatting.sources,
        speedup=wording.speedup,
        without_workload=lambda test: test.partition("/")[2],
    )
    environment.globals.update(
        advice=ADVICE,
        anchor=anchor,
        css_class=pictures.css_class,
        dash=formatting.DASH,
        description=description,
        difference_groups=differences.groups,
        difference_sentence=differences.sentence,
        errors=ERRORS,
        mean_note=formatting.sentence(formatting.MEAN),
        mean_sentences=wording.mean_sentences,
        speedup_range=wording.speedup_range,
        strip=_strip,
        test_phase=test_phase,
        widening_sentences=formatting.widening_sentences,
    )
    return environment


def _swatch(position: int | None) -> Markup:
    return Markup("") if position is None else Markup(f'<i class="sw r{position}"></i>')  # noqa: S704  a number


def _strip(change: Change) -> Markup:
    return Markup(pictures.strip(change)) if change.rows else Markup("")  # noqa: S704  it escapes its names


def _samples_picture(samples: Mapping[str, pictures.Samples]) -> Callable[[ComparedRow], Markup]:
    def picture(each: ComparedRow) -> Markup:
        base, other = (samples.get(cell, {}) for cell in each.row.cell_ids)
        drawn = pictures.samples(base, other)
        if drawn is None:
            return Markup("")
        ends = (formatting.step_time(seconds) for seconds in (drawn.low, drawn.high))
        text = pictures.SAMPLES_CAPTION.format(each.base, each.other, *ends)
        return Markup('<p class="soft">{}</p>').format(text) + Markup(drawn.svg)  # noqa: S704  numbers only

    return picture


def _cases_by_workload(cases: Iterable[Case]) -> list[tuple[str, list[Case]]]:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.name.partition("/")[0], []).append(case)
    return list(groups.items())


def _by_phase(lines: Iterable[Line]) -> list[tuple[str, list[Line]]]:
    """Return the lines of each phase, the fastest first."""
    groups = itertools.groupby(lines, key=lambda line: line.label)
    return [(phase, sorted(group, key=lambda line: line.seconds)) for phase, group in groups]


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
        ("answer", "Answer", True),
        ("failures", "Failed", any(each.outcome == "failed" for each in page.missing)),
        ("map", "Map", has_map),
        ("comparisons", "All comparisons", bool(page.rows)),
        ("published", "Published", reference is not None),
        ("timeline", "Over time", has_timeline),
        ("times", "Times", True),
        ("warnings", "Warnings", page.quality_issues is not None),
        ("skipped", "Not run", has_skips),
        ("correctness", "Correctness", bool(page.accuracy)),
        ("environments", "Environments", bool(page.environments or page.machine)),
        ("provenance", "Repeat", bool(page.provenance)),
    )
    yield from ((name, title) for name, title, exists in candidates if exists)


def _skips(page: Page) -> list[Skips]:
    """Return how many tests were not run, by reason, the most frequent first."""
    tests = Counter[str]()
    for group in page.missing:
        if group.outcome == "skipped":
            tests[SKIP_TITLES.get(group.code, group.code)] += len(group.cells)
    return [Skips(count, title) for title, count in tests.most_common()]


def _accuracy_summary(page: Page) -> str:
    failed = sum(row.failed for row in page.accuracy)
    total = formatting.counted(len(page.accuracy), "implementation")
    if failed:
        return f"{failed} of {total} disagree with the float64 reference"
    return f"{total}, all within the tolerance of the float64 reference"
