"""The commands about stored results: compare, check, report, accuracy, export, import. They need no GPU, no engine."""

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from runner.cli import completion, console
from runner.cli.commands import CommandGroup, require_table
from runner.cli.params import FailOn, HistoryUrl, MatrixFile, Output, Reports, RunName, TableOrJson, Traceback
from runner.core.paths import DEFAULT_MATRIX
from runner.session.options import SELECTOR

if TYPE_CHECKING:
    from runner.analysis.comparison_model import Comparison
    from runner.analysis.gate import GateResult
    from runner.store.run import Run

app = CommandGroup()

Format = Annotated[
    Literal["table", "md", "json", "csv", "html"], typer.Option("--format", help="how to print the comparison")
]


@app.command(short_help="Compare releases: faster, slower, same, or can't tell")
def compare(
    environments: Annotated[
        list[str],
        typer.Argument(
            metavar="BASE OTHER...",
            help="the base first; torch-2.x@RUN is of a certain run, published:braun2018/torch-0.4 a publication",
            autocompletion=completion.environments,
        ),
    ],
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    best: Annotated[bool, typer.Option("--best", help="compare the fastest API of each side")] = False,
    run: Annotated[
        str | None, typer.Option("--run", help="compare in this run; by default the newest that has both sides")
    ] = None,
    format: Format = "table",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="write to this file instead of stdout; .svg and .png get a chart"),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="show memory, import, size, ... instead of time and what else changed; or all"),
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="add to the table why a verdict is open, the warnings, and all that differs")
    ] = False,
    fail_on: FailOn = None,
    issue: Annotated[
        bool, typer.Option("--issue", help="write the text of an issue about it, for the project of the framework")
    ] = False,
    traceback: Traceback = False,
) -> int:
    """Compare environments by their stored results: faster, slower, same, or can't tell."""
    from runner.analysis.gate import gate, parse_conditions
    from runner.core.errors import Problem, UsageError
    from runner.core.metrics import parse_metrics
    from runner.report import gate_text
    from runner.session.results import comparison

    if why:
        require_table("--why", "an issue" if issue else format, output)
    conditions, metrics = parse_conditions(fail_on or ()), parse_metrics(metric or ())
    if issue and format not in ("table", "md"):  # the suffix of a file chooses md
        raise UsageError(Problem("--issue writes Markdown, and takes no --format", hint="leave out one of them"))
    if issue:
        from runner.session.issue import issue_text

        compared, text = issue_text(matrix, reports, environments, best=best, run=run)
        console.emit(text, output, is_document=True)
    else:
        compared = comparison(matrix, reports, environments, best=best, run=run)
    result = gate([compared], conditions) if conditions else None
    if not issue:
        _print_comparison(compared, format, output, result, metrics, why=why)
    if result is not None:
        gate_text.require(result, compared.releases)
    return 0


def _print_comparison(
    compared: "Comparison",
    format: Format,
    output: Path | None,
    gate: "GateResult | None",
    metrics: Collection[str],
    *,
    why: bool,
) -> None:
    """Print a comparison, or write it to a file, of which some endings get a chart."""
    from runner.report import render

    if output is not None:
        from runner.report import chart_file

        if output.suffix in chart_file.SUFFIXES:
            console.save(chart_file.content([compared], output.suffix, compared.releases), output)
            return
    colour = output is None and console.colour()
    if why:
        from runner.report import terminal

        text = terminal.text(compared, width=console.width(), colour=colour, metrics=metrics, why=True)
    else:
        text = render(compared, format, width=console.width(), colour=colour, gate=gate, metrics=metrics)
    console.emit(text, output, is_document=format != "table")


