"""What people and programs see of plans, runs and comparisons.

``report`` makes the files of a run: the HTML page (``html``, ``templates``, ``pictures``), ``report.md``
(``markdown``), the samples and a summary. ``page`` holds the content that both texts show, ``answer`` its first part.
``render`` prints a comparison for a terminal (``terminal``), as Markdown, HTML, JSON or CSV (``data``). ``site`` makes
the pages over many runs. ``plan.plan_table``, ``coverage.coverage``, ``check.Check.text`` and ``accuracy.text`` print
the results of the other commands. ``wording`` has the words for ratios and verdicts, and ``formatting`` turns values
into text, with the units of ``runner/core/units.py``.

Submodules are imported when they are needed, because pandas, jinja2 and rich take long to import.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.analysis.analyse import Analysis
    from runner.analysis.comparison_model import Comparison
    from runner.analysis.gate import GateResult
    from runner.core.model.profiles import StepProfile
    from runner.report.last_run import LastRun

__all__ = ["FORMATS", "render", "report"]

FORMATS = ("table", "md", "html", "json", "csv")


def report(
    analysis: "Analysis",
    published: str | None = None,
    profiles: Mapping[str, "StepProfile"] = MappingProxyType({}),
    damaged_profiles: Sequence[str] = (),
    last: "LastRun | None" = None,
) -> dict[str, bytes | str]:
    """Return the files of a run's report: ``index.html``, ``report.md``, ``samples.csv`` and ``summary.json``.

    Args:
        analysis: the run.
        published: a source of ``runner.catalog.published``, whose figures are shown next to those of the run.
        profiles: cell id -> its profile.
        damaged_profiles: a sentence for each that cannot be read.
        last: the run before on the same machine; None if that is not known.

    Raises:
        UsageError: there is no such source, or the run has measured none of its cases.
    """
    from runner.analysis.dataset import all_samples
    from runner.report import html, markdown, run_summary
    from runner.report import published as published_tables
    from runner.report.page import arrange
    from runner.store import samples

    page = arrange(analysis, profiles, damaged_profiles, last)
    reference = published_tables.arrange(published, page.cases, analysis.dataset) if published else None
    return {
        "index.html": html.page_text(page, reference),
        "report.md": markdown.page_text(page, reference),
        "samples.csv": samples.to_csv(all_samples(analysis.dataset)),
        run_summary.NAME: run_summary.to_json(page),
    }


def render(
    comparison: "Comparison",
    output_format: str,
    *,
    width: int = 100,
    colour: bool = False,
    gate: "GateResult | None" = None,
    metrics: Collection[str] = (),
) -> str:
    """Return a comparison in one of ``FORMATS``.

    Args:
        comparison: the result of ``compare``.
        output_format: ``table``, ``md``, ``html``, ``json`` or ``csv``.
        width: columns of the terminal, for ``table``.
        colour: whether ``table`` is coloured.
        gate: what ``--fail-on`` makes of it, for ``json``; None without conditions.
        metrics: the metrics whose rows are shown; by default those of time, and in a text the changed ones of others.
    """
    from runner.report import data

    if output_format == "json":
        return data.to_json(comparison, gate)
    if output_format == "csv":
        return data.to_csv(comparison, metrics or ("time",))
    if output_format == "md":
        from runner.report import markdown

        return markdown.comparison_text(comparison)
    if output_format == "html":
        from runner.report import html

        return html.comparison_text(comparison)
    from runner.report import terminal

    return terminal.text(comparison, width=width, colour=colour, metrics=metrics)
