"""The templates of the pages, with the functions that draw and name what they show."""

import base64
import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from runner.analysis.model import ADVICE
from runner.analysis.releases import EnvironmentRelease
from runner.core.grouping import grouped
from runner.core.model.cells import is_control, without_control
from runner.core.text import printable
from runner.report import comparison_notes, differences, formatting, metric_text, pictures, published_bars, wording
from runner.report import trust as trust_text
from runner.report.accuracy import ERRORS, NETWORKS
from runner.report.compared_rows import ComparedRow, description
from runner.report.published_bars import Bar
from runner.report.speedup_axis import Scale
from runner.report.timeline import picture
from runner.report.times import Case, Line

TEMPLATES = Path(__file__).parent / "templates"
SHOWN_TIMELINES, MAX_TIMELINES = 6, 60
"""Tests whose releases over time are shown at once, and at most; those with the most releases come first."""
SHOWN_CHANGED, MAX_CHANGED = 5, 20
"""Changes of other metrics than time that a page shows at once, and at most; the others are counted."""
SHOWN_RACES = 24
"""Tests of several frameworks that are drawn; the others are counted."""
FILTERED_FROM = 8
"""Comparisons from which a page can be filtered and sorted."""
SHOWN_FACTS = ("Device", "Hosts", "Threads", "Backend", "Measured")
"""Facts of a run that stand below its headline; the others are folded."""
NAMED_FACTS = frozenset({"Hosts", "Threads", "Measured"})
"""Those of them that need their name."""
SHOWN_FAILURES = 3
"""Tests that are named for each failure; the others are counted."""

IN_FOLDER, END_IN_FOLDER = "<!--in-folder-->", "<!--/in-folder-->"
"""Comments around links to files that only the folder of a run has; a page escapes text that looks like them."""
_IN_FOLDER = re.compile(f"{IN_FOLDER}.*?{END_IN_FOLDER}", re.DOTALL)

POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a page may load: nothing. Its own script has its hash."""
_START = re.compile(
    r'\s*<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    r'<meta name="viewport" content="[^"<>]*">\n<meta http-equiv="Content-Security-Policy" content="([^"<>]*)">\n'
)
METAS = 3
"""Elements at the start of a page that could change what it may load; a further one could lead to another page."""

HUES = {"torch": 14, "torch7": 330, "tensorflow": 38, "keras": 350, "theano": 265, "jax": 190, "numpy": 150}
OTHER_HUE = 90
LIGHT = (58, 34)
"""Lightness in per cent on a white page, of the oldest release and of the newest: at least 3:1 against the page."""
DARK = (45, 72)
"""The same on a dark page."""


class Colour(NamedTuple):
    """A colour in CSS, on a light page and on a dark one."""

    light: str
    dark: str


def page_of_site(page: str) -> str:
    """Return the page of a run without the links that work only in its folder.

    The comments of the template mark them: a second page in the folder of each run would double its size, and to write
    the page again would read the run again.
    """
    return _IN_FOLDER.sub("", page)


def is_harmless(page: str) -> bool:
    """Return whether a page starts as those of this program do, so that it can run no script and load nothing."""
    start = _START.match(page)
    policies = (POLICY, f"{POLICY}; script-src '{script_of_pages()[1]}'")
    return start is not None and start[1] in policies and page.lower().count("<meta") == METAS


@functools.cache
def script_of_pages() -> tuple[str, str]:
    """Return the script of a page, and its hash for the policy."""
    script = (TEMPLATES / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return script, f"sha256-{digest}"


def template(
    name: str,
    releases: Mapping[str, EnvironmentRelease],
    axis_scale: Scale | None,
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
    script, script_hash = script_of_pages()
    of_page: dict[str, Any] = {
        "colours": of_releases,
        "lines": lines,
        "script": Markup(script),  # noqa: S704  a file of ours
        "shown_changed": SHOWN_CHANGED,
        "max_changed": MAX_CHANGED,
        "shown_races": SHOWN_RACES,
        "metric_text": metric_text,
        "shown_timelines": SHOWN_TIMELINES,
        "max_timelines": MAX_TIMELINES,
        "timeline_picture": lambda line: Markup(picture(line)),  # noqa: S704  it escapes its names
        "script_hash": script_hash if axis_scale else "",
        "swatch": lambda environment: _swatch(positions.get(environment)),
        "release_name": lambda environment: _release_name(environment, releases),
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
        sentence=formatting.sentence,
        sources=comparison_notes.sources,
        without_control=without_control,
        without_workload=lambda test: test.partition("/")[2],
    )
    environment.globals.update(
        advice=ADVICE,
        believed=trust_text.BELIEVED,
        css_class=pictures.css_class,
        dash=formatting.DASH,
        date=formatting.date,
        description=description,
        difference_groups=differences.groups,
        difference_sentence=differences.sentence,
        end_in_folder=Markup(END_IN_FOLDER),  # noqa: S704  a constant
        errors=ERRORS + NETWORKS,
        filtered_from=FILTERED_FROM,
        in_folder=Markup(IN_FOLDER),  # noqa: S704  a constant
        policy=Markup(POLICY),  # noqa: S704  a constant
        mean_note=formatting.sentence(comparison_notes.MEAN),
        named_facts=NAMED_FACTS,
        shown_facts=SHOWN_FACTS,
        speedup_range=wording.speedup_range,
        widening_sentences=comparison_notes.widening_sentences,
    )
    return environment


def _seen(value: object) -> object:
    """Return a value of a template, text without characters that cannot be seen, or that turn the direction of text."""
    return printable(value, multiline=True) if isinstance(value, str) and not isinstance(value, Markup) else value


def _swatch(position: int | None) -> Markup:
    return Markup("") if position is None else Markup(f'<i class="sw r{position}"></i>')  # noqa: S704  a number


def _release_name(environment: str, releases: Mapping[str, EnvironmentRelease]) -> str:
    """Return the name of an environment's release; of an A/A control, that it is one."""
    name = releases[environment].name if environment in releases else without_control(environment)
    return f"{name}, A/A control" if is_control(environment) else name


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
    by_kind = grouped((case.device_name, case) for case in cases)
    of_kinds = ((kind, case) for kind, of_kind in by_kind.items() for case in of_kind)
    headed = ((case.name.partition("/")[0] + (f" on {kind}" if kind else ""), case) for kind, case in of_kinds)
    return list(grouped(headed).items())


def _by_phase(lines: Iterable[Line]) -> list[tuple[str, list[Line]]]:
    """Return the lines of each phase, the fastest first."""
    groups = itertools.groupby(lines, key=lambda line: line.label)
    return [(phase, sorted(group, key=lambda line: line.seconds)) for phase, group in groups]


def _by_release(bars: Iterable[Bar]) -> list[tuple[str, list[Bar]]]:
    """Return the bars of each release, in their order."""
    return list(grouped((bar.release, bar) for bar in bars).items())


def colours(releases: Mapping[str, EnvironmentRelease]) -> dict[str, Colour]:
    """Return environment -> its stable colour: a hue for the framework, darker the newer the release is in the run."""
    by_framework = grouped((release.framework, name) for name, release in releases.items() if not is_control(name))
    return {
        name: _colour(framework, index / max(len(names) - 1, 1))
        for framework, names in by_framework.items()
        for index, name in enumerate(names)
    }


def _colour(framework: str, age: float) -> Colour:
    hue = HUES.get(framework, OTHER_HUE)
    light, dark = (round(oldest + age * (newest - oldest)) for oldest, newest in (LIGHT, DARK))
    return Colour(f"hsl({hue} 70% {light}%)", f"hsl({hue} 70% {dark}%)")
