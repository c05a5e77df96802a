"""``runner run --executor``: plan by what the hosts offer, measure on them, and keep one run of all."""

import functools
import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from runner.core.errors import NothingSelectedError, Problem, RecordError, UsageError
from runner.core.model import Cell, Device, Past, Plan
from runner.core.model.cells import environment_of
from runner.core.paths import cache_folder
from runner.core.progress import Progress
from runner.core.units import parse_duration
from runner.hosts import collector, project, tasks
from runner.hosts.driver import BlockDriver
from runner.hosts.executors.addresses import connect
from runner.hosts.executors.executor import Executor
from runner.hosts.host_devices import Devices
from runner.hosts.planning import HostPlan, plan_for_hosts, split_by_case, waiting
from runner.matrix import load
from runner.plan.document import read_plan
from runner.releases.release_locks import FOLDER
from runner.session.execution import header
from runner.session.execution.failures import recorded_ending
from runner.session.execution.recorder import totals_of
from runner.session.execution.resume import check_options, locked_run
from runner.session.flow import RunSession, finish
from runner.session.named_releases import with_named_releases
from runner.session.options import Options
from runner.session.preparation import RunOrigin, RunSettings
from runner.session.quick_cells import refuse_long, with_quick_preset
from runner.session.remember import history_url
from runner.session.stored_options import typed
from runner.session.trust import Resume, require_trust
from runner.store.header import RunHeader
from runner.store.run import Run


def run_on_hosts(
    options: Options,
    address: str,
    certificates: Path | None,
    progress: Progress,
    *,
    resume: Resume = "no",
    history: str | None = None,
) -> RunSession:
    """Measure the selected cells on the devices that an executor reaches.

    Args:
        options: what the user typed; with ``resume`` the selector is the run.
        address: of the executor, such as ``dask://host:8786``.
        certificates: a folder of certificates for TLS; None without TLS.
        progress: shows the work.
        resume: continue a run instead of starting one.
        history: the address of the history as typed; None for that of the reports.

    Raises:
        UsageError: the address or an option is wrong, or the run is not one of several hosts.
        EngineError: no scheduler or no worker answers; what was measured is kept.
        NothingSelectedError: no device can run anything of this.
    """
    history_url(options.reports, history)  # a wrong address is an error before anything is measured
    opened = _new_run if resume == "no" else functools.partial(_resumed_run, trust=resume == "any")
    with opened(options, address, certificates, progress) as (driver, margin):
        driver.measure()
        driver.collector.remove_archives()
    run = driver.run
    for sentence in collector.different_builds(run):
        progress.note(sentence)
    totals = totals_of(run, {(entry.cell, entry.round): entry.status for entry in run.journal().counting()})
    return finish(RunSession(totals=totals, margin=margin, note=progress.note, history=history, page=run.path))


@contextmanager
def _new_run(
    options: Options, address: str, certificates: Path | None, progress: Progress
) -> Iterator[tuple[BlockDriver, float]]:
    """Yield the driver of a run that starts, which is locked until its tasks have ended, and the margin."""
    matrix = load(options.matrix_file)
    options = with_quick_preset(options, matrix, progress.note)
    sent = tasks.sent_options(options)
    with (
        ExitStack() as lock,
        closing(connect(address, certificates, options.reports.absolute(), progress.note)) as executor,
    ):
        files = packed(options, executor, progress)
        devices = Devices(executor=executor, project=files, options=sent, progress=progress)
        controls, models = matrix.measure.controls, project.models(matrix)
        plan = plan_for_hosts(devices.first_offers(), controls=controls, models=models)
        refuse_long(plan.plan, matrix, options)
        run = _started(options, address, plan)
        lock.enter_context(run.hold())
        with recorded_ending(run, progress, options=_options(address, certificates)):
            yield _driver(devices, run, plan), matrix.measure.margin


@contextmanager
def _resumed_run(
    options: Options, address: str, certificates: Path | None, progress: Progress, *, trust: bool
) -> Iterator[tuple[BlockDriver, float]]:
    """Yield the driver of a run that continues as it was started, and the margin."""
    check_options(options)
    with locked_run(options, progress.note) as run:
        head = _header(run, address)
        names = dict.fromkeys(environment_of(each["id"]) for each in run.plan()["cells"])
        require_trust(run, head, tuple(names), progress.note, trust=trust)
        file = options.matrix if options.matrix != Options().matrix else Path(head.matrix)
        matrix, started = load(file), replace(typed(head.event(), ()), matrix=file, busy_ok=options.busy_ok)
        with (
            closing(connect(address, certificates, run.reports.absolute(), progress.note)) as executor,
            recorded_ending(run, progress, options=_options(address, certificates)),
        ):
            run.note("resumed", at=header.now(), digests={})
            _add_uncollected(run, executor, progress)
            files, sent = packed(started, executor, progress), tasks.sent_options(started)
            devices = Devices(executor=executor, project=files, options=sent, progress=progress)
            offers, controls = devices.first_offers(), matrix.measure.controls
            plan = _of_run(run, plan_for_hosts(offers, controls=controls, models=run.models()), head)
            yield _driver(devices, run, plan), matrix.measure.margin


