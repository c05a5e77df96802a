"""Measure the parts of a plan on its devices, side by side.

Each device has its part of the plan, its clocks, its servers, and a scheduler for its extra rounds. Cases that need
several GPUs at once come first, and have all of them.
"""

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.backends import Backend
from runner.core import machine
from runner.core.errors import RunnerError
from runner.core.model import Limits, Outcome, Plan, Provisioned, device_id
from runner.core.threads import run_concurrently
from runner.gpu.cooling import ThermalGuard
from runner.gpu.device import DeviceSession
from runner.gpu.device_group import DeviceGroup
from runner.gpu.locality import Near, locality
from runner.measure.canary import CanaryProcess
from runner.measure.references import References
from runner.measure.rounds import Hooks, measure
from runner.measure.server_pool import ServerPool
from runner.measure.server_start import Numbers
from runner.plan.controls import add_twins
from runner.session.preparation import RunSettings
from runner.session.run.assignment import Assignment
from runner.session.run.costs import Spending
from runner.session.run.further_rounds import RoundScheduler
from runner.session.run.profiles import profile_all
from runner.session.run.recorder import RunRecorder
from runner.session.run.server_cpus import ServerCpus, on_cpu, on_gpus

MAX_STARTS = 4  # servers that import their frameworks at a time; on a GPU one by one, for they look at the device
MEMORY_SHARE = 0.8  # of the free memory at the start, for all servers and the children that take turns


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What the devices of a run share.

    Attributes:
        backend: starts servers.
        ready: the environments that were built, with the copies for A/A pairs.
        recorder: stores what happens.
        settings: paths, controls and pinning.
        lock: held while an event is recorded.
        over: set once nothing more is recorded.
        failed_references: references that cannot be computed, and why.
        make_references: returns the float64 references below a folder.
        near: returns the processors near a GPU.
    """

    backend: Backend
    ready: Mapping[str, Provisioned]
    recorder: RunRecorder
    settings: RunSettings
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)
    failed_references: dict[str, RunnerError] = field(default_factory=dict)
    make_references: Callable[[Path, int, dict[str, RunnerError]], References] = References
    near: Near = locality

    def end(self) -> None:
        """Record nothing from now on: what an interrupted device still reports is no result."""
        with self.lock:
            self.over.set()

    def references(self, plan: Plan) -> References:
        """Return the float64 references of a plan's cases."""
        folder = self.settings.cache / "references"
        return self.make_references(folder, plan.measurement.threads, self.failed_references)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWorker:
    """One device with its part of the plan, its session, and its servers.

    Attributes:
        name: the name of its line in the progress.
        alone: no other device measures at the same time.
        seconds_before: how long the cases that need all devices took first.
        seconds_reserved: how much of the budget the cases need that are measured afterwards, by their estimates.
        idle_celsius: the temperature before those cases; None where nothing was measured before, or it is unknown.
    """

    name: str
    plan: Plan
    clocks: DeviceSession
    servers: ServerPool
    alone: bool
    seconds_before: float = 0.0
    seconds_reserved: float = 0.0
    idle_celsius: float | None = None

    def work(self, context: RunContext) -> None:
        """Measure the part, and record each event as soon as it exists.

        Raises:
            EngineError: the engine is gone, or the servers were closed from another thread.
            GpuError: the GPU is lost.
        """
        recorder = context.recorder
        scheduler = RoundScheduler(
            self.plan,
            recorder.stored,
            context.settings.margin,
            recorder.progress.note,
            spending=Spending(costs=recorder.costs, before=self.seconds_before, reserved=self.seconds_reserved),
        )
        with CanaryProcess(self.plan.measurement.threads, self.servers.limits.cpus) as canary:
            hooks = self._hooks(context, scheduler, canary)
            for event in measure(self.plan, self.servers, context.references(self.plan), hooks):
                with context.lock:
                    if context.over.is_set():
                        return
                    recorder.record(event, scheduler.elapsed(), self.clocks)
                self.clocks.check()
        self.servers.retire_all()  # other devices may measure for hours
        self.clocks.stop_sampling()
        recorder.progress.finish(self.name)

    def _hooks(self, context: RunContext, scheduler: RoundScheduler, canary: CanaryProcess) -> Hooks:
        progress = context.recorder.progress
        # A canary next to other devices would measure them: it runs where there is one device.
        with_canary = context.settings.controls and self.alone
        guard = ThermalGuard(self._observe, progress.note, celsius=self.clocks.celsius, cool=self.idle_celsius)
        on_gpu = self.clocks.gpu is not None
        return Hooks(
            say=functools.partial(progress.status, self.name),
            next_cells=scheduler,
            over_budget=scheduler.over_budget,
            canary=canary if with_canary else None,
            interleave=not on_gpu,
            wait_until_cool=guard.wait_until_cool if on_gpu else None,
            measure_unthrottled=functools.partial(self._measure_unthrottled, guard) if on_gpu else None,
        )

    def _observe(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the readings for a reply, and how the clocks are held now: its record may be written much later."""
        return {**self.clocks.observed_facts(reply), **self.clocks.facts()}

    def _measure_unthrottled(self, guard: ThermalGuard, ask: Callable[[], Outcome]) -> Outcome:
        """Return the outcome of one measurement, before which a guardian that died is replaced.

        Raises:
            GpuError: the GPU is lost.
        """
        self.clocks.check()
        return guard.measure_unthrottled(ask)


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
    environments = add_twins(assignment.plan, ready)
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
            profile_all(together, workers, context)


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
    threads = parts[0][0].measurement.threads
    gpus = [session.gpu for _, session in parts if session.gpu]
    return on_gpus(gpus, threads, pin=pin, near=near) if gpus else (on_cpu(threads, pin=pin),)


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
