"""Share the cases of a plan between devices, lock the devices, and choose the processors of their servers."""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from runner.core import machine
from runner.core.locks import exclusive
from runner.core.model import Gpu, Plan, device_id
from runner.core.progress import Progress
from runner.gpu.device import DeviceGroup, DeviceSession
from runner.gpu.locality import Locality, Near, locality, near_shares
from runner.plan.assignment import assign, split_multi_gpu
from runner.session.preparation import RunSettings

UNPINNED = "any: not pinned"
TOO_FEW = "any: more threads than cores near the GPU"
UNKNOWN = "unknown: neither the kernel nor the driver names the CPUs near the GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Which device measures which part of a plan.

    Attributes:
        plan: the whole plan, with the number of devices that share it.
        by_device: the part that each device measures, and its session.
        together: the part whose cases need several GPUs at once; None without one.
        sessions: of all devices, also of those that have a part in ``together`` alone.
    """

    plan: Plan
    by_device: tuple[tuple[Plan, DeviceSession], ...]
    together: Plan | None
    sessions: tuple[DeviceSession, ...]

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs; none is the CPU."""
        return tuple(session.gpu for session in self.sessions if session.gpu)

    @property
    def parts(self) -> Iterator[tuple[Plan, DeviceSession]]:
        """Each part of the plan with the session that records it."""
        yield from self.by_device
        if self.together:
            yield self.together, DeviceGroup(self.sessions)


def assign_devices(plan: Plan, gpus: Sequence[Gpu], settings: RunSettings, progress: Progress) -> Assignment:
    """Share the cases of a plan between devices; a GPU that gets no case is left out.

    Raises:
        GpuError: a GPU does not have the clock that was asked for.
    """
    single, together = split_multi_gpu(plan)
    parts = assign(single, len(gpus))
    used = gpus[: max(len(parts), *(block.chips for block in together.blocks), 0)]
    sessions = tuple(
        DeviceSession(gpu, settings.clocks, progress.note, rate=settings.telemetry) for gpu in used or (None,)
    )
    for session in sessions:
        session.check_policy()
    return Assignment(
        plan=replace(plan, devices=len(parts)),
        by_device=tuple(zip(parts, sessions, strict=False)),
        together=together if together.blocks else None,
        sessions=sessions,
    )


@contextlib.contextmanager
def device_locks(
    assignment: Assignment, settings: RunSettings, progress: Progress, run: str, seconds: float
) -> Iterator[None]:
    """Keep other runs away from the devices for the length of the block; wait while one of them is measuring.

    Args:
        assignment: has the devices.
        settings: their locks are in its cache folder.
        progress: says what is waited for.
        run: the run, for others that wait for it.
        seconds: how long its planned rounds take by its estimate.
    """
    with contextlib.ExitStack() as stack:
        for name in sorted(device_id(session.gpu) for session in assignment.sessions):  # sorted: no deadlock
            lock = settings.cache / f"measuring-{name}.lock"
            stack.enter_context(exclusive(lock, progress.note, about=lambda: until(run, seconds, time.time())))
        yield


def until(run: str, seconds: float, now: float) -> str:
    """Return what others read who wait for a run.

    Args:
        run: its id.
        seconds: how long its planned rounds take.
        now: seconds since the epoch.
    """
    begin, end = (time.strftime("%d %b %H:%M", time.localtime(at)) for at in (now, now + seconds))
    return f"run {run} has measured since {begin}, and its planned rounds take until about {end}"


class ServerCpus(NamedTuple):
    """The logical CPUs of a device's servers, empty for any; and their relation to the GPU, empty on a CPU."""

    cpus: tuple[int, ...] = ()
    affinity: str = ""


def on_cpu(threads: int, *, pin: bool) -> ServerCpus:
    """Return the processors for the only device of a run, which is the CPU."""
    return ServerCpus(machine.spread_over_cores(threads, os.sched_getaffinity(0)) if pin else ())


def on_gpus(gpus: Sequence[Gpu], threads: int, *, pin: bool, near: Near = locality) -> tuple[ServerCpus, ...]:
    """Return the processors for each GPU, or for GPUs that compute together, whose UUIDs have commas between them.

    GPUs near the same processors divide their cores. If nobody knows which processors are near, a GPU alone has none
    of its own, and several divide all cores. No GPU has fewer cores than ``threads``: it uses any instead.
    """
    if not pin:
        return (ServerCpus(affinity=UNPINNED),) * len(gpus)
    allowed = os.sched_getaffinity(0)
    localities = [near(gpu.uuid) for gpu in gpus]
    shares = near_shares([each.cpus for each in localities], allowed)
    return tuple(_enough(share, each, threads) for share, each in zip(shares, localities, strict=True))


def _enough(share: tuple[int, ...], near: Locality, threads: int) -> ServerCpus:
    if share and machine.physical_cores(share) < threads:
        return ServerCpus(affinity=TOO_FEW)
    if not near.cpus:
        return ServerCpus(share, UNKNOWN)
    node = "" if near.node is None else f", NUMA node {near.node}"
    return ServerCpus(share, f"near the GPU{node}") if share else ServerCpus(affinity=UNKNOWN)