def packed(options: Options, executor: Executor, progress: Progress) -> bytes:
    """Return the files of a run for its hosts, with the locks of named releases, so that all hosts have the same.

    The locks are for the kinds of devices that there are now, and for both before there is one.
    """
    locks: dict[str, Path] = {}
    matrix, folder = load(options.matrix_file), cache_folder(os.environ) / FOLDER
    kinds: tuple[Device, ...] = ("cpu", "cuda")
    present = {"cpu" if device == "cpu" else "cuda" for device in executor.devices().values()} or {*kinds}
    for device in (kind for kind in kinds if kind in present):
        named = with_named_releases(matrix, options, device, folder)
        locks |= {lock.name: lock for lock in named.locks.values()}
        for note in named.notes:
            progress.note(note)
    return project.pack(options.matrix_file, list(locks.values()))


def _driver(devices: Devices, run: Run, plan: HostPlan) -> BlockDriver:
    budget = devices.options["budget"]
    seconds = parse_duration(str(budget)) if budget else None
    return BlockDriver(devices=devices, collector=collector.Collector(run), plan=plan, budget=seconds)


def _options(address: str, certificates: Path | None) -> str:
    """Return the options that the command needs that continues a run."""
    words = ["--executor", address, *(["--certificates", str(certificates)] if certificates else [])]
    return " " + shlex.join(words)


def _header(run: Run, address: str) -> RunHeader:
    """Return the header of a run that an executor can continue.

    Raises:
        UsageError: it was measured in another way, or with another program.
        NothingSelectedError: it is finished.
    """
    head = header.read_header(run)
    if not head.executor:
        raise UsageError(Problem(f"run {run.id} is measured on one host", hint="leave out --executor"))
    if not head.program:
        raise UsageError(Problem(f"an older program started run {run.id}", hint="`runner run` starts a new run"))
    if not run.journal().unfinished:
        raise NothingSelectedError(Problem(f"run {run.id} is finished", hint="`runner run` starts a new run"))
    if head.executor.partition(":")[0] != address.partition(":")[0]:
        message = f"run {run.id} was started with {head.executor}, where its tasks may still run"
        raise UsageError(Problem(message, hint=f"`runner run --resume {run.id} --executor {head.executor}`"))
    header.check_program(run, head)
    return head


def _add_uncollected(run: Run, executor: Executor, progress: Progress) -> None:
    """Add what the last driver of a run saved, and what its workers have returned since; end its other tasks."""
    leases = collector.open_leases(run)
    for reply in executor.uncollected(run.id):
        lease = leases.get(tasks.token_of(reply))
        if lease is None:
            continue
        try:
            collector.save(run, lease, tasks.payload(reply))
        except RecordError as error:
            progress.note(f"{lease.case_id}: not measured on {lease.host}: {error.problems[0].message}")
    collector.Collector(run).add_saved(progress.note)


def _of_run(run: Run, offered: HostPlan, head: RunHeader) -> HostPlan:
    """Return the plan of a run that continues: each block goes to the kinds of devices that run all of its cells.

    Raises:
        UsageError: no host can measure a block that the run lacks.
    """
    stored = read_plan(run.plan(), run.cases(), head.measurement, Past(), run.models())
    parts = split_by_case(stored)
    done, blocks = run.journal().blocks, {}
    for case_id, part in parts.items():
        kinds = [kind for kind, plans in offered.parts.items() if _cells(part) <= _cells(plans.get(case_id))]
        if kinds:
            blocks[case_id] = waiting({kind: offered.parts[kind][case_id] for kind in kinds})
        elif case_id not in done:
            message = f"no host that takes part runs all tests of {case_id}"
            raise UsageError(Problem(message, hint=f"start the workers that run {run.id} had"))
    return HostPlan(plan=stored, parts=dict.fromkeys(offered.parts, parts), blocks=blocks)


def _cells(part: Plan | None) -> frozenset[Cell]:
    """Return the cells of a plan of one block that run; none without a plan."""
    return frozenset(part.blocks[0].cells if part else ())


def _started(options: Options, address: str, plan: HostPlan) -> Run:
    settings = RunSettings(file=options.matrix_file, reports=options.reports, cache=Path())
    origin = RunOrigin(command=tuple(options.to_argv()), executor=address)
    return header.start_run(plan.plan, settings, origin, (), {})
