"""What was found, for people and programs: pages, tables and charts from a run and its comparisons.

Nothing heavy is loaded before it is needed.
"""

from collections.abc import Sequence

from runner.analysis.model import Comparison, Dataset

FORMS = ("table", "md", "html", "json", "csv")


def report(
    results: Dataset, comparisons: Sequence[Comparison] = (), published: str | None = None
) -> dict[str, bytes | str]:
    """Return the files of a run's report: ``index.html``, ``report.md`` and ``samples.csv``.

    Args:
        results: the run.
        comparisons: environments of this run against a base, for the verdicts.
        published: a source of ``runner.catalog.published``, whose figures stand beside those of the run.

    Raises:
        UsageError: there is no such source, or it has nothing that the run has measured.
    """
    from runner.report import html, markdown
    from runner.report import page as view
    from runner.report import published as beside
    from runner.store import samples

    page = view.arrange(results, comparisons)
    reference = beside.arrange(published, page.cases, results) if published else None
    return {
        "index.html": html.page_text(page, reference),
        "report.md": markdown.page_text(page, reference),
        "samples.csv": samples.to_csv(results.samples),
    }


def render(comparison: Comparison, form: str, *, width: int = 100, colour: bool = False) -> str:
    """Return a comparison in one of ``FORMS``.

    Args:
        comparison: what ``compare`` found.
        form: ``table``, ``md``, ``html``, ``json`` or ``csv``.
        width: columns of the terminal, for ``table``.
        colour: whether ``table`` is coloured.
    """
    from runner.report import data

    if form == "json":
        return data.to_json(comparison)
    if form == "csv":
        return data.to_csv(comparison)
    if form == "md":
        from runner.report import markdown

        return markdown.comparison_text(comparison)
    if form == "html":
        from runner.report import html

        return html.comparison_text(comparison)
    from runner.report import terminal

    return terminal.text(comparison, width=width, colour=colour)
