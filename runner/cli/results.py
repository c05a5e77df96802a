"""The commands about stored runs: compare, check, report, accept, accuracy, export. They need no GPU and no engine."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from runner.cli import completion, console
from runner.cli.params import MatrixFile, Output, Reports, RunName, TableOrJson, Traceback

app = typer.Typer()

Format = Annotated[
    Literal["table", "md", "json", "csv", "html"], typer.Option("--format", help="how to print the comparison")
]


@app.command()
def compare(
    environments: Annotated[
        list[str],
        typer.Argument(
            metavar="BASE OTHER...",
            help="the base first; published figures are named as in published:braun2018/torch-0.4",
            autocompletion=completion.environments,
        ),
    ],
    matrix: MatrixFile = Path("matrix.yaml"),
    reports: Reports = Path("reports"),
    best: Annotated[bool, typer.Option("--best", help="compare the fastest implementation of each side")] = False,
    format: Format = "table",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="write to this file instead of stdout; .svg and .png get a chart"),
    ] = None,
    traceback: Traceback = False,
) -> int:
    """Compare environments by their stored results: faster, slower, same or inconclusive, and why."""
    from runner.report import chart_file, render
    from runner.workflows.results import comparison

    compared = comparison(matrix, reports, environments, best=best)
    if output is not None and output.suffix in chart_file.SUFFIXES:
        console.save(chart_file.content([compared], output.suffix, compared.releases), output)
        return 0
    colour = output is None and console.colour()
    console.emit(render(compared, format, width=console.width(), colour=colour), output)
    return 0


@app.command()
def check(
    run: RunName = None,
    matrix: MatrixFile = Path("matrix.yaml"),
    reports: Reports = Path("reports"),
    format: TableOrJson = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Show the quality issues of a run, its open comparisons, and the command to run next."""
    from runner.workflows.check import check as check_run

    checked = check_run(reports, run, matrix)
    console.show(checked, format, output)
    return 1 if checked.serious else 0


@app.command()
def report(
    run: RunName = None,
    matrix: MatrixFile = Path("matrix.yaml"),
    reports: Reports = Path("reports"),
    published: Annotated[
        str | None, typer.Option("--published", help="add the published figures of braun2018, glample2016, ...")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="print the answer as Markdown instead, for the page of a CI job")
    ] = False,
    site: Annotated[
        Path | None, typer.Option("--site", help="write a static site over all runs into this folder instead")
    ] = None,
    traceback: Traceback = False,
) -> int:
    """Write the report of a run (index.html, report.md, samples.csv) and print its path."""
    from runner.workflows.results import find_run, matrix_margin, write_report

    if site is not None:
        from runner.workflows.site import write_site

        console.emit(str(write_site(reports, site, matrix_margin(matrix), console.note)), None)
        return 0
    if summary:
        from runner.workflows.results import report_summary

        console.emit(report_summary(find_run(reports, run), matrix_margin(matrix)), None)
        return 0
    console.emit(str(write_report(find_run(reports, run), matrix_margin(matrix), published)), None)
    return 0


@app.command()
def accept(
    cells: Annotated[
        list[str],
        typer.Argument(metavar="CELLS...", help="ids of environments, or globs over cell ids: 'torch-2.x/*/train/*'"),
    ],
    run: Annotated[str | None, typer.Option("--run", help="a run's id; the newest by default")] = None,
    reports: Reports = Path("reports"),
    traceback: Traceback = False,
) -> int:
    """Accept the times of cells in a run: later nights compare with it, and report no regression against older runs."""
    from runner.workflows.nightly.accept import accept as accept_cells

    accepted_run, accepted = accept_cells(reports, cells, run)
    console.emit("\n".join(accepted), None)
    console.note(f"{len(accepted)} cells: run {accepted_run} is the baseline and the anchor of later nights")
    return 0


@app.command()
def accuracy(run: RunName = None, reports: Reports = Path("reports"), traceback: Traceback = False) -> int:
    """Print the largest error against the float64 reference, by environment and implementation."""
    from runner.workflows.results import accuracy_text, find_run

    console.emit(accuracy_text(find_run(reports, run)), None)
    return 0


@app.command()
def export(
    output: Annotated[Path, typer.Option("--output", "-o", help="a .parquet or .csv file")],
    run: RunName = None,
    reports: Reports = Path("reports"),
    traceback: Traceback = False,
) -> int:
    """Write every sample of a run as one tidy table."""
    from runner.analysis import dataset
    from runner.workflows.results import find_run

    dataset.export(find_run(reports, run), output)
    return 0
