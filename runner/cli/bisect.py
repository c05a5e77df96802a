"""The commands that ask a question about the past: bisect and reproduce."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import completion, console
from runner.cli.commands import CommandGroup
from runner.cli.params import Device, MatrixFile, Output, Reports, TableOrJson, Traceback, Trust
from runner.cli.search_params import DryRun, Keep, SearchedMetric, SearchedTest, searching
from runner.core.paths import DEFAULT_MATRIX

if TYPE_CHECKING:
    from runner.session.options import Options

app = CommandGroup()


@app.command(short_help="Search the release in which a test became slower or faster")
@searching
def bisect(
    options: "Options",
    cell: SearchedTest = "",
    good: Annotated[
        str,
        typer.Option(
            "--good",
            help="the first release: an environment, a release such as torch==1.4.0, or its version",
            autocompletion=completion.environments,
        ),
    ] = "",
    bad: Annotated[
        str | None,
        typer.Option(
            "--bad", help="the last release; by default the test's environment", autocompletion=completion.environments
        ),
    ] = None,
    axis: Annotated[
        str,
        typer.Option(
            "--axis",
            help="what varies: release, nightly, cuda, cudnn, or a package next to the framework, such as numba",
        ),
    ] = "release",
    metric: SearchedMetric = "time",
    every: Annotated[bool, typer.Option("--all", help="compare each release with the one before it")] = False,
    keep: Keep = False,
    rebuild_ends: Annotated[
        bool,
        typer.Option("--rebuild-ends", help="build both ends a second time, and measure by how much two builds differ"),
    ] = False,
    max_comparisons: Annotated[
        int | None,
        typer.Option(
            "--max-comparisons",
            min=1,
            help="stop after so many comparisons; by default after as many as --all takes",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    format: TableOrJson = "table",
    output: Output = None,
) -> int:
    """Search the release in which a CELL or a MODEL changed; the same command continues an interrupted search."""
    from runner.search import bisect as workflow
    from runner.session.context import cache_in_use

    options = replace(options, selectors=[cell])
    ends = workflow.Ends(
        good=good,
        bad=bad or "",
        axis=axis,
        metric=metric,
        every=every,
        keep=keep,
        rebuild_ends=rebuild_ends,
        max_comparisons=max_comparisons,
    )
    if dry_run:
        console.show(workflow.dry_run(options, ends), format, output)
        return 0
    with console.progress() as progress, cache_in_use(progress.note):
        result = workflow.bisect(options, ends, progress)
    console.show(result, format, output)
    return result.exit_code


@app.command(short_help="Measure a stored record again in the same environment")
def reproduce(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD",
            help="a record's file, a run, or RUN/CELL with a test or a glob over tests",
            autocompletion=completion.runs,
        ),
    ],
    against: Annotated[
        str,
        typer.Option(
            "--against",
            help="measure the stored environment alternately with this one",
            autocompletion=completion.environments,
        ),
    ] = "",
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    device: Device = None,
    busy_ok: Annotated[
        bool,
        typer.Option(
            "--busy-ok",
            help="measure at once and each round once, even while other programs keep the machine busy",
        ),
    ] = False,
    trust: Trust = False,
    format: TableOrJson = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Build the environment of a stored record again, measure its cells with the same settings, and compare."""
    from runner.search.reproduce import reproduce as measure_again
    from runner.session.context import cache_in_use
    from runner.session.options import Options

    options = Options(matrix=matrix, reports=reports, device=device, busy_ok=busy_ok)
    with console.progress() as progress, cache_in_use(progress.note):
        result = measure_again(options, record, progress, against, trust=trust)
    console.show(result, format, output)
    return result.exit_code
