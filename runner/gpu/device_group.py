"""GPUs that compute one case together, as one device; each keeps its own session."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from runner.core.model import device_id
from runner.gpu.device import DeviceSession

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
