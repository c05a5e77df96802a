"""The GPU that a run measures on: hold its clocks, read it while it computes, and restore the clocks."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from runner.core.errors import GpuError, Problem
from runner.core.model import Gpu, device_id
from runner.core.model.devices import ClockPolicy
from runner.core.threads import call_with_timeout
from runner.gpu import nvml
from runner.gpu.clocks import preconditions, recovery
from runner.gpu.clocks.lease import ClockLease
from runner.gpu.clocks.policy import ClockHold
from runner.gpu.clocks.protocol import HOLD_SECONDS, Order
from runner.gpu.processes import describe
from runner.gpu.telemetry import TelemetrySampler

Say = Callable[[str], None]
REST_SECONDS = 1.5  # before the first cell, to measure the idle draw
TOLERANCE = 0.02  # of the requested clock: the margin that counts as no change
MAX_RESTARTS = 3  # of guardians that died, in a run


class DeviceSession:
    """One device during a run: its clocks, its telemetry, and the checks between cells. A CPU has none of these."""

    def __init__(
        self, gpu: Gpu | None, policy: ClockPolicy, say: Say, *, rate: float = 0.0, seconds: float = HOLD_SECONDS
    ) -> None:
        """Create a session that has not changed anything yet.

        Args:
            gpu: the device; None is the CPU.
            policy: the requested clocks.
            say: gets a message about clocks that are held, or not and why.
            rate: readings per second while the clocks are held; 0 for none.
            seconds: how long a driver may take to answer.
        """
        self.gpu = gpu
        self.policy = policy
        self.say = say
        self.rate = rate
        self.seconds = seconds
        self.lease: ClockLease | None = None
        self.sampler: TelemetrySampler | None = None
        self.first_mhz: dict[str, float] = {}
        self.restarts = 0
        self.announced: set[object] = set()
        self.ended = False  # the block of ``hold`` has ended, perhaps in another thread

    @property
    def pin(self) -> ClockHold:
        """The clocks that are held now."""
        if self.lease is not None:
            return self.lease.pin
        return ClockHold(how="left" if self.policy.nothing else "none")

    def check_policy(self) -> None:
        """Say what the run will do to the clocks; raise GpuError if the GPU does not have the requested clock.

        Both happen before anything is built for it.
        """
        announcement = preconditions.read_announcement(self.gpu, self.policy, self.seconds) if self.gpu else None
        if announcement:
            self.say(announcement.text)

    @contextmanager
    def hold(self, run: str) -> Iterator[None]:
        """Hold the clocks and read the GPU for the length of the block; restore the clocks however it ends.

        Raises:
            GpuError: the GPU does not have the requested clock.
        """
        if self.gpu is None:
            yield
            return
        self._report_other_processes()
        order = Order(task="hold", uuid=self.gpu.uuid, clocks=self.policy, run=run, runner=os.getpid())
        try:
            if not self.policy.nothing:
                self.lease = ClockLease(order, self.say, self.seconds)
                self.lease.acquire()
            if self.rate:
                self.sampler = TelemetrySampler(self.gpu.uuid, self.rate)
                self.sampler.start()
                self.sampler.measure_idle(REST_SECONDS)
            yield
        finally:
            self.ended = True
            if self.lease is not None:
                self.lease.release()
            if self.sampler is not None:
                self.sampler.stop()

    def stop_sampling(self) -> None:
        """Stop reading the GPU; its facts are no longer needed."""
        if self.sampler is not None:
            self.sampler.stop()

    def _report_other_processes(self) -> None:
        """Warn of other processes that compute on the GPU, before any of ours does."""
        assert self.gpu is not None
        uuid = self.gpu.uuid

        def ask() -> tuple[int, ...] | None:
            with nvml.opened() as driver:
                return driver.device(uuid).processes()

        with suppress(GpuError):
            processes = call_with_timeout(ask, self.seconds)
            if processes:
                who = ", ".join(describe(processes))
                self.say(f"other processes compute on {self.gpu.name} and will disturb what is measured: {who}")

    def facts(self) -> Mapping[str, Any]:
        """Return how the clocks are held, as facts for records."""
        if self.gpu is None:
            return {"clocks": None}
        pin = ClockHold(how="none") if self.lease is not None and self.lease.lapsed else self.pin
        held = {"held_sm_mhz": pin.sm} if isinstance(pin.sm, int) else {}
        return {"clocks": pin.how, **({"pinned": str(pin)} if str(pin) else {}), **held}

    def observed_facts(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the facts of the readings since the last call, taken for ``reply``; see ``telemetry.facts``."""
        read = self.sampler.take_facts(reply) if self.sampler else {}
        if self.pin.sm != "base" or "clock" in self.first_mhz or not read.get("throttled"):
            self._compare("clock", self.pin.sm, read.get("clock_mhz"))
        self._compare("memory clock", self.pin.memory, read.get("memory_clock_mhz"))
        return read

    def celsius(self) -> int | None:
        """Return the GPU's temperature at the last reading."""
        newest = self.sampler.newest() if self.sampler else None
        return newest.celsius if newest else None

    def _compare(self, name: str, held: int | str | None, read: list[float] | None) -> None:
        """Warn once if a clock differs from the requested one: power or heat may override a lock.

        No driver reports ``base`` in MHz, so the clock of the first cell stands for it.
        """
        if not read or held is None:
            return
        mhz = held if isinstance(held, int) else self.first_mhz.setdefault(name, read[1])
        if abs(read[1] - mhz) > TOLERANCE * mhz:
            why = ": power or heat allow no more" if read[1] < mhz else ""
            self._say_once((name, mhz), f"the GPU's {name} is held at {mhz:g} MHz and was {read[1]:g} MHz{why}")

    def _say_once(self, key: object, text: str) -> None:
        """Announce a message, unless one with the same key was announced before."""
        if key not in self.announced:
            self.announced.add(key)
            self.say(text)

    def check(self) -> None:
        """Check that the clocks are still held and the GPU is there; replace a guardian that died.

        Raises:
            GpuError: the GPU is lost.
        """
        error = self.sampler.error if self.sampler else None
        if error is not None and error.kind == "lost":
            assert self.gpu is not None
            raise GpuError(Problem(f"{self.gpu.name}: {error.problems[0].message}"), kind="lost") from error
        if error is not None:
            self._say_once("unread", f"the GPU is no longer read: {error.problems[0].message}")
        if self.lease is not None and self.lease.lapsed and not self.ended:
            self._replace_guardian(self.lease)
            if self.ended:
                self.lease.release()

    def _replace_guardian(self, lapsed: ClockLease) -> None:
        self.restarts += 1
        if self.restarts > MAX_RESTARTS:
            lapsed.release()
            lapsed.pin = ClockHold(how="none", why="its guardian has died again and again")
            self.say(f"the GPU's clocks are held no more: {lapsed.pin.why}")
            return
        self.say("the guardian of the GPU's clocks has died: starting another one")
        lapsed.reacquire()


