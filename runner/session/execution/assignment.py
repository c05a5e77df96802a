"""Share the cases of a plan between devices, and lock the devices."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from runner.core.locks import exclusive
from runner.core.model import Gpu, Plan, device_id
from runner.core.progress import Progress
from runner.gpu.device import DeviceGroup, DeviceSession
from runner.plan.assignment import assign, split_multi_gpu
from runner.session.preparation import RunSettings


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
def device_locks(assignment: Assignment, settings: RunSettings, progress: Progress) -> Iterator[None]:
    """Keep other runs away from the devices for the length of the block; wait while one of them is measuring."""
    with contextlib.ExitStack() as stack:
        for name in sorted(device_id(session.gpu) for session in assignment.sessions):  # sorted: no deadlock
            stack.enter_context(exclusive(settings.cache / f"measuring-{name}.lock", progress.note))
        yield
