"""The measuring of a run: each device with servers, clocks and steering of its own, all devices side by side."""

import contextlib
import functools
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.backends import Backend
from runner.core import machine
from runner.core.errors import RunnerError
from runner.core.model import Limits, Plan, Provisioned, device_id
from runner.core.threads import side_by_side
from runner.gpu.cooling import Calm
from runner.gpu.device import Clocks
from runner.gpu.device_group import Several
from runner.measure import canary
from runner.measure.references import References
from runner.measure.rounds import Numbers, ServerPool, Steering, measure
from runner.workflows.run.further_rounds import RoundScheduler
from runner.workflows.run.recorder import RunRecorder

SIDE_BY_SIDE = 4  # servers that import their frameworks at a time; on a GPU they look at the device, one by one
MEMORY_SHARE = 0.8  # of what is free at the start, for all servers, and the children that take turns


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What the devices of a run have in common.

    Attributes:
        backend: starts servers.
        ready: the environments that could be made.
        keeper: keeps what happens, and tells of it.
        cache: where references are kept.
        margin: the change that counts as none.
        controls: whether a canary is measured.
        pin: whether servers are kept to cores of their own.
        lock: held while something is kept.
        over: set when nothing more is to be kept.
        failed: references that cannot be computed, and why.
    """

    backend: Backend
    ready: Mapping[str, Provisioned]
    keeper: RunRecorder
    cache: Path
    margin: float
    controls: bool
    pin: bool
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)
    failed: dict[str, RunnerError] = field(default_factory=dict)

    def end(self) -> None:
        """Keep nothing from here on: what devices say that others have interrupted is no result."""
        with self.lock:
            self.over.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWorker:
    """One device with its part of the plan, its clocks, and servers.

    Attributes:
        name: what its progress is shown under.
        alone: no other device is at work meanwhile.
        before: seconds that all devices together were at work first.
        cool: degrees that it had before that; None where it was not at work yet, or nobody knows.
    """

    name: str
    plan: Plan
    clocks: Clocks
    servers: ServerPool
    alone: bool
    before: float = 0.0
    cool: float | None = None

    def work(self, shared: RunContext) -> None:
        """Measure the part, and keep each event the moment it is there.

        Raises:
            EngineError: the engine is gone, or the servers were ended from elsewhere.
            GpuError: the GPU is lost.
        """
        keeper, limits, threads = shared.keeper, self.servers.limits, self.plan.measurement.threads
        say = keeper.progress.note
        wanted = RoundScheduler(self.plan, keeper.stored, shared.margin, say, before=self.before)
        # Beside other devices at work, a slower canary would tell of them.
        canary_seconds = (
            functools.partial(canary.canary, threads, limits.cpus) if shared.controls and self.alone else None
        )
        calm = Calm(self.clocks.observed, say, celsius=self.clocks.celsius, cool=self.cool)
        around, rested = (calm.measured, calm.rested) if self.clocks.gpu else (None, None)
        status = functools.partial(keeper.progress.status, self.name)
        steering = Steering(status, wanted, canary_seconds, around, rested)
        references = References(shared.cache / "references", threads, shared.failed)
        for event in measure(self.plan, self.servers, references, steering):
            with shared.lock:
                if shared.over.is_set():
                    return
                keeper.keep(event, wanted.elapsed(), self.clocks)
            self.clocks.check()
        self.servers.close()  # other devices may be at work for hours
        self.clocks.unwatched()
        keeper.progress.finish(self.name)


def work(parts: Sequence[Plan], devices: Sequence[Clocks], shared: RunContext, wide: Plan | None = None) -> None:
    """Measure the parts of a plan side by side; a device or an engine that is lost ends all of it.

    Args:
        parts: of one plan, as ``deal`` gives them.
        devices: the clocks of as many devices or more, which are held meanwhile.
        shared: what they have in common; afterwards it keeps nothing more.
        wide: what all devices compute together, and before the parts.

    Raises:
        EngineError, GpuError: as ``DeviceWorker.work`` does.
    """
    if len(parts) > 1:
        _references(parts, shared)
    numbers = Numbers(parts[0].past.servers)
    first = _workers([wide], [Several(devices)], shared, numbers) if wide and wide.blocks else ()
    with contextlib.ExitStack() as stack:
        for clocks in devices:
            stack.enter_context(clocks.held(shared.keeper.stored.id))
        lanes = _workers(parts, devices[: len(parts)], shared, numbers)
        for lane in (*first, *lanes):
            stack.enter_context(contextlib.closing(lane.servers))
        stack.callback(shared.end)
        if first:
            begin, cool = time.monotonic(), [lane.clocks.celsius() for lane in lanes]
            first[0].work(shared)
            before = time.monotonic() - begin
            lanes = [replace(lane, before=before, cool=one) for lane, one in zip(lanes, cool, strict=True)]
        for _ in side_by_side(lambda lane: lane.work(shared), lanes, len(lanes)):
            pass


def _workers(
    parts: Sequence[Plan], devices: Sequence[Clocks], shared: RunContext, numbers: Numbers
) -> Sequence[DeviceWorker]:
    """Return each device with its part, and servers that are yet to start."""
    cores, keeper = _cores(parts, devices, pin=shared.pin), shared.keeper
    if not any(cores) and shared.pin and len(parts) > 1:
        keeper.progress.note("there are too few cores: the servers of all devices share them")
    memory = int(MEMORY_SHARE * machine.room()) // len(parts)
    lanes, alone = [], len(parts) == 1 and not isinstance(devices[0], Several)
    for place, (part, clocks, cpus) in enumerate(zip(parts, devices, cores, strict=True), 1):
        limits = Limits(
            memory=memory,
            device=device_id(clocks.gpu),
            run=keeper.stored.id,
            cpus=cpus,
            side_by_side=1 if clocks.gpu else min(machine.cores(), SIDE_BY_SIDE),
        )
        name = f"now, device {place}" if len(parts) > 1 else "now"
        say = functools.partial(keeper.progress.status, name)
        servers = ServerPool(part, shared.ready, shared.backend, limits, say, numbers)
        lanes.append(DeviceWorker(name=name, plan=part, clocks=clocks, servers=servers, alone=alone))
    return lanes


def _cores(parts: Sequence[Plan], devices: Sequence[Clocks], *, pin: bool) -> Sequence[tuple[int, ...]]:
    """Return the processors that the servers of each part stay on; empty for any."""
    count, cpus, threads = len(parts), os.sched_getaffinity(0), parts[0].measurement.threads
    if not pin or (count == 1 and devices[0].gpu):
        return ((),) * count
    if count == 1:
        return (machine.apart(threads, cpus),)
    shares = machine.shares(count, cpus)
    return shares if all(machine.physical_cores(share) >= threads for share in shares) else ((),) * count


def _references(parts: Sequence[Plan], shared: RunContext) -> None:
    """Compute what is missing before anything is timed: it would be beside what other devices do."""
    for part in parts:
        references = References(shared.cache / "references", part.measurement.threads, shared.failed)
        behind = {case_id for case_id, number in part.past.finished if number >= part.measurement.most}
        for block in part.blocks:
            if block.case_id not in behind and not references.known(block.spec):
                shared.keeper.progress.status("now", f"{block.case_id}: computing the reference")
                with contextlib.suppress(RunnerError):  # it is told of when the case is measured
                    references.get(block.spec)
    shared.keeper.progress.finish("now")
