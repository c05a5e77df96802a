"""The command line: options in, text and exit codes out. Nothing else in this program prints or exits."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner import interrupts
from runner.errors import Problem, RunnerError, UsageError
from runner.options import planning

if TYPE_CHECKING:
    from runner.options import Options
    from runner.pipeline import Prepared
    from runner.progress import Progress
    from runner.setup import Setup

INTERRUPTED = 130  # 128 + SIGINT

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Is this release of a framework faster or slower than that one, on this device, for these networks?",
)

MatrixFile = Annotated[Path, typer.Option("--matrix", help="the matrix file")]
Reports = Annotated[Path, typer.Option("--reports", help="where runs are kept")]
Format = Annotated[str, typer.Option("--format", help="table, md, json, csv or html")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="write to this file instead")]
RunName = Annotated[str | None, typer.Argument(metavar="[RUN]", help="a run's id or folder; the newest by default")]
Traceback = Annotated[bool, typer.Option("--traceback", help="show where an error came from")]


def main() -> None:
    """Run the command line and exit."""
    try:
        interrupts.listen()
        code = _run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    interrupts.ignore()
    if code == INTERRUPTED:
        print("interrupted; what was finished is kept", file=sys.stderr)
    sys.stdout.flush()
    sys.exit(code)


def _run() -> int:
    """Run the command line; return the exit code."""
    try:
        return app(standalone_mode=False) or 0  # typer makes 130 of a KeyboardInterrupt
    except typer.Abort:
        return INTERRUPTED
    except RunnerError as error:
        if "--traceback" in sys.argv:
            import traceback

            traceback.print_exc()
        print(error, file=sys.stderr)
        return error.exit_code
    except SystemExit as error:  # typer takes any broken pipe for its own stdout's
        return _unexpected(error) if isinstance(error.__context__, BrokenPipeError) else int(error.code or 0)
    except Exception as error:  # noqa: BLE001  the one place where what nobody expected ends
        return _unexpected(error)


def _unexpected(error: BaseException) -> int:
    """Say what a mistyped option or a bug deserves; return the exit code."""
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # a usage error of the option parser
        print(f"error: {error.format_message()}\nhint: runner --help", file=sys.stderr)
        return 2
    import traceback

    traceback.print_exc()
    print("this is a bug in runner: please report it with the lines above", file=sys.stderr)
    return 70


def _emit(text: str, output: Path | None) -> None:
    """Print a result, or write it to a file whole."""
    if output is None:
        print(text.rstrip("\n"))
        return
    from runner.files import write_whole

    write_whole(output, text.rstrip("\n") + "\n")


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _progress() -> "Progress":
    from runner.progress import LiveProgress, Progress

    if not sys.stderr.isatty():
        return Progress(_note)
    from rich.console import Console

    return LiveProgress(Console(stderr=True))


def _check_format(wanted: str, known: tuple[str, ...]) -> None:
    if wanted not in known:
        raise UsageError(Problem(f"there is no format {wanted!r}", hint=f"there are {', '.join(known)}"))


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=1, allow_nan=False)


def _prepare(options: "Options", say: Callable[[str], None]) -> tuple["Setup", "Prepared"]:
    """Return what the options mean, and the plan they make; ``say`` is told what the user should know first."""
    from runner.pipeline import prepare
    from runner.setup import setup

    found = setup(options)
    if found.note:
        say(found.note)
    return found, prepare(found.matrix, found.request, found.backend, found.place, found.gpu)


@app.command()
@planning
def plan(
    options: "Options", format: Annotated[str, typer.Option(help="table or json")] = "table", output: Output = None
) -> int:
    """Show every cell with its verdict, and why it is not run; nothing is fetched or made."""
    from runner.plan_json import plan_json
    from runner.present import plan_table

    _check_format(format, ("table", "json"))
    _, prepared = _prepare(options, _note)
    _emit(_json(plan_json(prepared.plan)) if format == "json" else plan_table(prepared.plan), output)
    return 0


@app.command()
@planning
def build(options: "Options") -> int:
    """Make the environments ready, and measure nothing."""
    from runner import pipeline

    with _progress() as progress:
        found, prepared = _prepare(options, progress.note)
        _, failed = pipeline.build(prepared, found.backend, progress)
    return 1 if failed else 0


@app.command()
@planning
def run(options: "Options") -> int:
    """Make the environments, measure the cells, keep the records and write the report."""
    from runner import pipeline
    from runner.afterwards import write_report

    with _progress() as progress:
        found, prepared = _prepare(options, progress.note)
        totals = pipeline.run(prepared, found.backend, found.place, progress, found.gpu)
        progress.note("writing the report")
        page = write_report(totals.run, found.matrix.measure.margin) if totals.good else totals.run.path
    _note(f"{totals.good} cells measured, {len(totals.bad)} failed")
    _emit(str(page), None)
    return 1 if totals.bad or not totals.good else 0


@app.command()
def compare(
    environments: Annotated[list[str], typer.Argument(metavar="BASE OTHER...", help="environments; the base first")],
    matrix: MatrixFile = Path("matrix.yaml"),
    reports: Reports = Path("reports"),
    best: Annotated[bool, typer.Option("--best", help="the fastest implementation of each side")] = False,
    format: Format = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Compare environments from stored results: faster, slower, same, or not known yet, and why."""
    import shutil

    from runner.afterwards import comparison
    from runner.report import FORMS, render

    _check_format(format, FORMS)
    found = comparison(matrix, reports, environments, best=best)
    colour = output is None and sys.stdout.isatty()
    _emit(render(found, format, width=shutil.get_terminal_size((120, 24)).columns, colour=colour), output)
    return 0


@app.command()
def report(
    run: RunName = None,
    matrix: MatrixFile = Path("matrix.yaml"),
    reports: Reports = Path("reports"),
    traceback: Traceback = False,
) -> int:
    """Write the report of a run, index.html, report.md and samples.csv, and name it."""
    from runner.afterwards import find_run, margin, write_report

    _emit(str(write_report(find_run(reports, run), margin(matrix))), None)
    return 0


@app.command()
def accuracy(run: RunName = None, reports: Reports = Path("reports"), traceback: Traceback = False) -> int:
    """Print the largest error against the float64 reference, by environment and implementation."""
    from runner.afterwards import accuracy_text, find_run

    _emit(accuracy_text(find_run(reports, run)), None)
    return 0


@app.command()
def export(
    output: Annotated[Path, typer.Option("--output", "-o", help="a .parquet or .csv file")],
    run: RunName = None,
    reports: Reports = Path("reports"),
    traceback: Traceback = False,
) -> int:
    """Write every sample of a run as one tidy table."""
    from runner import merge
    from runner.afterwards import find_run

    merge.export(find_run(reports, run), output)
    return 0


@app.command()
def lock(
    environments: Annotated[list[str], typer.Argument(help="which environments")],
    matrix: MatrixFile = Path("matrix.yaml"),
    find_links: Annotated[str | None, typer.Option("--find-links", help="a folder of wheels to look in first")] = None,
    traceback: Traceback = False,
) -> int:
    """Resolve what environments require and write their locks, with a hash for every file."""
    from runner.lock import lock_environments

    for path, changed in lock_environments(matrix, environments, find_links):
        _note(f"{path}: {'written' if changed else 'as it was'}")
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
        _emit(_json(made()), output)
    return 0
