"""GPUs that compute one case together, as one device; what each of them holds and reads is its own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from runner.core.model import device_id
from runner.gpu.device import Clocks

OF_ONE = ("joules_per_step", "idle_watts")  # what would have to be added up


class Several(Clocks):
    """The clocks of several GPUs of one kind, which their own hold and give back."""

    def __init__(self, each: Sequence[Clocks]) -> None:
        """Take the clocks of two GPUs or more; the device has all their UUIDs."""
        gpus = [session.gpu for session in each]
        assert all(gpus)
        assert gpus[0]
        super().__init__(replace(gpus[0], uuid=device_id(*gpus)), each[0].wish, each[0].say)
        self.each = each

    @contextmanager
    def held(self, run: str) -> Iterator[None]:
        """Hold nothing: each of them does."""
        del run
        yield

    def facts(self) -> Mapping[str, Any]:
        """Return how the clocks are held; of the first that is held at nothing, where one is not held."""
        return min((session.facts() for session in self.each), key=lambda facts: "pinned" in facts)

    def observed(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what was read of the first that was held back, else of the first; what held back any; no energy."""
        readings = [session.observed(reply) for session in self.each]
        worst = next((read for read in readings if read.get("throttled")), readings[0])
        reasons = {reason for read in readings for reason in read.get("held_back", ())}
        seen = {name: value for name, value in worst.items() if name not in OF_ONE}
        return {**seen, "held_back": sorted(reasons)} if reasons else seen

    def celsius(self) -> int | None:
        """Return the temperature of the hottest."""
        return max((celsius for session in self.each if (celsius := session.celsius()) is not None), default=None)

    def check(self) -> None:
        """See that all are still there; see Clocks."""
        for session in self.each:
            session.check()
