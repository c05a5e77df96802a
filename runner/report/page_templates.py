"""The templates of the pages, with the functions that draw and name what they show."""

import base64
import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from runner.analysis.model import ADVICE
from runner.analysis.releases import EnvironmentRelease
from runner.core.text import printable
from runner.report import comparison_notes, differences, formatting, pictures, published_bars, wording
from runner.report.accuracy import ERRORS, NETWORKS
from runner.report.answer import ReleaseChange
from runner.report.compared_rows import ComparedRow, anchor, description, test_phase
from runner.report.palette import colours
from runner.report.published_bars import Bar
from runner.report.timeline import picture
from runner.report.times import Case, Line

TEMPLATES = Path(__file__).parent / "templates"
SHOWN_TIMELINES, MAX_TIMELINES = 6, 60
"""Tests whose releases over time are shown at once, and at most; those with the most releases come first."""
SHOWN_SLOWER = 10
"""Slower tests that the answer lists; more are folded below them."""
SHOWN_FAILURES = 3
"""Tests that are named for each failure; the others are counted."""

IN_FOLDER, END_IN_FOLDER = "<!--in-folder-->", "<!--/in-folder-->"
"""Comments around links to files that only the folder of a run has; a page escapes text that looks like them."""
_IN_FOLDER = re.compile(f"{IN_FOLDER}.*?{END_IN_FOLDER}", re.DOTALL)


def page_of_site(page: str) -> str:
    """Return the page of a run without the links that work only in its folder.

    The comments of the template mark them: a second page in the folder of each run would double its size, and to write
    the page again would read the run again.
    """
    return _IN_FOLDER.sub("", page)


def template(
    name: str,
    releases: Mapping[str, EnvironmentRelease],
    axis_scale: pictures.Scale | None,
    samples: Mapping[str, pictures.Samples],
    lines: Mapping[str, Line],
) -> jinja2.Template:
    """Return a template with the functions that draw and name the releases and rows of a page.

    Args:
        name: the file of the template.
        releases: environment -> its release.
        axis_scale: the axis of the table of all comparisons; None without one, and then the page has no script.
        samples: cell id -> its samples by round.
        lines: cell id -> its times.
    """
    of_releases = colours(releases)
    positions = {release: index for index, release in enumerate(of_releases)}
    script = (TEMPLATES / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    of_page: dict[str, Any] = {
        "colours": of_releases,
        "lines": lines,
        "script": Markup(script),  # noqa: S704  a file of ours
        "shown_slower": SHOWN_SLOWER,
        "shown_timelines": SHOWN_TIMELINES,
        "max_timelines": MAX_TIMELINES,
        "timeline_picture": lambda line: Markup(picture(line)),  # noqa: S704  it escapes its names
        "script_hash": f"sha256-{digest}" if axis_scale else "",
        "swatch": lambda environment: _swatch(positions.get(environment)),
        "release_name": lambda environment: releases[environment].name if environment in releases else environment,
        "shown_failures": SHOWN_FAILURES,
        "log_name": lambda environment, cell: f"{environment}/{cell}.log".replace("/", "~"),
        "longest_bar": published_bars.longest,
        "bar_picture": lambda bar, end: Markup(  # noqa: S704  numbers only
            published_bars.picture(bar, end, f"r{positions.get(bar.environment, 0)}")
        ),
        "forest": lambda row: Markup(pictures.forest(row, axis_scale) if axis_scale else ""),  # noqa: S704  numbers only
        "samples_picture": _samples_picture(samples),
    }
    return environment().get_template(name, globals=of_page)


@functools.cache
def environment() -> jinja2.Environment:
    """Return the templates of this folder, compiled once for all pages, with what all of them use."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_seen,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        by_workload=_cases_by_workload,
        counted=lambda items, noun: formatting.counted(len(items), noun),
        detectable=comparison_notes.detectable_sentences,
        devices=comparison_notes.devices,
        error=formatting.error,
        few=formatting.few,
        groupby_phase=_by_phase,
        groupby_release=_by_release,
        implementations=comparison_notes.implementations,
        of_kind=lambda entries, kind: [entry for entry in entries if entry[0].device_name == kind],
        sentence=formatting.sentence,
        sources=comparison_notes.sources,
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
        end_in_folder=Markup(END_IN_FOLDER),  # noqa: S704  a constant
        errors=ERRORS + NETWORKS,
        in_folder=Markup(IN_FOLDER),  # noqa: S704  a constant
        mean_note=formatting.sentence(comparison_notes.MEAN),
        mean_sentences=wording.mean_sentences,
        speedup_range=wording.speedup_range,
        strip=_strip,
        test_phase=test_phase,
        widening_sentences=comparison_notes.widening_sentences,
    )
    return environment


def _seen(value: object) -> object:
    """Return a value of a template, text without characters that cannot be seen, or that turn the direction of text."""
    return printable(value, multiline=True) if isinstance(value, str) and not isinstance(value, Markup) else value


def _swatch(position: int | None) -> Markup:
    return Markup("") if position is None else Markup(f'<i class="sw r{position}"></i>')  # noqa: S704  a number


def _strip(change: ReleaseChange) -> Markup:
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
    """Return the cases of each workload, of one kind of device after the other if there are several."""
    groups: dict[str, list[Case]] = {}
    cases = list(cases)
    kinds = list(dict.fromkeys(case.device_name for case in cases))
    for case in sorted(cases, key=lambda case: kinds.index(case.device_name)):
        workload = case.name.partition("/")[0]
        groups.setdefault(f"{workload} on {case.device_name}" if case.device_name else workload, []).append(case)
    return list(groups.items())


def _by_phase(lines: Iterable[Line]) -> list[tuple[str, list[Line]]]:
    """Return the lines of each phase, the fastest first."""
    groups = itertools.groupby(lines, key=lambda line: line.label)
    return [(phase, sorted(group, key=lambda line: line.seconds)) for phase, group in groups]


def _by_release(bars: Iterable[Bar]) -> list[tuple[str, list[Bar]]]:
    """Return the bars of each release, in their order."""
    groups: dict[str, list[Bar]] = {}
    for bar in bars:
        groups.setdefault(bar.release, []).append(bar)
    return list(groups.items())
