"""Resume a run that was killed, interrupted, or lost its engine: what is measured again, and what is not.

The journal names every record that counts, and every case that is finished in a round. ``past`` collects them, and
``RoundPlan.steps`` skips them: a finished case is not measured again in that round, and an interrupted case repeats all
of the round, as the next attempt. ``RoundScheduler`` repeats the choice of extra rounds.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from runner.core.errors import NothingSelectedError, Problem, RecordError, UsageError
from runner.core.model import Cell, Past, Plan, Signs
from runner.core.model.cells import is_control
from runner.core.units import duration
from runner.measure.batches import recorded_batch
from runner.measure.disturbances import signs_of
from runner.measure.round_plan import OUTAGE, abandoned_cells
from runner.plan.document import read_plan
from runner.plan.specs import specs, with_locks
from runner.session.context import Context, setup
from runner.session.execution.costs import measured_seconds
from runner.session.execution.header import check_machine, check_program, read_header
from runner.session.options import Options
from runner.session.preparation import Prepared, RunSettings
from runner.session.results import find_run
from runner.session.stored_options import of_stored_plan
from runner.session.trust import require_trust
from runner.store.damage import DamagedRecord
from runner.store.header import RunHeader
from runner.store.journal import Journal
from runner.store.run import Run, runs

START_NEW = "`runner run` starts a new run"


@contextmanager
def resumed(
    options: Options, say: Callable[[str], None], *, trust: bool = False
) -> Iterator[tuple[Context, Prepared, Run]]:
    """Yield the context and the plan of a run that continues; the run is locked against other processes meanwhile.

    Args:
        options: what the user typed; the one selector is the run. Without it, the newest unfinished run that no other
            process is running is resumed.
        say: takes sentences that the user should read first.
        trust: resume a run that was not started here, too.

    Raises:
        NothingSelectedError: no run is unfinished, or the named run is finished.
        UsageError: it was not started here and is not trusted, another process is running it, something has changed
            since it started, or an option was typed that the run decides.
        RecordError: the run cannot be read.
    """
    check_options(options)
    with locked_run(options, say) as run:
        journal = run.journal()
        if not journal.header:
            message = f"run {run.id} was started by an older program and cannot be resumed"
            raise NothingSelectedError(Problem(message, hint=START_NEW))
        if not journal.unfinished:
            raise NothingSelectedError(Problem(f"run {run.id} is finished", hint=START_NEW))
        header = read_header(run)
        check_program(run, header)
        if header.executor:
            hint = f"`runner run --resume {run.id} --executor {header.executor}`"
            raise UsageError(Problem(f"run {run.id} is measured by the hosts of {header.executor}", hint=hint))
        plan = stored_plan(run, journal, header, say)
        require_trust(run, header, tuple(plan.frameworks), say, trust=trust)
        context = setup(of_stored_plan(header, tuple(plan.frameworks), options))
        settings = replace(with_header(context.settings, header), metrics=header.metrics)
        context = replace(context, settings=settings)
        plan = replace(plan, devices=max(1, len(context.gpus)))
        check_machine(run, header, context.gpus)
        count = len(tuple(journal.counting()))
        say(f"resuming run {run.id}: {count} records are stored{_budget_note(plan)}")
        yield context, remaining_work(plan, context, {name: Path(lock) for name, lock in header.locks.items()}), run


def with_header(settings: RunSettings, header: RunHeader) -> RunSettings:
    """Return settings with the clocks, the pinning and the profiles that a run was started with."""
    return replace(settings, clocks=header.clocks or settings.clocks, pin=header.pin, profile=header.profile)


def _budget_note(plan: Plan) -> str:
    """Return how much of its budget a run has used, as the end of a sentence; empty without a budget."""
    budget = plan.measurement.budget
    return "" if budget is None else f", {duration(plan.past.elapsed)} of its {duration(budget)} are used"


def check_options(options: Options) -> None:
    """Raise UsageError where a user typed an option that the run decides, or more than one run."""
    default = Options()
    allowed = {name: getattr(default, name) for name in ("selectors", "matrix", "reports", "busy_ok", "traceback")}
    decided_by_run = replace(options, **allowed)
    refused = [word for word in decided_by_run.to_argv() if word.startswith("--")]
    if refused:
        names = ", ".join(dict.fromkeys(refused))
        raise UsageError(Problem(f"--resume continues a run with its own options, without {names}", hint="remove them"))
    if len(options.selectors or ()) > 1:
        raise UsageError(Problem("--resume takes one run", hint="`runner run --resume RUN`"))


@contextmanager
def locked_run(options: Options, say: Callable[[str], None]) -> Iterator[Run]:
    """Lock the named run, or the newest unfinished one that no other process is running."""
    with ExitStack() as stack:
        if options.selectors:
            run = find_run(options.reports, options.selectors[0])
            stack.enter_context(run.hold())
        else:
            run = _newest_unfinished(options.reports, stack, say)
        yield run


def _newest_unfinished(reports: Path, stack: ExitStack, say: Callable[[str], None]) -> Run:
    """Lock and return the newest unfinished run that is free; name those that are running."""
    running: list[Problem] = []
    for run in runs(reports):
        if not run.journal().unfinished:
            continue
        try:
            stack.enter_context(run.hold())
        except UsageError as error:
            running += error.problems
            continue
        if run.journal().unfinished:  # it may have ended before it was locked
            for problem in running:
                say(problem.message)
            return run
    if running:
        raise UsageError(*running)
    hint = "`runner run` starts one; --reports names another folder"
    raise NothingSelectedError(Problem(f"no run in {reports} is unfinished", hint=hint))


def stored_plan(run: Run, journal: Journal, header: RunHeader, say: Callable[[str], None]) -> Plan:
    """Return the plan of a run, with what it has measured already; ``say`` takes sentences about damage."""
    try:
        return read_plan(run.plan(), run.cases(), header.measurement, past(run, journal, say), run.models())
    except (KeyError, TypeError) as error:
        raise RecordError(Problem(f"{run.path}: the plan cannot be read: {error}")) from error


def past(run: Run, journal: Journal, say: Callable[[str], None] = lambda _: None) -> Past:
    """Return what a run has measured already; the rounds of damaged records are measured again.

    Args:
        run: the run.
        journal: its journal.
        say: takes a sentence for each kind of damage.

    Raises:
        RecordError: a newer program wrote a record.
    """
    servers: dict[str, int] = {}
    failed = set()
    damaged: list[DamagedRecord] = []
    batches: dict[tuple[Cell, int], int] = {}
    seconds: dict[Cell, float] = {}
    signs: dict[tuple[Cell, int], tuple[int, Signs]] = {}
    for record in run.records(journal, damaged.append):
        name, _, number = str(record.facts.get("server", "")).rpartition("#")
        if name:
            servers[name] = max(servers.get(name, 0), int(number))
        if record.failure:
            failed.add((record.cell, record.failure))
        elif (batch := recorded_batch(record.facts, record.cell)) is not None:
            batches[record.cell, record.round] = batch
        if record.failure:
            continue
        signs[record.cell, record.round] = record.attempt, signs_of(record.facts, record.seconds)
        if measured := measured_seconds(record.facts, record.seconds, again=True):
            seconds[record.cell] = measured
    for sentence in run.warnings(journal, damaged):
        say(sentence)
    reopened = {cell.case_id for cell, failure in failed if failure == OUTAGE}
    finished = journal.finished - {(Cell.parse(each.entry.cell).case_id, each.entry.round) for each in damaged}
    finished = frozenset((case_id, number) for case_id, number in finished if case_id not in reopened)
    return Past(
        finished=finished,
        attempts=_attempts(journal),
        failed=frozenset(failed),
        servers=servers,
        groups={} if reopened else journal.groups,
        elapsed=journal.elapsed,
        batches=batches,
        seconds=seconds,
        signs={key: each for key, each in signs.items() if (key[0].case_id, key[1]) in finished},  # others start anew
        disturbed=frozenset((cell, each.round, each.attempt) for each in journal.disturbances for cell in each.cells),
    )


def _attempts(journal: Journal) -> dict[tuple[str, int], int]:
    """Return (case id, stored round number) -> the last attempt that left a record."""
    attempts: dict[tuple[str, int], int] = {}
    for entry in journal.entries:
        key = Cell.parse(entry.cell).case_id, entry.round
        attempts[key] = max(attempts.get(key, 0), entry.attempt)
    return attempts


def remaining_work(plan: Plan, context: Context, locks: Mapping[str, Path]) -> Prepared:
    """Return the plan with the environments that have cells left to measure."""
    abandoned = abandoned_cells(plan.past)
    needed = {cell.environment for block in plan.blocks for cell in block.cells if cell not in abandoned}
    names = [name for name in plan.frameworks if name in needed and not is_control(name)]
    complete, incomplete = specs(context.matrix, names, plan.device, context.settings.matrix)
    for name, skip in incomplete.items():
        message = f"{name} of the run cannot be built any more: {skip.reason}"
        raise UsageError(Problem(message, hint="restore the matrix file"))
    complete = with_locks(context.settings.completed(complete), locks)
    return Prepared(plan=plan, specs=complete, survey=context.backend.survey(complete))