def recover(policy: ClockPolicy, say: Say) -> None:
    """Restore the clocks that killed runs left locked, and announce it; a policy of ``leave`` only announces."""
    if not any(recovery.leftovers()):
        return
    if policy.nothing:
        say("clocks that a killed run left locked are still locked; `runner clocks reset` restores them")
        return
    for failure in recovery.recover(say):
        say(failure)


SINGLE_GPU_FACTS = ("joules_per_step", "idle_watts")  # they would have to be summed


class DeviceGroup(DeviceSession):
    """Several GPUs of one kind as one device; their own sessions hold and restore the clocks."""

    def __init__(self, sessions: Sequence[DeviceSession]) -> None:
        """Group the sessions of two GPUs or more; the device has all their UUIDs."""
        gpus = [session.gpu for session in sessions]
        assert all(gpus)
        assert gpus[0]
        super().__init__(replace(gpus[0], uuid=device_id(*gpus)), sessions[0].policy, sessions[0].say)
        self.sessions = sessions

    @contextmanager
    def hold(self, run: str) -> Iterator[None]:
        """Hold nothing: the session of each GPU does."""
        del run
        yield

    def facts(self) -> Mapping[str, Any]:
        """Return how the clocks are held; those of the first GPU without held clocks, if there is one."""
        return min((session.facts() for session in self.sessions), key=lambda facts: "pinned" in facts)

    def observed_facts(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the readings of the first throttled GPU, else of the first; all throttle reasons; no energy."""
        readings = [session.observed_facts(reply) for session in self.sessions]
        worst = next((read for read in readings if read.get("throttled")), readings[0])
        reasons = {reason for read in readings for reason in read.get("held_back", ())}
        seen = {name: value for name, value in worst.items() if name not in SINGLE_GPU_FACTS}
        return {**seen, "held_back": sorted(reasons)} if reasons else seen

    def celsius(self) -> int | None:
        """Return the temperature of the hottest GPU."""
        return max((celsius for session in self.sessions if (celsius := session.celsius()) is not None), default=None)

    def check(self) -> None:
        """Check each GPU; see DeviceSession."""
        for session in self.sessions:
            session.check()
