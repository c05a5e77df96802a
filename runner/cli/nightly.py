"""The commands of a night: measure it, and have it measured every night."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import console
from runner.cli.results import Output, Traceback
from runner.core.errors import Problem, UsageError
from runner.workflows.options import check_format, planning

if TYPE_CHECKING:
    from runner.workflows.options import Options

app = typer.Typer()


@app.command()
@planning
def nightly(
    options: "Options",
    format: Annotated[str, typer.Option(help="table or json")] = "table",
    output: Output = None,
) -> int:
    """Measure, compare with the last good run, measure again in turns what looks changed; 8 h unless --budget."""
    from runner.workflows.context import at_work
    from runner.workflows.nightly import nightly as measured

    check_format(format, ("table", "json"))
    with console.progress() as progress, at_work():
        found = measured(options, progress)
    console.emit(console.json_text(found.json()) if format == "json" else found.text(), output)
    return found.exit_code


@app.command()
def schedule(
    night: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTION...]", help="what `runner nightly` is given")
    ] = None,
    at: Annotated[str, typer.Option("--at", help="when, by this machine's clock")] = "02:30",
    format: Annotated[str, typer.Option(help="systemd or cron")] = "systemd",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="write systemd's units into this folder instead")
    ] = None,
    traceback: Traceback = False,
) -> int:
    """Print a systemd service and timer, or a crontab line, that runs `runner nightly` here; nothing is installed."""
    from runner.workflows.nightly.schedule import FORMATS, Job, advice, clock, made

    check_format(format, FORMATS)
    if output and format == "cron":
        raise UsageError(Problem("a crontab line goes into no folder", hint="leave out --output"))
    words = tuple(night or ())
    _nightly_takes(words)
    job = Job(python=sys.executable, folder=Path.cwd(), words=words, at=clock(at), environ=os.environ)
    files = made(job, format)
    if output is None:
        console.emit("\n".join(files.values()), None)
    else:
        output.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            console.emit(content, output / name)
    console.note(advice(job, format, output))
    return 0


def _nightly_takes(words: tuple[str, ...]) -> None:
    """Refuse now what `runner nightly` would refuse at night: an option it has not, a matrix that is not valid."""
    from typer.main import get_command

    from runner.matrix import load

    command = vars(get_command(app))["commands"]["nightly"]
    load(Path(command.make_context("runner nightly", list(words)).params["matrix"]))
