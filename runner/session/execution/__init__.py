"""Measure a plan: the stages in order. ``session.flow`` says what comes before them and after.

``assignment`` shares the cases between devices, ``side_by_side`` measures them, ``recorder`` writes each outcome as it
happens, ``failures`` writes how the run ended, ``header`` holds what a run depends on, ``resume`` continues an
unfinished run, ``quiet`` waits while other programs keep the machine busy, ``further_rounds`` decides what is measured
next, and ``costs`` replaces estimates by what was measured.
"""

import contextlib
from collections.abc import Mapping

from runner.backends import Backend, provision
from runner.core.errors import NothingSelectedError, Problem, ProvisionError
from runner.core.model import Plan, Provisioned
from runner.core.progress import Progress
from runner.core.units import duration
from runner.gpu.device import recover
from runner.measure.round_plan import reopened_cases
from runner.plan.launches import failed_launches, with_launches
from runner.plan.pairs import with_controls, with_twins
from runner.plan.specs import announce
from runner.report.formatting import few
from runner.report.plan import extent
from runner.session.context import PlannedRun
from runner.session.execution import header
from runner.session.execution.assignment import assign_devices, device_locks
from runner.session.execution.failures import recorded_ending
from runner.session.execution.quiet import wait_until_quiet
from runner.session.execution.recorder import RunRecorder, Totals
from runner.session.execution.side_by_side import execute
from runner.session.execution.skips import skip_notes
from runner.session.preparation import Prepared
from runner.store.events import Entry
from runner.store.run import Run

__all__ = ["build", "run"]


def run(work: PlannedRun, progress: Progress) -> Totals:
    """Build the environments, measure every cell, and store each record as soon as it exists.

    Args:
        work: the plan and what it needs.
        progress: shows the work.

    Raises:
        NothingSelectedError: nothing of the plan can run.
        UsageError: an environment has changed since the run started.
        OutageError: an environment of a resumed run is not available now; nothing is measured or stored.
        EngineError: the engine is gone; what was measured is kept.
        GpuError: the GPU is lost, likewise; or it does not have the clock that was asked for.
    """
    settings, backend, prepared, resumed = work.context.settings, work.context.backend, work.prepared, work.unfinished
    origin = work.context.origin
    recover(settings.clocks, progress.note)
    plan = prepared.plan if resumed or not settings.controls else _with_controls(prepared)
    assignment = assign_devices(plan, work.context.gpus, settings, progress)
    built, unbuilt = build(prepared, backend, progress)
    ready, failed = with_launches(plan, built, prepared.also), failed_launches(plan, unbuilt)
    with contextlib.ExitStack() as stack:
        stack.enter_context(backend.keep(ready.values()))
        if resumed:
            stored, entries = resumed, _continued(resumed, plan, ready, failed)
        else:
            stored, entries = header.start_run(assignment.plan, settings, origin, assignment.gpus, ready), ()
            stack.enter_context(stored.hold())
        progress.note(f"run {stored.id}: {extent(plan, controls=settings.controls)}")
        recorder = RunRecorder(assignment.plan, stored, progress, entries)
        missing = [name for name in failed if failed[name].passing]
        with recorded_ending(stored, progress, origin.part_of, missing=missing):
            for part, session in assignment.parts:
                recorder.record_unbuilt(part, failed, session)
            stack.enter_context(device_locks(assignment, settings, progress, stored.id, recorder.expected_seconds()))
            wait_until_quiet(settings.quiet_seconds, progress)
            recorder.start()
            execute(assignment, backend, ready, recorder, settings)
        return recorder.totals()


def _with_controls(prepared: Prepared) -> Plan:
    """Return the plan with its controls; where environments are measured as they were, with A/A pairs alone.

    Such a plan confirms what a run with plain processes has found.
    """
    return with_twins(prepared.plan) if prepared.also else with_controls(prepared.plan)


def build(
    prepared: Prepared, backend: Backend, progress: Progress
) -> tuple[Mapping[str, Provisioned], Mapping[str, ProvisionError]]:
    """Announce what will be downloaded, then build it; return the environments, and the errors of those that failed.

    Raises:
        NothingSelectedError: nothing of the plan can run.
    """
    if not prepared.plan.blocks:
        hint = "`runner plan` shows the reason for each test"
        raise NothingSelectedError(Problem("nothing of this can run here", hint=hint))
    for note in skip_notes(prepared.plan, prepared.named):
        progress.note(note)
    cost = announce(prepared.specs, prepared.survey)
    if cost:
        progress.note(cost)
    ready, failed = provision(prepared.specs, backend, progress)
    if ready:
        progress.note(made(ready))
    for name, environment in ready.items():
        if not_pulled := environment.facts.get("not_pulled"):
            progress.note(f"{name}: not the image of docker/images.toml: {not_pulled}")
    for name, error in failed.items():
        progress.note(f"{name}: {error.code}: {error}\n{error.log}")
    return {**prepared.also, **ready}, failed


def made(ready: Mapping[str, Provisioned]) -> str:
    """Return which environments are ready, and of those that were not there how and how fast they were made."""
    there = [name for name, environment in ready.items() if environment.cached]
    parts = [f"{few(there)}: ready"] if there else []
    new = [(name, environment) for name, environment in ready.items() if not environment.cached]
    parts += [f"{name}: {environment.how} in {duration(environment.seconds)}" for name, environment in new]
    return "; ".join(parts)


def _continued(
    resumed: Run, plan: Plan, ready: Mapping[str, Provisioned], failed: Mapping[str, ProvisionError]
) -> tuple[Entry, ...]:
    """Check that the environments are those of the run, note that it continues, and return what it has measured."""
    journal = resumed.journal()
    header.check_environments(journal.header.get("digests", {}), ready, failed)
    cases = sorted(reopened_cases(plan.past))
    resumed.note("resumed", at=header.now(), digests=header.digests(ready), **({"anew": cases} if cases else {}))
    return tuple(journal.counting())
