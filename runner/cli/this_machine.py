"""The commands about this machine: doctor, tune, clocks, clean."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from runner.cli import console
from runner.cli.commands import CommandGroup
from runner.cli.params import Device, Environments, MatrixFile, Output, Reports, TableOrJson, Traceback
from runner.core.errors import Problem, UsageError
from runner.core.paths import DEFAULT_MATRIX

app = CommandGroup()


@app.command(short_help="Show what this machine can run, and what to fix")
def doctor(
    environments: Environments = None,
    matrix: MatrixFile = DEFAULT_MATRIX,
    device: Device = None,
    format: TableOrJson = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Show what this machine can run, and how to fix what it cannot; nothing is downloaded or built."""
    from runner.machine.doctor import examine
    from runner.releases.outdated import outdated_notes_of_file
    from runner.session.options import Options

    options = Options(selectors=environments, matrix=matrix, device=device)
    examination = examine(options)
    outlook = examination.outlooks[0]
    for note in outdated_notes_of_file(matrix, outlook.environments, outlook.plan.device, options.reports):
        console.note(note)
    console.show(examination, format, output)
    return 0 if examination.ready else 1


@app.command(short_help="Show what makes this machine noisy")
def tune(format: TableOrJson = "table", output: Output = None, traceback: Traceback = False) -> int:
    """Show what makes this machine noisy, and the command that changes each setting; nothing is changed."""
    from runner.machine.doctor.tune import examine

    console.show(examine(), format, output)
    return 0


@app.command(short_help="Show or reset locked GPU clocks")
def clocks(
    action: Annotated[Literal["show", "reset"], typer.Argument(help="show or reset")] = "show",
    device: Annotated[
        str | None, typer.Option("--device", help="reset the clocks of this GPU, whoever locked them")
    ] = None,
    format: TableOrJson = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Show locked GPU clocks, or reset those left locked by a killed run."""
    from runner.gpu.selection import choose_devices
    from runner.machine.clocks import reset, show

    if action == "show":
        if device is not None:
            raise UsageError(Problem("--device is for `runner clocks reset`", hint="leave it out: show lists all GPUs"))
        console.show(show(), format, output)
        return 0
    gpus = choose_devices(device)[1] if device is not None else (None,)
    if len(gpus) > 1:
        raise UsageError(Problem("only one GPU's clocks can be reset at a time", hint="name one: --device cuda:0"))
    if not gpus:
        raise UsageError(Problem(f"{device!r} has no clocks to reset", hint="name a GPU: --device cuda:0"))
    console.emit(reset(gpus[0], console.note), output)
    return 0


@app.command(short_help="Remove what dead runs and old versions left behind")
def clean(
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list what would be removed")] = False,
    all: Annotated[bool, typer.Option("--all", help="also remove environments that the matrix needs")] = False,
    others: Annotated[
        bool, typer.Option("--others", help="also what names no checkout; with --all: what other checkouts need, too")
    ] = False,
    traceback: Traceback = False,
) -> int:
    """Remove what dead runs, deleted environments and older code left behind."""
    from runner.backends.removal import remove
    from runner.core.paths import cache_folder
    from runner.machine import clean

    cache = cache_folder(os.environ)
    with clean.leftovers(matrix, cache, reports, everything=all) as survey:
        console.emit(clean.listing((*survey.of_this_checkout, *(survey.of_others if all or others else ()))), None)
        chosen, kept = survey.of_this_checkout, () if dry_run else remove(survey.of_this_checkout)
    of_others = clean.of_others(survey.of_others)
    if survey.of_others and (others or (all and not dry_run and console.agrees(f"remove {of_others} as well?"))):
        with clean.leftovers(matrix, cache, reports, everything=all) as again:  # no runner waited for the answer
            foreign = [leftover for leftover in again.of_others if leftover.name in {o.name for o in survey.of_others}]
            chosen, kept = (*chosen, *foreign), (*kept, *(() if dry_run else remove(foreign)))
    elif survey.of_others:
        listed = "" if all else ", and with --dry-run lists them"
        console.note(f"kept: {of_others}; --others removes them, too{listed}")
    for line in (*survey.notes, *(f"{leftover.name} was not removed: {reason}" for leftover, reason in kept)):
        console.note(line)
    console.emit(clean.summary(chosen, kept, dry=dry_run), None)
    return 1 if kept else 0
