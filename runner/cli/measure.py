"""The commands that plan and measure: plan, wrap, build, run, nightly."""

import sys
import textwrap
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from runner.cli import console
from runner.cli.commands import CommandGroup, require_table
from runner.cli.params import Certificates, FailOn, HistoryUrl, Output, TableOrJson, Traceback, Trust, planning
from runner.session.options import INPUT, INPUT_HELP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.analysis.gate import Condition
    from runner.core.model import Plan
    from runner.session.flow import RunSession
    from runner.session.options import Options
    from runner.session.trust import Resume

app = CommandGroup()


@app.command(short_help="Show what would run, and why the rest would not")
@planning
def plan(
    options: "Options",
    machine: Annotated[
        Path | None,
        typer.Option("--machine", help="plan for another machine: a file made there by `runner doctor --format json`"),
    ] = None,
    format: Annotated[Literal["table", "json", "coverage"], typer.Option(help="how to print the plan")] = "table",
    why: Annotated[
        bool,
        typer.Option("--why", help="list in the table what runs, and what does not for each reason, instead of counts"),
    ] = False,
    output: Output = None,
) -> int:
    """Show which tests would run, and why the others would not; nothing is downloaded or built."""
    if why:
        require_table("--why", format)
    if format == "coverage":
        options = replace(options, all=True)
    colour = output is None and console.colour()
    plan, controls = _planned(options, machine)
    text = _plan_text(plan, format, why=why, colour=colour, controls=controls)
    console.emit(text, output, is_document=format != "table")
    return 0


def _planned(options: "Options", machine: Path | None) -> "tuple[Plan, bool]":
    """Return the plan for this machine, or for one that a file describes, and whether a run measures its controls."""
    if machine is None:
        from runner.machine.clocks import announcements
        from runner.session.context import prepared
        from runner.session.quick_cells import refusals

        context, preparation = prepared(options, console.note, quick=True)
        for announcement in announcements(context.gpus, context.settings.clocks):
            console.note(announcement.text)
        for sentence in refusals(preparation.plan, context.matrix, options):
            console.note(sentence)
        return preparation.plan, context.settings.controls
    from runner.matrix import load
    from runner.plan.machine_file import read_machine_file
    from runner.session.plan_elsewhere import planned

    controls = load(options.matrix_file).measure.controls
    return planned(options, read_machine_file(machine), console.note), controls


def _plan_text(plan: "Plan", format: str, *, why: bool, colour: bool, controls: bool) -> str:
    if format == "json":
        from runner.plan.document import plan_document

        return console.json_text(plan_document(plan))
    if format == "coverage":
        from runner.report.coverage import coverage

        return coverage(plan)
    from runner.report.plan import plan_table

    return plan_table(plan, console.width(), why=why, colour=colour, controls=controls)


