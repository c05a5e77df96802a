"""The command line: options in, text and exit codes out."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import clocks, console, nightly, results
from runner.cli.results import MatrixFile, Output, Traceback
from runner.core.errors import Problem, UsageError
from runner.workflows.options import check_format, planning

if TYPE_CHECKING:
    from runner.workflows.context import Context
    from runner.workflows.options import Options
    from runner.workflows.run import Prepared

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Is this release of a framework faster or slower than that one, on this device, for these networks?",
)
app.add_typer(nightly.app)  # without a name: its commands are this one's
app.add_typer(results.app)
app.add_typer(clocks.app)


def main() -> None:
    """Run the command line and exit."""
    console.end(app)


def _prepare(options: "Options", say: Callable[[str], None]) -> tuple["Context", "Prepared"]:
    """Return what the options mean, and the plan they make; ``say`` is told what the user should know first."""
    from runner.workflows.context import prepared

    return prepared(options, say)


@app.command()
@planning
def plan(
    options: "Options",
    machine: Annotated[
        Path | None, typer.Option("--machine", help="another machine, by what `runner doctor --format json` said there")
    ] = None,
    format: Annotated[str, typer.Option(help="table, json or coverage")] = "table",
    output: Output = None,
) -> int:
    """Show every cell with its verdict, and why it is not run; nothing is fetched or made."""
    from runner.plan.document import plan_json
    from runner.report.coverage import coverage
    from runner.report.plan import plan_table

    shown = {"table": plan_table, "json": lambda it: console.json_text(plan_json(it)), "coverage": coverage}
    check_format(format, tuple(shown))
    if machine is None:
        found = _prepare(options, console.note)[1].plan
    else:
        from runner.plan.machine_file import describe
        from runner.workflows.plan_elsewhere import planned

        found = planned(options, describe(machine), console.note)
    console.emit(shown[format](found), output)
    return 0


@app.command()
def doctor(
    environments: Annotated[list[str] | None, typer.Argument(help="which environments; all by default")] = None,
    matrix: MatrixFile = Path("matrix.yaml"),
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:0,1, cuda:all or a UUID")] = None,
    format: Annotated[str, typer.Option(help="table or json")] = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Say what this machine can do, and the fix for each thing it cannot; nothing is fetched or made."""
    from runner.workflows.doctor import examine
    from runner.workflows.options import Options

    check_format(format, ("table", "json"))
    found = examine(Options(selectors=environments, matrix=matrix, device=device))
    console.emit(console.json_text(found.json()) if format == "json" else found.text(), output)
    return 0 if found.ready else 1


@app.command()
def tune(
    format: Annotated[str, typer.Option(help="table or json")] = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Show what makes this machine noisy, and the command that changes each; nothing is changed."""
    from runner.workflows.doctor.tune import examine

    check_format(format, ("table", "json"))
    found = examine()
    console.emit(console.json_text(found.json()) if format == "json" else found.text(), output)
    return 0


@app.command()
@planning
def build(options: "Options") -> int:
    """Make the environments ready, and measure nothing."""
    from runner.workflows import run
    from runner.workflows.context import at_work

    with console.progress() as progress, at_work():
        found, prepared = _prepare(options, progress.note)
        _, failed = run.build(prepared, found.backend, progress)
    return 1 if failed else 0


@app.command()
@planning
def run(
    options: "Options",
    resume: Annotated[
        bool, typer.Option("--resume", help="go on with a run: SELECTORS, or the newest unfinished one not at work")
    ] = False,
) -> int:
    """Make the environments, measure the cells, keep the records and write the report."""
    from runner.workflows import run
    from runner.workflows.context import at_work
    from runner.workflows.results import write_report

    with console.progress() as progress, at_work(), contextlib.ExitStack() as stack:
        if resume:
            from runner.workflows.run.resume import resumed

            found, prepared, again = stack.enter_context(resumed(options, progress.note))
        else:
            (found, prepared), again = _prepare(options, progress.note), None
        totals = run.run(prepared, found.backend, found.place, progress, found.gpus, again)
        progress.note("writing the report")
        page = write_report(totals.run, found.matrix.measure.margin) if totals.good else totals.run.path
    console.note(f"{totals.good} cells measured, {len(totals.bad)} failed")
    console.emit(str(page), None)
    return 1 if totals.bad or not totals.good else 0


@app.command()
def clean(
    matrix: MatrixFile = Path("matrix.yaml"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list it")] = False,
    all: Annotated[bool, typer.Option("--all", help="also what the matrix still needs")] = False,
    traceback: Traceback = False,
) -> int:
    """Remove what was left behind: of dead runners, of environments the matrix has no more, of older code."""
    from runner.core.paths import cache_folder
    from runner.workflows import clean

    with clean.leftovers(matrix, cache_folder(os.environ), everything=all) as found:
        console.emit(clean.listing(found), None)
        stay = () if dry_run else clean.remove(found.leftovers)
    for line in (*found.notes, *(f"{left.name} stays: {reason}" for left, reason in stay)):
        console.note(line)
    console.emit(clean.summary(found, stay, dry=dry_run), None)
    return 1 if stay else 0


@app.command()
def lock(
    environments: Annotated[list[str] | None, typer.Argument(help="which environments")] = None,
    matrix: MatrixFile = Path("matrix.yaml"),
    find_links: Annotated[str | None, typer.Option("--find-links", help="a folder of wheels to look in first")] = None,
    images: Annotated[bool, typer.Option("--images", help="pin all images by what their registries say now")] = False,
    traceback: Traceback = False,
) -> int:
    """Resolve what environments require and write their locks, with a hash for every file; or pin the images."""
    if not environments and not images:
        raise UsageError(Problem("there is nothing to lock", hint="name environments, or pin all images with --images"))
    if environments:
        from runner.workflows.lock import lock_environments

        for path, changed in lock_environments(matrix, environments, find_links):
            console.note(f"{path}: {'written' if changed else 'as it was'}")
    if images:
        from runner.workflows.pins import renew

        for line in renew(matrix):
            console.note(line)
    return 0


@app.command()
def schema(
    check: Annotated[Path | None, typer.Option("--check", help="check a matrix file instead of printing")] = None,
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Print the JSON Schema of the matrix file, for editors."""
    from runner.matrix import load
    from runner.matrix import schema as made

    if check:
        load(check)
    else:
        console.emit(console.json_text(made()), output)
    return 0
