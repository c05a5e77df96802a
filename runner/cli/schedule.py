"""The command that has `runner nightly` run every night: schedule."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from runner.cli import console, measure
from runner.cli.commands import CommandGroup
from runner.cli.params import Traceback
from runner.core.errors import Problem, UsageError, file_problem

app = CommandGroup()


@app.command(short_help="Print a timer, crontab lines or a CI workflow for `runner nightly`")
def schedule(
    nightly_options: Annotated[
        list[str] | None, typer.Argument(metavar="-- OPTION...", help="the options of `runner nightly`")
    ] = None,
    at: Annotated[
        str, typer.Option("--at", help="the time of day, by this machine's clock; by UTC for github and gitlab")
    ] = "02:30",
    format: Annotated[
        Literal["systemd", "cron", "github", "gitlab"], typer.Option("--format", help="what to print")
    ] = "systemd",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="write the files below this folder instead; not for cron")
    ] = None,
    traceback: Traceback = False,
) -> int:
    """Print a systemd timer, crontab lines or a CI workflow that runs `runner nightly` here; nothing is installed."""
    from runner.watch import alerts
    from runner.watch.schedule import ScheduledNight, advice, clock, files

    if output and format == "cron":
        raise UsageError(Problem("a crontab line cannot be written into a folder", hint="leave out --output"))
    words = tuple(nightly_options or ())
    _check_nightly_options(words)
    alerts.targets_of_night(dict(os.environ), console.note)  # notes what the night would note
    night = ScheduledNight(python=sys.executable, folder=Path.cwd(), words=words, at=clock(at), environ=os.environ)
    units = files(night, format)
    if output is None:
        console.emit("\n".join(units.values()), None, is_document=True)
    else:
        for name, content in units.items():
            path = output / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(file_problem(error, path.parent)) from error
            console.emit(content, path)
    console.note(advice(night, format, output))
    return 0


def _check_nightly_options(words: tuple[str, ...]) -> None:
    """Refuse now what `runner nightly` would refuse at night: an unknown option or preset, a matrix that is not valid.

    A history with a password is refused, too, for the files would hold it.
    """
    from typer.main import get_command

    from runner.core.paths import find_matrix
    from runner.core.units import parse_duration
    from runner.history.location import database_url
    from runner.matrix import load

    command = vars(get_command(measure.app))["commands"]["nightly"]
    params = command.make_context("runner nightly", list(words)).params
    file = find_matrix(Path(params["matrix"]))
    matrix = load(file)
    database_url(Path(params["reports"]), params["history"], {})
    if params["budget"]:
        parse_duration(params["budget"])
    if params["preset"] and params["preset"] not in matrix.presets:
        hint = f"presets are {', '.join(matrix.presets)}"
        raise UsageError(Problem(f"there is no preset {params['preset']!r} in {file}", hint=hint))
