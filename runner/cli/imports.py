"""The command that imports runs of other machines, and figures of other programs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from runner.cli import console
from runner.cli.params import HistoryUrl, MatrixFile, Reports, Traceback

app = typer.Typer()


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
    matrix: MatrixFile = Path("matrix.yaml"),
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