@app.command(short_help="Print the model file of a network that --model only names")
def wrap(
    model: Annotated[str, typer.Argument(metavar="FILE:NAME|LIBRARY:NAME", help="as `runner run --model` takes it")],
    input: Annotated[list[str] | None, typer.Option("--input", metavar=INPUT, help=INPUT_HELP)] = None,
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Print the model file that `runner run --model FILE:NAME` measures, to be saved and changed; nothing is run."""
    from runner.matrix.wrapper import parse_model, wrapper_of

    wrapper = wrapper_of(parse_model(model), input or ())
    console.emit(wrapper.text, output, is_document=True)
    return 0


@app.command(short_help="Build the environments without measuring")
@partial(planning, without=("all",))
def build(
    options: "Options",
    push: Annotated[
        bool, typer.Option("--push", help="push the images to the registry of the matrix, for all hosts to pull")
    ] = False,
) -> int:
    """Build the environments without measuring."""
    from runner.session.build import build as build_environments
    from runner.session.context import cache_in_use

    with console.progress() as progress, cache_in_use(progress.note):
        failed = build_environments(options, progress, push=push)
    return 1 if failed else 0


@app.command(short_help="Build, measure, and write the report")
@planning
def run(
    options: "Options",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="resume a run by id; by default the newest unfinished one that no other process is running",
        ),
    ] = False,
    executor: Annotated[
        str | None,
        typer.Option("--executor", help="measure on other hosts: dask://HOST:8786 or slurm://PARTITION; default: here"),
    ] = None,
    certificates: Certificates = None,
    trust: Trust = False,
    history: HistoryUrl = None,
    fail_on: FailOn = None,
) -> int:
    """Build the environments, measure the tests, store the records, write the report, and add it to the history."""
    from runner.analysis.gate import parse_conditions
    from runner.core.errors import Problem, UsageError
    from runner.report.formatting import counted
    from runner.session import flow
    from runner.session.context import cache_in_use

    if trust and not resume:
        raise UsageError(Problem("--trust is for a run that --resume continues", hint="leave it out"))
    conditions = parse_conditions(fail_on or ())
    which: Resume = "no" if not resume else "any" if trust else "own"
    with console.progress() as progress, cache_in_use(progress.note):
        if executor is not None and executor != "local":
            from runner.hosts.run_on_hosts import run_on_hosts

            measured = run_on_hosts(options, executor, certificates, progress, resume=which, history=history)
        else:
            measured = flow.measure(options, progress, resume=which, history=history)
    good, bad = measured.totals.good, measured.totals.bad
    console.note(f"{counted(good, 'test')} measured, {len(bad)} failed")
    _print_answer(measured, options)
    if not good:
        console.note("next: remove the causes that stand above, then give the same command again")
    console.emit_path(measured.page)
    if conditions and good:
        _require(measured, conditions)
    return 1 if bad or not good else 0


def _require(measured: "RunSession", conditions: "Sequence[Condition]") -> None:
    """Raise GateError where a comparison of the run breaks a condition."""
    from runner.analysis.gate import gate
    from runner.report import gate_text

    gate_text.require(gate(measured.analysis.comparisons, conditions), measured.analysis.releases)


def _print_answer(measured: "RunSession", options: "Options") -> None:
    """Print to stderr which releases are faster, how far to trust that, and the commands to run next."""
    from runner.report import answer_text
    from runner.session.next_steps import lines, next_commands
    from runner.session.options import Options

    width, colour = console.width(), console.colour(sys.stderr)
    if measured.answer:
        console.note(answer_text.text(measured.answer, width=width, colour=colour))
    if measured.check and measured.check.advice:
        advice = console.for_people(measured.check.advice)
        console.note(textwrap.fill(advice, width, break_on_hyphens=False, break_long_words=False))
    if measured.check:
        folder = Options(reports=measured.reports).to_argv()
        commands = next_commands(measured.check, folder, has_own_network=bool(options.model))
        for line in lines(commands):
            console.note(line)


@app.command(short_help="Measure, and confirm what changed since the last run")
@partial(planning, without=("all", "upgrade"))
def nightly(
    options: "Options",
    base: Annotated[
        list[str] | None,
        typer.Option(
            "--base", help="measure all others alternately with this environment, instead of nightly.base of the matrix"
        ),
    ] = None,
    no_update: Annotated[
        bool, typer.Option("--no-update", help="do not look for new releases of environments that follow a package")
    ] = False,
    if_missed: Annotated[
        str | None,
        typer.Option("--if-missed", help="start only if no night has started since this time of day, such as 02:30"),
    ] = None,
    history: HistoryUrl = None,
    format: TableOrJson = "table",
    output: Output = None,
) -> int:
    """Measure, compare with the last good run, and measure alternately what looks changed; 8 h unless --budget."""
    from runner.session.context import cache_in_use
    from runner.session.remember import history_url
    from runner.watch.nightly import nightly as measure_night
    from runner.watch.nightly.text import PrintedNight

    url = history_url(options.reports, history)
    if if_missed is not None and (reason := _not_missed(options.reports, if_missed)):
        console.note(reason)
        return 0
    with console.progress() as progress, cache_in_use(progress.note):
        night = measure_night(options, progress, url, bases=base, update=not no_update)
    console.show(PrintedNight(night), format, output)
    return night.exit_code


def _not_missed(reports: Path, at: str) -> str:
    """Return why no night was missed, as a sentence; empty if one was."""
    from datetime import datetime

    from runner.watch.nightly.turn import missed
    from runner.watch.schedule import clock

    return missed(reports, clock(at), datetime.now().astimezone())[1]