@app.command(short_help="Show the issues of a run and the command to run next")
def check(
    run: RunName = None,
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    format: TableOrJson = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Show the warnings of a run, its open comparisons, and the command to run next."""
    from runner.session.check import check as check_run

    checked = check_run(reports, run, matrix)
    console.show(checked, format, output)
    return 1 if checked.serious else 0


@app.command(short_help="Write the report of a run, or a site over the history")
def report(
    run: RunName = None,
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    published: Annotated[
        str | None, typer.Option("--published", help="add the published figures of braun2018, glample2016, ...")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="print the answer as Markdown instead, for the page of a CI job")
    ] = False,
    site: Annotated[
        Path | None, typer.Option("--site", help="write a static site over the history into this folder instead")
    ] = None,
    history: HistoryUrl = None,
    traceback: Traceback = False,
) -> int:
    """Write the report of a run (index.html, report.md, samples.csv) and print its path."""
    from runner.analysis.analyse import analyse_run
    from runner.core.errors import UsageError
    from runner.session.last_run import last_run
    from runner.session.remember import history_url
    from runner.session.results import find_run, matrix_margin, write_report

    if site is not None:
        from runner.watch.site import write_site

        console.emit_path(write_site(reports, site, matrix_margin(matrix), console.note, history))
        return 0
    stored = find_run(reports, run)
    analysis = analyse_run(stored, matrix_margin(matrix))
    if summary:
        from runner.session.results import report_summary

        console.emit(report_summary(analysis), None)
        return 0
    try:
        last = last_run(analysis, stored, history_url(reports, history))
    except UsageError:
        if history is not None:
            raise
        last = None  # the variable names no history, and a page needs none
    console.emit_path(write_report(analysis, stored, published, last))
    return 0


@app.command("open", short_help="Open the report of a run in the browser")
def open_page(
    run: RunName = None,
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    traceback: Traceback = False,
) -> int:
    """Open the report of a run in the browser, and print its path."""
    import webbrowser

    from runner.analysis.analyse import analyse_run
    from runner.session.results import find_run, matrix_margin, write_report

    stored = find_run(reports, run)
    page = stored.path / "index.html"
    page = page if page.exists() else write_report(analyse_run(stored, matrix_margin(matrix)), stored)
    if not webbrowser.open(page.resolve().as_uri()):
        console.note("no browser was found: open this file in one")
    console.emit_path(page)
    return 0


@app.command("list", short_help="List runs, environments, cases, tests or presets")
def list_what_there_is(
    topic: Annotated[
        Literal["runs", "environments", "cases", "tests", "presets", "cells"],
        typer.Argument(help="what to list"),
    ] = "runs",
    selectors: Annotated[
        list[str] | None,
        typer.Argument(help=f"of tests: {SELECTOR}", autocompletion=completion.environments),
    ] = None,
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    traceback: Traceback = False,
) -> int:
    """List the stored runs, or the environments, cases, tests or presets of the matrix file, one per line.

    Tests that cannot run on this machine are listed, too.
    """
    from runner.core.errors import Problem, UsageError
    from runner.report.rich_text import columns
    from runner.session.listing import listing

    if topic == "tests" or topic == "cells":  # noqa: PLR1714  mypy narrows it so
        from runner.session.listed_cells import cell_ids

        console.emit("\n".join(cell_ids(matrix, selectors or ())), None)
        return 0
    if selectors:
        hint = f"`{shlex.join(['runner', 'list', 'tests', *selectors])}`"
        raise UsageError(Problem(f"selectors choose tests, and {topic} are listed as a whole", hint=hint))
    entries = list(listing(topic, matrix, reports))
    if topic == "environments":
        from runner.releases.outdated import outdated_notes_of_file

        for note in outdated_notes_of_file(matrix, [name for name, *_ in entries], "cpu", reports):
            console.note(note)
    if not entries:
        console.note(f"there are no {topic}")
        return 0
    console.emit(columns(entries, console.width()), None)
    return 0


@app.command(short_help="Show errors against the float64 reference")
def accuracy(run: RunName = None, reports: Reports = Path("reports"), traceback: Traceback = False) -> int:
    """Print the largest error against the float64 reference, and whether it is within the tolerance."""
    from runner.report.accuracy import text
    from runner.session.results import find_run, run_accuracy

    rows = run_accuracy(find_run(reports, run))
    console.emit(text(rows, console.width(), colour=console.colour()), None)
    return 1 if any(row.failed for row in rows) else 0


@app.command(short_help="Write every sample of a run as one table, or its times for a dashboard")
def export(
    output: Annotated[Path, typer.Option("--output", "-o", help="a .parquet or .csv file; for a dashboard, any file")],
    run: RunName = None,
    format: Annotated[
        Literal["samples", "pytorch-benchmark", "bencher", "github-action-benchmark"],
        typer.Option("--format", help="samples is a table; the others are the JSON that these dashboards read"),
    ] = "samples",
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    traceback: Traceback = False,
) -> int:
    """Write every sample of a run as one tidy table, or the time of each cell as JSON for a dashboard."""
    from runner.session.results import find_run, matrix_margin

    stored = find_run(reports, run)
    if format == "samples":
        return _export_samples(stored, output)
    from runner.analysis.analyse import analyse_run
    from runner.session.benchmark_formats import benchmark_json

    console.emit(benchmark_json(analyse_run(stored, matrix_margin(matrix)), stored, format), output)
    console.note(f"wrote {output}")
    return 0


def _export_samples(run: "Run", output: Path) -> int:
    from runner.analysis import dataset
    from runner.core.errors import UsageError, file_problem
    from runner.report.formatting import counted

    try:
        rows = dataset.export(run, output)
    except OSError as error:
        raise UsageError(file_problem(error, output)) from error
    console.note(f"wrote {output}: {counted(rows, 'sample')}")
    return 0


@app.command("import", short_help="Import runs of other machines, and tables of figures")
def import_results(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="run folders, .tar.gz files of them, or tables of figures as CSV or JSON; published:braun2018 is a "
            "publication",
        ),
    ],
    format: Annotated[
        Literal["auto", "runs", "table"],
        typer.Option("--format", help="the format of the files; auto looks at them"),
    ] = "auto",
    release: Annotated[str, typer.Option("--release", help="what was measured, where the files do not say it")] = "",
    history: HistoryUrl = None,
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    traceback: Traceback = False,
) -> int:
    """Add results of other machines and programs to the history, each as a series of its own."""
    from runner.core.errors import RecordError
    from runner.session.results import matrix_margin
    from runner.watch.imports import import_files

    imported = import_files(paths, reports, matrix_margin(matrix), format=format, release=release, history=history)
    if imported.runs:
        console.emit(imported.text(), None)
    if imported.failures:
        raise RecordError(*imported.failures)
    return 0
