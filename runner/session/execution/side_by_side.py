"""Measure the parts of a plan on its devices, side by side.

Each device has its part of the plan, its clocks, its servers, and a scheduler for its extra rounds. Cases that need
several GPUs at once come first, and have all of them.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from runner.backends import Backend
from runner.core import machine
from runner.core.errors import RunnerError
from runner.core.model import Limits, Plan, Provisioned, device_id
from runner.core.threads import run_concurrently
from runner.gpu.device import DeviceGroup, DeviceSession
from runner.gpu.locality import Near
from runner.measure.server_pool import ServerPool
from runner.measure.server_start import Numbers
from runner.plan.pairs import add_controls
from runner.session.execution.assignment import Assignment, ServerCpus, on_cpu, on_gpus
from runner.session.execution.device_worker import DeviceWorker, RunContext
from runner.session.execution.recorder import RunRecorder
from runner.session.preparation import RunSettings

MAX_STARTS = 4  # servers that import their frameworks at a time; on a GPU one by one, for they look at the device
MEMORY_SHARE = 0.8  # of the free memory at the start, for all servers and the children that take turns


def execute(
    assignment: Assignment,
    backend: Backend,
    ready: Mapping[str, Provisioned],
    recorder: RunRecorder,
    settings: RunSettings,
) -> None:
    """Measure all parts side by side; a lost device or engine ends all of them.

    Raises:
        EngineError, GpuError: as ``DeviceWorker.work`` does.
    """
    environments = add_controls(assignment.plan, ready)
    context = RunContext(backend=backend, ready=environments, recorder=recorder, settings=settings)
    measure_parts(assignment, context)


def measure_parts(assignment: Assignment, context: RunContext) -> None:
    """Measure the part that needs all devices first, then the parts of the devices side by side."""
    plans = [part for part, _ in assignment.by_device]
    if len(plans) > 1:
        _compute_references(plans, context)
    numbers = Numbers(plans[0].past.servers)
    with contextlib.ExitStack() as stack:
        for session in assignment.sessions:
            stack.enter_context(session.hold(context.recorder.stored.id))
        together: Sequence[DeviceWorker] = ()
        if assignment.together:
            together = _workers([(assignment.together, DeviceGroup(assignment.sessions))], context, numbers)
        workers = _workers(assignment.by_device, context, numbers)
        for worker in (*together, *workers):
            stack.enter_context(contextlib.closing(worker.servers))
        stack.callback(context.end)
        reserved = max((worker.plan.seconds for worker in workers), default=0.0)
        for first in (replace(worker, seconds_reserved=reserved) for worker in together):
            start, temperatures = time.monotonic(), [worker.clocks.celsius() for worker in workers]
            first.work(context)
            seconds = time.monotonic() - start
            workers = [
                replace(worker, seconds_before=seconds, idle_celsius=celsius)
                for worker, celsius in zip(workers, temperatures, strict=True)
            ]
        for _ in run_concurrently(lambda worker: worker.work(context), workers, len(workers)):
            pass
        if context.settings.profile:
            _profile_all(together, workers, context)


def _profile_all(together: Sequence[DeviceWorker], workers: Sequence[DeviceWorker], context: RunContext) -> None:
    """Take the profiles that the run lacks, now that no round is disturbed by one: those of several devices first."""
    remaining = remaining_seconds(workers[0].plan, context.recorder.elapsed)
    for worker in together:
        worker.profile(context, remaining)
    for _ in run_concurrently(lambda worker: worker.profile(context, remaining), workers, len(workers)):
        pass


def remaining_seconds(plan: Plan, elapsed: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], float]:
    """Return a function that returns how many seconds of a plan's budget remain; infinite without a budget.

    Args:
        plan: has the budget.
        elapsed: the seconds of it that are used by now.
        clock: seconds, monotonic.
    """
    budget = float("inf") if plan.measurement.budget is None else plan.measurement.budget
    end = clock() + budget - elapsed
    return lambda: end - clock()


def _workers(
    parts: Sequence[tuple[Plan, DeviceSession]], context: RunContext, numbers: Numbers
) -> Sequence[DeviceWorker]:
    """Return a worker for each part, with servers that have not started yet."""
    recorder, pin = context.recorder, context.settings.pin
    cores = _cpus(parts, pin=pin, near=context.near)
    if not any(each.cpus for each in cores) and pin and len(parts) > 1:
        recorder.progress.note("there are too few cores: the servers of all devices share them")
    memory = int(MEMORY_SHARE * machine.available_memory()) // len(parts)
    alone_at_work = len(parts) == 1 and not isinstance(parts[0][1], DeviceGroup)
    workers = []
    for index, ((part, session), server_cpus) in enumerate(zip(parts, cores, strict=True), 1):
        limits = Limits(
            memory=memory,
            device=device_id(session.gpu),
            run=recorder.stored.id,
            cpus=server_cpus.cpus,
            affinity=server_cpus.affinity,
            side_by_side=1 if session.gpu else min(machine.cores(), MAX_STARTS),
        )
        name = f"now, device {index}" if len(parts) > 1 else "now"
        say = functools.partial(recorder.progress.status, name)
        servers = ServerPool(part, context.ready, context.backend, limits, say, numbers)
        servers.note = recorder.progress.note
        workers.append(DeviceWorker(name=name, plan=part, clocks=session, servers=servers, alone=alone_at_work))
    return workers


def _cpus(parts: Sequence[tuple[Plan, DeviceSession]], *, pin: bool, near: Near) -> Sequence[ServerCpus]:
    """Return the processors that the servers of each part keep to."""
    counts = sorted({part.threads_of(name) for part, _ in parts for name in part.frameworks})
    gpus = [session.gpu for _, session in parts if session.gpu]
    if gpus:
        return on_gpus(gpus, counts[-1], pin=pin, near=near)
    return (on_cpu(max([counts[0], *(count for count in counts if count <= machine.cores())]), pin=pin),)


def _compute_references(plans: Sequence[Plan], context: RunContext) -> None:
    """Compute missing references before anything is timed: later it would disturb the other devices."""
    progress = context.recorder.progress
    for plan in plans:
        references = context.references(plan)
        limit = plan.measurement.round_limit
        measured = {case_id for case_id, number in plan.past.finished if number >= limit}
        for block in plan.blocks:
            if block.case_id not in measured and not references.known(block.spec):
                progress.status("now", f"{block.case_id}: computing the reference")
                with contextlib.suppress(RunnerError):  # reported when the case is measured
                    references.get(block.spec)
    progress.finish("now")
