"""One device of a run: its part of the plan, its clocks, its servers, and what all devices share."""

import functools
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.analysis.stopping import Verdicts
from runner.backends import Backend
from runner.core import busy
from runner.core.errors import RunnerError
from runner.core.model import Outcome, Plan, Provisioned
from runner.gpu.cooling import ThermalGuard
from runner.gpu.device import DeviceSession
from runner.gpu.locality import Near, locality
from runner.measure.canary import CanaryProcess
from runner.measure.references import References
from runner.measure.rounds import Hooks, measure
from runner.measure.server_pool import ServerPool
from runner.measure.step_profiles import take_profiles
from runner.session.execution.costs import Spending
from runner.session.execution.further_rounds import RoundScheduler
from runner.session.execution.recorder import RunRecorder
from runner.session.preparation import RunSettings


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
            Verdicts(context.settings.margin, context.settings.metrics),
            recorder.progress.note,
            spending=Spending(costs=recorder.costs, before=self.seconds_before, reserved=self.seconds_reserved),
        )
        scheduler.lock = context.lock
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

    def profile(self, context: RunContext, remaining: Callable[[], float]) -> None:
        """Take the profiles that the part lacks, while seconds of the budget remain.

        Raises:
            EngineError: the engine is gone.
            GpuError: the GPU is lost.
        """
        recorder, references = context.recorder, context.references(self.plan)
        cells = recorder.without_profile(self.plan)
        for taken in take_profiles(self.plan, self.servers, references, cells, remaining):
            with context.lock:
                if context.over.is_set():
                    return
                recorder.record_profile(taken)
            self.clocks.check()
        recorder.progress.finish(self.name)

    def _hooks(self, context: RunContext, scheduler: RoundScheduler, canary: CanaryProcess) -> Hooks:
        progress = context.recorder.progress
        # A canary next to other devices would measure them: it runs where there is one device.
        with_canary = context.settings.controls and self.alone
        guard = ThermalGuard(self._observe, progress.note, celsius=self.clocks.celsius, cool=self.idle_celsius)
        on_gpu = self.clocks.gpu is not None
        looks_at_others = self.alone and context.settings.quiet_seconds > 0  # devices side by side disturb each other
        return Hooks(
            say=functools.partial(progress.status, self.name),
            next_cells=scheduler,
            over_budget=scheduler.over_budget,
            canary=canary if with_canary else None,
            interleave=not on_gpu,
            wait_until_cool=guard.wait_until_cool if on_gpu else None,
            measure_unthrottled=functools.partial(self._measure_unthrottled, guard) if on_gpu else None,
            busy_allowed=busy.serious(os.cpu_count() or 1) if looks_at_others else None,
            has_time_for=scheduler.has_time_for,
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
