"""``runner run --executor``: plan by what the hosts offer, measure on them, and keep one run of all."""

import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.model import Cell, Past, Plan
from runner.core.model.cells import is_twin
from runner.core.progress import Progress
from runner.core.units import parse_duration
from runner.matrix import Matrix, load
from runner.plan.document import read_plan
from runner.store.run import Run
from runner.workflows.hosts import project, results, tasks
from runner.workflows.hosts.devices import Devices
from runner.workflows.hosts.driver import Driver
from runner.workflows.hosts.executors import connect
from runner.workflows.hosts.planning import HostPlan, plan_for_hosts, split_by_case, waiting
from runner.workflows.options import Options
from runner.workflows.preparation import RunSettings
from runner.workflows.run import header
from runner.workflows.run.failures import recorded_ending
from runner.workflows.run.recorder import Totals
from runner.workflows.run.resume import locked_run


def run_on_hosts(
    options: Options, address: str, certificates: Path | None, progress: Progress, *, resume: bool = False
) -> tuple[Totals, float]:
    """Measure the selected cells on the devices that an executor reaches; return the totals and the margin.

    Args:
        options: what the user typed; with ``resume`` the selector is the run.
        address: of the executor, such as ``dask://host:8786``.
        certificates: a folder of certificates for TLS; None without TLS.
        progress: shows the work.
        resume: continue a run instead of starting one.

    Raises:
        UsageError: the address or an option is wrong, or the run is not one of several hosts.
        EngineError: no scheduler or no worker answers; what was measured is kept.
        NothingSelectedError: no device can run anything of this.
    """
    matrix = load(options.matrix)
    budget = parse_duration(options.budget) if options.budget else None
    with closing(connect(address, certificates, options.reports.absolute(), progress.note)) as executor:
        devices = Devices(
            executor=executor,
            project=project.pack(options.matrix),
            options=tasks.sent_options(replace(options, selectors=None) if resume else options),
            progress=progress,
        )
        with (
            _run(options, address, devices, matrix, resume=resume) as (run, plan),
            recorded_ending(run, progress, options=_options(address, certificates)),
        ):
            collector = results.Collector(run)
            Driver(devices=devices, collector=collector, plan=plan, budget=budget).measure()
            collector.remove_archives()
    for sentence in results.different_builds(run):
        progress.note(sentence)
    return _totals(run), matrix.measure.margin


def _options(address: str, certificates: Path | None) -> str:
    """Return the options that the command needs that continues a run."""
    words = ["--executor", address, *(["--certificates", str(certificates)] if certificates else [])]
    return " " + shlex.join(words)


@contextmanager
def _run(
    options: Options, address: str, devices: Devices, matrix: Matrix, *, resume: bool
) -> Iterator[tuple[Run, HostPlan]]:
    """Give the run, locked, and what is measured of it."""
    controls = matrix.measure.controls
    if not resume:
        plan = plan_for_hosts(devices.first_offers(), controls=controls, models=project.models(matrix))
        run = _started(options, address, plan)
        with run.hold():
            yield run, plan
        return
    with locked_run(options, devices.progress.note) as run:
        head = header.read_header(run)
        if not head.executor:
            raise UsageError(Problem(f"run {run.id} is measured on one host", hint="leave out --executor"))
        if not run.journal().unfinished:
            raise NothingSelectedError(Problem(f"run {run.id} is finished", hint="`runner run` starts a new run"))
        header.check_program(run, head)
        _add_uncollected(run, devices)
        run.note("resumed", at=header.now(), digests={})
        names = {entry["environment"] for entry in run.plan()["cells"]}
        selectors = sorted(name for name in names if not is_twin(name))
        devices.options = {**devices.options, "selectors": selectors, "backend": head.backend}
        yield run, _of_run(run, plan_for_hosts(devices.first_offers(), controls=controls, models=run.models()), head)


def _add_uncollected(run: Run, devices: Devices) -> None:
    """Add what the last driver of a run saved, and what its workers have returned since; end its other tasks."""
    leases = results.open_leases(run)
    for reply in devices.executor.uncollected(leases.keys()):
        lease = leases.get(tasks.token_of(reply))
        if lease is not None and not tasks.is_refusal(reply):
            results.save(run, lease, tasks.payload(reply))
            devices.progress.note(f"{lease.case_id}: measured after the last driver ended")
    results.Collector(run).add_saved()


def _of_run(run: Run, offered: HostPlan, head: header.RunHeader) -> HostPlan:
    """Return the plan of a run that continues: each block goes to the kinds of devices that run all of its cells.

    Raises:
        UsageError: no host can measure a block that the run lacks.
    """
    stored = read_plan(run.plan(), run.cases(), head.measurement, Past(), run.models())
    parts = split_by_case(stored)
    done, blocks = run.journal().blocks, {}
    for case_id, part in parts.items():
        kinds = [kind for kind, plans in offered.parts.items() if _cells(plans.get(case_id)) == _cells(part)]
        if kinds:
            blocks[case_id] = waiting({kind: offered.parts[kind][case_id] for kind in kinds})
        elif case_id not in done:
            message = f"no host that takes part runs all cells of {case_id}"
            raise UsageError(Problem(message, hint=f"start the workers that run {run.id} had"))
    return HostPlan(plan=stored, parts=dict.fromkeys(offered.parts, parts), blocks=blocks)


def _cells(part: Plan | None) -> tuple[Cell, ...]:
    """Return the cells of a plan of one block that run; none without a plan."""
    return part.blocks[0].cells if part else ()


def _started(options: Options, address: str, plan: HostPlan) -> Run:
    settings = RunSettings(
        file=options.matrix,
        reports=options.reports,
        cache=Path(),
        command=tuple(options.to_argv()),
        executor=address,
        run="",
    )
    return header.start_run(plan.plan, settings, (), {})


def _totals(run: Run) -> Totals:
    entries = tuple(run.journal().counting())
    good = {entry.cell for entry in entries if entry.status == "ok"}
    return Totals(run=run, good=len(good), bad=tuple(sorted({entry.cell for entry in entries} - good)))
