"""The commands about what is stored; they need no device."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from runner.cli import console
from runner.workflows.options import check_format

app = typer.Typer()

MatrixFile = Annotated[Path, typer.Option("--matrix", help="the matrix file")]
Reports = Annotated[Path, typer.Option("--reports", help="where runs are kept")]
Format = Annotated[str, typer.Option("--format", help="table, md, json, csv or html")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="write to this file instead")]
RunName = Annotated[str | None, typer.Argument(metavar="[RUN]", help="a run's id or folder; the newest by default")]
Traceback = Annotated[bool, typer.Option("--traceback", help="show where an error came from")]


@app.command()
def compare(
    environments: Annotated[
        list[str], typer.Argument(metavar="BASE OTHER...", help="the base first; published:braun2018/torch-0.4 too")
    ],
    matrix: MatrixFile = Path("matrix.yaml"),
    reports: Reports = Path("reports"),
    best: Annotated[bool, typer.Option("--best", help="the fastest implementation of each side")] = False,
    format: Format = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Compare environments from stored results: faster, slower, same, or not known yet, and why."""
    import shutil

    from runner.report import FORMS, render
    from runner.workflows.results import comparison

    check_format(format, FORMS)
    found = comparison(matrix, reports, environments, best=best)
    colour = output is None and sys.stdout.isatty()
    console.emit(render(found, format, width=shutil.get_terminal_size((120, 24)).columns, colour=colour), output)
    return 0


@app.command()
def check(
    run: RunName = None,
    matrix: MatrixFile = Path("matrix.yaml"),
    reports: Reports = Path("reports"),
    format: Annotated[str, typer.Option(help="table or json")] = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Judge a run as a sceptical colleague would: what is doubtful, what is open, and the command to run next."""
    from runner.workflows.check import check

    check_format(format, ("table", "json"))
    found = check(reports, run, matrix)
    console.emit(console.json_text(found.json()) if format == "json" else found.text(), output)
    return 1 if found.serious else 0


@app.command()
def report(
    run: RunName = None,
    matrix: MatrixFile = Path("matrix.yaml"),
    reports: Reports = Path("reports"),
    published: Annotated[
        str | None, typer.Option("--published", help="beside the figures of braun2018, glample2016, ...")
    ] = None,
    traceback: Traceback = False,
) -> int:
    """Write the report of a run, index.html, report.md and samples.csv, and name it."""
    from runner.workflows.results import find_run, margin, write_report

    console.emit(str(write_report(find_run(reports, run), margin(matrix), published)), None)
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
