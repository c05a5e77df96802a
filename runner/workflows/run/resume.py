"""Take up a run again that was killed, interrupted, or left by its engine."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from runner.core.errors import NothingSelectedError, Problem, RecordError, UsageError
from runner.core.model import Cell, Past, Plan
from runner.core.model.cells import is_twin
from runner.core.units import duration
from runner.gpu.clocks.policy import wish
from runner.measure.rounds import given_up
from runner.plan.document import read_plan
from runner.plan.environments import specs
from runner.store.journal import Journal
from runner.store.run import Run, runs
from runner.workflows.context import Context, setup
from runner.workflows.options import Options
from runner.workflows.results import find_run
from runner.workflows.run import Prepared, RunSettings
from runner.workflows.run.header import same_machine, same_program

MAY_BE_TYPED = ("selectors", "matrix", "reports", "traceback")


@contextmanager
def resumed(options: Options, say: Callable[[str], None]) -> Iterator[tuple[Context, Prepared, Run]]:
    """Give what it takes to go on with a run, which is kept from other runners for the length of the block.

    Args:
        options: what was typed; the one selector is the run. Where there is none, it is the newest unfinished one that
            nobody is at work in.
        say: told what the user should know first.

    Raises:
        NothingSelectedError: no run is unfinished, or this one is not.
        UsageError: it is at work, something here is not as it was, or an option was typed that the run decides.
        RecordError: the run cannot be read.
    """
    _check(options)
    with _taken(options, say) as run:
        journal = run.journal()
        if not journal.header:
            hint = "`runner run` measures anew"
            raise NothingSelectedError(
                Problem(f"run {run.id} was begun by an older program: it cannot go on", hint=hint)
            )
        if not journal.unfinished:
            raise NothingSelectedError(Problem(f"run {run.id} is finished", hint="`runner run` measures anew"))
        if journal.warning:
            say(journal.warning)
        same_program(run, journal.header)
        planned = _plan(run, journal)
        found = setup(_options(options, journal.header, planned))
        found = replace(found, place=_place(found, journal.header))
        planned = replace(planned, devices=max(1, len(found.gpus)))
        same_machine(run, journal.header, found.gpus)
        say(f"run {run.id} goes on: {len(tuple(journal.counting()))} records are there{_spent(planned)}")
        yield found, _prepared(planned, found), run


def _place(found: Context, begun: Mapping[str, Any]) -> RunSettings:
    """Return where things are, with the clocks and the cores that the run began with."""
    clocks = wish(begun["clocks"]) if "clocks" in begun else found.place.clocks
    return replace(found.place, clocks=clocks, pin=begun.get("pin", False))


def _spent(planned: Plan) -> str:
    """Return what the run has spent of its budget, as the end of a sentence; nothing where it has none."""
    budget = planned.measurement.budget
    return "" if budget is None else f", {duration(planned.past.spent)} of its {duration(budget)} are spent"


def _check(options: Options) -> None:
    typed = [
        field.name
        for field in fields(Options)
        if field.name not in MAY_BE_TYPED and getattr(options, field.name) != field.default
    ]
    if typed:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in typed)
        raise UsageError(Problem(f"a run is resumed as it began, without {names}", hint="leave that out"))
    if len(options.selectors or ()) > 1:
        raise UsageError(Problem("--resume takes one run", hint="`runner run --resume RUN`"))


@contextmanager
def _taken(options: Options, say: Callable[[str], None]) -> Iterator[Run]:
    """Hold the run that was named, or the newest unfinished one that nobody is at work in."""
    with ExitStack() as stack:
        if options.selectors:
            run = find_run(options.reports, options.selectors[0])
            stack.enter_context(run.held())
        else:
            run = _newest(options.reports, stack, say)
        yield run


def _newest(reports: Path, stack: ExitStack, say: Callable[[str], None]) -> Run:
    """Return the newest unfinished run that can be held, and hold it; those that are at work are named."""
    at_work: list[Problem] = []
    for run in runs(reports):
        if not run.journal().unfinished:
            continue
        try:
            stack.enter_context(run.held())
        except UsageError as error:
            at_work += error.problems
            continue
        if run.journal().unfinished:  # it may have ended before it was held
            for problem in at_work:
                say(problem.message)
            return run
    if at_work:
        raise UsageError(*at_work)
    raise NothingSelectedError(
        Problem(f"no run in {reports} is unfinished", hint="`runner run` begins one; --reports names a folder")
    )


def _plan(run: Run, journal: Journal) -> Plan:
    """Return the plan of a run, with what is behind it."""
    try:
        return read_plan(run.plan(), run.cases(), journal.header["measurement"], past(run, journal))
    except (KeyError, TypeError) as error:
        raise RecordError(Problem(f"{run.path}: the plan cannot be read: {error}")) from error


def past(run: Run, journal: Journal) -> Past:
    """Return what a run has behind it.

    Raises:
        RecordError: a record that counts cannot be read.
    """
    attempts: dict[tuple[str, int], int] = {}
    for entry in journal.entries:
        key = Cell.parse(entry.cell).case_id, entry.round
        attempts[key] = max(attempts.get(key, 0), entry.attempt)
    servers: dict[str, int] = {}
    failed = set()
    for record in run.records(journal):
        name, _, number = str(record.facts.get("server", "")).rpartition("#")
        if name:
            servers[name] = max(servers.get(name, 0), int(number))
        if record.failure:
            failed.add((record.cell, record.failure))
    return Past(
        finished=journal.finished,
        attempts=attempts,
        failed=frozenset(failed),
        servers=servers,
        groups=journal.groups,
        spent=journal.elapsed,
    )


def _options(options: Options, begun: Mapping[str, Any], planned: Plan) -> Options:
    """Return what would have to be typed to have the same backend, device and environments."""
    names = [name for name in planned.frameworks if not is_twin(name)]
    elsewhere = options.matrix != Options().matrix
    host = begun["backend"] == "host"
    return Options(
        selectors=None if host else names,
        matrix=options.matrix if elsewhere else Path(begun["matrix"]),
        reports=options.reports,
        device=begun["device"],
        backend=begun["backend"],
        python=begun["python"],
        name=names[0] if host else Options().name,
    )


def _prepared(planned: Plan, found: Context) -> Prepared:
    """Return the plan with the environments of which something is left to measure."""
    lost = given_up(planned.past)
    left = {cell.environment for block in planned.blocks for cell in block.cells if cell not in lost}
    names = [name for name in planned.frameworks if name in left and not is_twin(name)]
    wanted, lacking = specs(found.matrix, names, planned.device, found.place.matrix)
    for name, skip in lacking.items():
        raise UsageError(Problem(f"{name} is in the run, and {skip.reason}", hint="put the matrix back as it was"))
    return Prepared(plan=planned, specs=wanted, survey=found.backend.survey(wanted))
