"""The clocks of the GPU that a run measures on: held while it measures, read while it computes, let go of after it."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from runner.core.errors import GpuError, Problem
from runner.core.model import Gpu
from runner.core.threads import call_with_timeout
from runner.gpu import nvml
from runner.gpu.clocks import recovery
from runner.gpu.clocks.lease import Lease
from runner.gpu.clocks.policy import Pin, Wish, choose
from runner.gpu.clocks.protocol import HOLD_SECONDS, Order
from runner.gpu.telemetry import Watch
from runner.gpu.types import Abilities

Say = Callable[[str], None]
REST_SECONDS = 1.5  # before anything is measured, in which the idle draw is read
OFF = 0.02  # by which a clock may miss what it is held at: the margin that counts as no change
TAKEN_AGAIN = 3  # times that a guardian may die in a run


class Clocks:
    """What becomes of a GPU's clocks in a run; without a GPU nothing does."""

    def __init__(
        self, gpu: Gpu | None, wish: Wish, say: Say, *, rate: float = 0.0, seconds: float = HOLD_SECONDS
    ) -> None:
        """Change nothing yet.

        Args:
            gpu: the device; None is the CPU.
            wish: the clocks that are asked for.
            say: told what is held, and what is not and why.
            rate: readings in a second while it is held; 0 reads nothing.
            seconds: how long a driver may take to answer.
        """
        self.gpu = gpu
        self.wish = wish
        self.say = say
        self.rate = rate
        self.seconds = seconds
        self.lease: Lease | None = None
        self.watch: Watch | None = None
        self.base: dict[str, float] = {}
        self.again = 0
        self.announced: set[str] = set()
        self.over = False  # the block that held them has ended, perhaps in another thread

    @property
    def pin(self) -> Pin:
        """What is held now."""
        if self.lease is not None:
            return self.lease.pin
        return Pin(how="left" if self.wish.nothing else "none")

    def possible(self) -> None:
        """Raise GpuError where the GPU has not the clock that is asked for, before anything is made for it."""
        if self.gpu is None or self.wish.nothing:
            return
        uuid = self.gpu.uuid

        def ask() -> Abilities:
            with nvml.opened() as driver:
                return driver.device(uuid).abilities()

        try:
            able = call_with_timeout(ask, self.seconds)
        except GpuError:
            return  # it is said when the clocks are to be held
        choose(able, self.wish)

    @contextmanager
    def held(self, run: str) -> Iterator[None]:
        """Hold and read them for the length of the block; they are as they were when it has ended, however it ends.

        Raises:
            GpuError: the GPU has not the clock that was asked for.
        """
        if self.gpu is None:
            yield
            return
        self._others()
        order = Order(task="hold", uuid=self.gpu.uuid, wish=self.wish, run=run, runner=os.getpid())
        try:
            if not self.wish.nothing:
                self.lease = Lease(order, self.say, self.seconds)
                self.lease.take()
            if self.rate:
                self.watch = Watch(self.gpu.uuid, self.rate)
                self.watch.start()
                self.watch.rest(REST_SECONDS)
            yield
        finally:
            self.over = True
            if self.lease is not None:
                self.lease.release()
            if self.watch is not None:
                self.watch.stop()

    def unwatched(self) -> None:
        """Read no more; what was read is not asked for again."""
        if self.watch is not None:
            self.watch.stop()

    def _others(self) -> None:
        """Say who else computes on the GPU, before anything of ours does."""
        assert self.gpu is not None
        uuid = self.gpu.uuid

        def ask() -> tuple[int, ...] | None:
            with nvml.opened() as driver:
                return driver.device(uuid).processes()

        with suppress(GpuError):
            processes = call_with_timeout(ask, self.seconds)
            if processes:
                who = ", ".join(map(str, processes))
                self.say(f"other processes compute on {self.gpu.name} and will disturb what is measured: {who}")

    def facts(self) -> Mapping[str, Any]:
        """Return how the clocks are held, as records have it."""
        if self.gpu is None:
            return {"clocks": None}
        pin = Pin(how="none") if self.lease is not None and self.lease.lapsed else self.pin
        return {"clocks": pin.how, **({"pinned": str(pin)} if str(pin) else {})}

    def observed(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the facts of what was read since the last time, while ``reply`` came to be; see ``watch.facts``."""
        read = self.watch.taken(reply) if self.watch else {}
        if self.pin.sm != "base" or "clock" in self.base or not read.get("throttled"):
            self._compare("clock", self.pin.sm, read.get("clock_mhz"))
        self._compare("memory clock", self.pin.memory, read.get("memory_clock_mhz"))
        return read

    def celsius(self) -> int | None:
        """Return the GPU's temperature as it was read last."""
        newest = self.watch.newest() if self.watch else None
        return newest.celsius if newest else None

    def _compare(self, name: str, held: int | str | None, read: list[float] | None) -> None:
        """Say once that a clock is not what it is held at: a lock is a request, and power or heat may forbid it.

        What ``base`` is in MHz no driver tells, so it is what the first cell was measured at.
        """
        if not read or held is None:
            return
        mhz = held if isinstance(held, int) else self.base.setdefault(name, read[1])
        if abs(read[1] - mhz) > OFF * mhz:
            why = ": power or heat allow no more" if read[1] < mhz else ""
            self._once(f"the GPU's {name} is held at {mhz:g} MHz and was {read[1]:g} MHz{why}")

    def _once(self, text: str) -> None:
        if text.partition(" and was ")[0] not in self.announced:
            self.announced.add(text.partition(" and was ")[0])
            self.say(text)

    def check(self) -> None:
        """See that the clocks are still held and the GPU is still there; a guardian that died gets a successor.

        Raises:
            GpuError: the GPU is lost.
        """
        error = self.watch.error if self.watch else None
        if error is not None and error.kind == "lost":
            assert self.gpu is not None
            raise GpuError(Problem(f"{self.gpu.name}: {error.problems[0].message}"), kind="lost") from error
        if error is not None:
            self._once(f"the GPU is no longer read: {error.problems[0].message}")
        if self.lease is not None and self.lease.lapsed and not self.over:
            self._take_again(self.lease)
            if self.over:
                self.lease.release()

    def _take_again(self, lapsed: Lease) -> None:
        self.again += 1
        if self.again > TAKEN_AGAIN:
            lapsed.release()
            lapsed.pin = Pin(how="none", why="its guardian has died again and again")
            self.say(f"the GPU's clocks are held no more: {lapsed.pin.why}")
            return
        self.say("the guardian of the GPU's clocks has died: starting another one")
        lapsed.again()


def recovered(wish: Wish, say: Say) -> None:
    """Undo what guardians that were killed have left held, unless nothing is to be changed; say so."""
    if not any(recovery.leftovers()):
        return
    if wish.nothing:
        say("clocks of a run that was killed are still held; `runner clocks reset` lets go of them")
        return
    for failure in recovery.recover(say):
        say(failure)
