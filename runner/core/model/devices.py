"""The machine that measures: its GPU, what a server may use of it, and what this program has left on it."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Literal

from runner.core.bounds import STRICT, Positive

Clock = Literal["base", "max", "leave"] | Positive
MemoryClock = Literal["max", "leave"] | Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as the driver names it: compute capability as (major, minor), memory in bytes, 0 where it is not known."""

    uuid: str
    name: str
    capability: tuple[int, int]
    driver: str
    memory: int = 0


def device_id(*gpus: Gpu | None) -> str:
    """Return the name of a device that no other has: a UUID, several with commas between them; ``cpu`` for no GPU."""
    return ",".join(gpu.uuid for gpu in gpus if gpu) or "cpu"


def file_name(device: str) -> str:
    """Return what files and volumes of a device are called: its id, or a short one of several GPUs.

    >>> file_name("GPU-1"), file_name("GPU-1,GPU-2")
    ('GPU-1', 'several-843de91d')
    """
    if "," not in device:
        return device
    return f"several-{hashlib.sha256(device.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class ClockPolicy:
    """The clocks that the user requests for the multiprocessors (SM) and the memory; numbers are MHz.

    ``force`` changes them also where ``preconditions`` objects.
    """

    __pydantic_config__ = STRICT

    sm: Clock = "base"
    memory: MemoryClock = "max"
    force: bool = False

    @property
    def nothing(self) -> bool:
        """True if no clock is to be changed."""
        return self.sm == "leave" and self.memory == "leave"

    def json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


LEAVE = ClockPolicy("leave", "leave")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a server and its children may use.

    Attributes:
        memory: bytes of resident memory for a server with its child.
        device: ``cpu``, or the UUID of a GPU; of several that compute together, with commas between them.
        run: id of the run, which names and labels what is started.
        cpus: the processors it is to stay on; empty for any.
        side_by_side: processes that may prepare at a time.
        affinity: how ``cpus`` relate to the GPU, a fact for records; empty on a CPU.
        networks: identifies the files of the users' networks that it measures, whose compilers' results are kept apart;
            empty for the program's own workloads.
    """

    memory: int
    device: str = "cpu"
    run: str = "run"
    cpus: tuple[int, ...] = ()
    side_by_side: int = 1
    affinity: str = ""
    networks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something this program made that may go.

    Attributes:
        kind: ``container``, ``image``, ``volume``, ``venv``, ``cache``, ``reference`` or ``folder``.
        name: what the engine calls it, or its path.
        reason: why nothing needs it.
        size: bytes that come free, as far as they are its own.
        others: the other checkouts that need it, see ``backends.uses``; empty if it is this checkout's alone.
    """

    kind: str
    name: str
    reason: str
    size: int = 0
    others: tuple[str, ...] = ()
