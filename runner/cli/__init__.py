"""The command line: options in, text and exit codes out.

Each module holds a group of commands: ``measure`` (plan, wrap, build, run, nightly), ``results`` (compare, check,
report, accuracy, export, import), ``history_commands`` (trends of stored runs), ``this_machine`` (doctor, tune,
clocks, clean), ``matrix_file`` (lock, schema), ``starting`` (new, init), ``alerts`` and ``schedule``. ``params``
declares the options that several commands have, ``commands`` refuses an option that is given twice, ``console`` prints
and sets the exit code, ``program`` finds the words that start the program in this shell, ``signals`` handles Ctrl-C.

A command imports what it needs inside its function, so that ``runner --help`` starts as fast as a help text should.
"""

from typing import Annotated, Literal

import typer

from runner.cli import (
    alerts,
    bisect,
    console,
    explain,
    history_commands,
    matrix_file,
    measure,
    results,
    schedule,
    starting,
    this_machine,
    worker,
)
from runner.cli.commands import CommandGroup

__all__ = ["app", "main"]

QUESTION = "Is this release of a framework faster or slower than that one, on this device, for these networks?"
"""The question that the program answers, and the first line of ``runner --help``."""
app = CommandGroup(rich_markup_mode=None, pretty_exceptions_enable=False, help=QUESTION)
START = f"""{QUESTION}

  runner run --preset quick     build some releases of each framework, measure them, and write a page
  runner new my_network.py      write a model file that runs as it is, to be changed to your network
  runner open                   open the page of the newest run

With --help, it lists all commands."""
for group in (measure, starting, bisect, explain, this_machine, matrix_file, results, alerts, schedule, worker):
    app.add_typer(group.app)  # without a name: the commands of a group are commands of the program
app.add_typer(history_commands.app, name="history")


def _print_version(requested: bool) -> None:
    if requested:
        from runner.core.version import __version__

        console.emit(f"runner {__version__}", None)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def runner(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="print the version and exit", callback=_print_version, is_eager=True)
    ] = False,
    color: Annotated[
        Literal["auto", "always", "never"], typer.Option("--color", help="colours: auto where stdout is a terminal")
    ] = "auto",
) -> None:
    """Print three commands to start with where no command is given."""
    console.choose_colour(color)
    if context.invoked_subcommand is None:
        console.emit(START, None)


def main() -> None:
    """Run the command line and exit."""
    console.end(app)
