"""The command line: options in, text and exit codes out. Nothing else in this program prints or exits."""

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.errors import InterruptedRunError, Problem, RunnerError, UsageError

if TYPE_CHECKING:
    from runner.progress import Progress
    from runner.setup import Options

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Is this release of a framework faster or slower than that one, on this device, for these networks?",
)

Selectors = Annotated[list[str] | None, typer.Argument(help="ids, globs, ranges (torch>=1.0), framework:tf, cell globs")]
MatrixFile = Annotated[Path, typer.Option("--matrix", help="the matrix file")]
Reports = Annotated[Path, typer.Option("--reports", help="where runs are kept")]
Workload = Annotated[list[str] | None, typer.Option("--workload", help="only this workload; may be given again")]
Preset = Annotated[str | None, typer.Option("--preset", help="a preset of the matrix")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1 or a GPU's UUID")]
Backend = Annotated[str, typer.Option("--backend", help="auto, docker, venv or host")]
Python = Annotated[str | None, typer.Option("--python", help="the interpreter that --backend host measures")]
Name = Annotated[str, typer.Option("--name", help="what --backend host calls its environment")]
Rounds = Annotated[int | None, typer.Option("--rounds", min=1, help="fresh processes for each cell")]
Seconds = Annotated[float | None, typer.Option("--seconds", min=0.01, help="measured seconds a cell and round")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads; all physical cores by default")]
Seed = Annotated[int | None, typer.Option("--seed", help="orders the cells; drawn and recorded by default")]
Format = Annotated[str, typer.Option("--format", help="table, md, json, csv or html")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="write to a file instead")]
Traceback = Annotated[bool, typer.Option("--traceback", help="show where an error came from")]


def main() -> None:
    """Run the command line and exit."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        code = app(standalone_mode=False) or 0
    except (RunnerError, KeyboardInterrupt) as error:
        known = error if isinstance(error, RunnerError) else InterruptedRunError("interrupted")
        if "--traceback" in sys.argv:
            import traceback

            traceback.print_exc()
        print(known, file=sys.stderr)
        code = known.exit_code
    except typer.Abort:
        code = 130
    except Exception as error:
        code = _unexpected(error)
    sys.stdout.flush()
    sys.exit(code)


def _unexpected(error: Exception) -> int:
    """Say what a mistyped option or a bug deserves; return the exit code."""
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # a usage error of the option parser
        print(f"error: {error.format_message()}\nhint: runner --help", file=sys.stderr)
        return 2
    import traceback

    traceback.print_exc()
    print("this is a bug in runner: please report it with the lines above", file=sys.stderr)
    return 70


def _interrupt(_number: int, _frame: object) -> None:
    """Unwind once, so that every ``finally`` runs; further signals wait until that is done."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


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


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, allow_nan=False)


@app.command()
def plan(
    selectors: Selectors = None,
    matrix: MatrixFile = Path("matrix.yaml"),
    workload: Workload = None,
    preset: Preset = None,
    device: Device = None,
    backend: Backend = "auto",
    python: Python = None,
    name: Name = "host",
    rounds: Rounds = None,
    seconds: Seconds = None,
    threads: Threads = None,
    format: Format = "table",  # noqa: A002
    output: Output = None,
    traceback: Traceback = False,
) -> None:
    """Show every cell with its verdict, and why it is not run; nothing is fetched."""
    from runner.pipeline import prepare
    from runner.plan_json import plan_json
    from runner.setup import Options, setup

    options = Options(
        selectors=selectors or (),
        matrix=matrix,
        workloads=workload or (),
        preset=preset,
        device=device,
        backend=backend,
        python=python,
        name=name,
        rounds=rounds,
        seconds=seconds,
        threads=threads,
    )
    found = setup(options)
    prepared = prepare(found.matrix, found.request, found.backend, found.place, found.gpu)
    if format == "json":
        _emit(_json(plan_json(prepared.plan)), output)
        return
    _emit("\n".join(f"{p.verdict:5} {p.cell.id}  {p.skip.code + ': ' + p.skip.reason if p.skip else ''}" for p in prepared.plan.cells), output)


@app.command()
def run(
    selectors: Selectors = None,
    matrix: MatrixFile = Path("matrix.yaml"),
    reports: Reports = Path("reports"),
    workload: Workload = None,
    preset: Preset = None,
    device: Device = None,
    backend: Backend = "auto",
    python: Python = None,
    name: Name = "host",
    rounds: Rounds = None,
    seconds: Seconds = None,
    threads: Threads = None,
    seed: Seed = None,
    traceback: Traceback = False,
) -> int:
    """Make the environments, measure the cells, keep the records and write the report."""
    from runner.pipeline import prepare
    from runner.pipeline import run as run_pipeline
    from runner.setup import Options, setup

    options = Options(
        selectors=selectors or (),
        matrix=matrix,
        reports=reports,
        workloads=workload or (),
        preset=preset,
        device=device,
        backend=backend,
        python=python,
        name=name,
        rounds=rounds,
        seconds=seconds,
        threads=threads,
        seed=seed,
    )
    found = setup(options)
    with _progress() as progress:
        if found.note:
            progress.note(found.note)
        prepared = prepare(found.matrix, found.request, found.backend, found.place, found.gpu)
        totals = run_pipeline(prepared, found.backend, found.place, progress, found.gpu)
    _note(f"{totals.good} cells measured, {len(totals.bad)} failed: {totals.run.path}")
    return 1 if totals.bad else 0
