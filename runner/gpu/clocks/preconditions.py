"""Decide whether a run may change a GPU's clocks without ``--pin``, and say beforehand what it will change.

It may not where another process computes on the GPU, or where somebody seems to have locked the clocks. NVML cannot
read locked clocks: nvml.h of NVML 13 has calls that set and reset them, and none that gets them. Two signs remain:

- The present clock is limited by a setting (nvmlClocksEventReasonApplicationsClocksSetting), and the application clocks
  are at the highest clock or unknown, so that they explain nothing. Boards whose default application clocks are below
  the highest clock show this reason whenever they compute.
- The GPU is idle, no process computes on it, and its clock stays high.

Application clocks can be read, so they are no objection: the guardian restores them.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.core.errors import GpuError
from runner.core.model import Gpu
from runner.core.model.devices import ClockPolicy
from runner.core.threads import call_with_timeout
from runner.gpu import nvml, processes
from runner.gpu.clocks import permission
from runner.gpu.clocks.policy import Pin, choose
from runner.gpu.clocks.protocol import HOLD_SECONDS
from runner.gpu.types import APPLICATION_CLOCKS, IDLE, Abilities, Pair

HIGH_IDLE_SHARE = 0.5
"""Of the highest clock: idle GPUs for data centres are at 10 to 25 % of it, a T4 that is merely open at 37 %."""
LOOK_SECONDS = 0.2
PROCESS_SECONDS = 2.0  # for a process that has just ended to disappear from the driver's list
IDLE_SECONDS = 20.0  # for the clock of a GPU that has just become idle to fall
LOCKED = "somebody seems to have locked it, which no driver reports"
HINT = "`--pin` locks them all the same, `--no-pin` leaves them without this message"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a GPU shows before a run changes its clocks.

    Attributes:
        able: what its clocks support.
        processes: descriptions of the processes that compute on it; None if the driver does not report them.
        reasons: the mask of the reasons for its present clock; None likewise, as ``sm``, that clock in MHz.
    """

    able: Abilities
    processes: tuple[str, ...] | None = ()
    reasons: int | None = None
    sm: int | None = None

    @property
    def objection(self) -> str:
        """Why the clocks must not change without ``--pin``, as a clause; empty if nothing is in the way."""
        if self.processes:
            return f"{processes.sentence(self.processes)} on it"
        if self._limited_by_lock:
            limit = f" to {self.sm} MHz" if self.sm else ""
            return f"a setting other than application clocks limits its clock{limit}: {LOCKED}"
        if self._high_while_idle:
            return f"it is idle at {self.sm} of {max(self.able.sm)} MHz: {LOCKED}"
        return ""

    @property
    def idle(self) -> bool:
        """True if the driver reports it as idle, and no process computes on it."""
        return bool((self.reasons or 0) & IDLE) and not self.processes

    @property
    def _limited_by_lock(self) -> bool:
        application, highest = self.able.application, max(self.able.sm, default=0)
        explained = application is not None and application.sm < highest
        return bool((self.reasons or 0) & APPLICATION_CLOCKS) and not explained

    @property
    def _high_while_idle(self) -> bool:
        highest = max(self.able.sm, default=0)
        return bool(self.idle and self.sm and highest and self.sm >= HIGH_IDLE_SHARE * highest)


def observe(device: nvml.Device) -> Observed:
    """Read a GPU.

    Raises:
        GpuError: the GPU is lost, or the driver failed.
    """
    pids = device.processes()
    reading = device.reading()
    return Observed(
        able=device.abilities(),
        processes=None if pids is None else processes.describe(pids),
        reasons=reading.reasons,
        sm=reading.sm,
    )


def observe_gpu(uuid: str, seconds: float = HOLD_SECONDS) -> Observed:
    """Open the driver and read a GPU.

    Raises:
        GpuError: as ``observe``; or the driver does not answer within ``seconds``.
    """

    def read() -> Observed:
        with nvml.opened() as driver:
            return observe(driver.device(uuid))

    return call_with_timeout(read, seconds)


def lasting_objection(look: Callable[[], Observed], wait: Callable[[float], None] = time.sleep) -> str:
    """Return the objection that remains after PROCESS_SECONDS, or IDLE_SECONDS for a clock that is high while idle.

    Args:
        look: observes the GPU.
        wait: sleeps for a number of seconds.
    """
    waited = 0.0
    while (seen := look()).objection and waited < (IDLE_SECONDS if seen.idle else PROCESS_SECONDS):
        wait(LOOK_SECONDS)
        waited += LOOK_SECONDS
    return seen.objection


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a run will do to the clocks of a GPU, as sentences; ``fix`` is empty, or how to have them locked."""

    text: str
    fix: str = ""


def announcement(gpu: Gpu, seen: Observed, policy: ClockPolicy, *, may_lock: bool) -> Announcement | None:
    """Return what a run will do to the clocks of a GPU; None if it was requested not to touch them.

    Args:
        gpu: the GPU.
        seen: what it shows now.
        policy: the requested clocks.
        may_lock: this user is root, or may start the guardian as root.

    Raises:
        GpuError: the GPU does not have the requested clock.
    """
    name = f"{gpu.name} ({gpu.uuid})"
    pin = choose(seen.able, policy)[0]
    if pin.how == "left":
        return None
    if pin.how == "none":
        return Announcement(f"the clocks of {name} cannot be locked: {pin.why}")
    if seen.objection and not policy.force:
        text = f"the clocks of {name} are not locked while {seen.objection}; {HINT}"
        return Announcement(text, "wait until nobody else uses the GPU, or pass `--pin`")
    condition = "" if may_lock else ", if the driver lets a user do that who is not root"
    change = f"locks the clocks of {name} at {pin} until the run ends{condition}; `--no-pin` measures without"
    return Announcement(
        ". ".join([change, *_undone(seen.able, pin)]), "" if may_lock else permission.allow(os.geteuid())
    )


def read_announcement(gpu: Gpu, policy: ClockPolicy, seconds: float = HOLD_SECONDS) -> Announcement | None:
    """Return what a run will do to the clocks of a GPU of this machine; None likewise, or if the GPU cannot be read.

    Raises:
        GpuError: the GPU does not have the requested clock.
    """
    if policy.nothing:
        return None
    try:
        seen = observe_gpu(gpu.uuid, seconds)
    except GpuError:
        return None
    return announcement(gpu, seen, policy, may_lock=permission.may_lock())


def _undone(able: Abilities, pin: Pin) -> Sequence[str]:
    """Return what the end of the run restores, and what it cannot restore."""
    by_somebody = able.application is not None and able.application != able.default
    clocks = f"the application clocks that somebody has set, {_pair(able.application)}" if by_somebody else ""
    if pin.how == "application":
        return [f"The end of the run restores {clocks}"] if by_somebody else []
    kept = [f"It does not touch {clocks}"] if by_somebody else []
    return [*kept, "If somebody else has locked the clocks, the end of the run removes that lock: no driver reports it"]


def _pair(pair: Pair | None) -> str:
    assert pair is not None
    return f"SM {pair.sm} MHz and memory {pair.memory} MHz"
