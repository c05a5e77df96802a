"""Choose how to hold the clocks of a GPU, from what it supports; pure functions.

Which clocks each generation can hold is from nvml.h of NVML 13: locked clocks of the multiprocessors from Volta on, of
the memory from Ampere on, application clocks on boards for data centres before that. GeForce boards before Volta have
none of these.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from runner.core.errors import GpuError, Problem
from runner.core.model.devices import Clock, ClockPolicy, MemoryClock
from runner.gpu.types import AMPERE, ARCHITECTURES, VOLTA, Abilities, Pair

How = Literal["locked", "application", "none", "left"]
HELD: frozenset[How] = frozenset({"locked", "application"})

SUSTAINED_SHARE = (
    0.75  # of the highest clock: what heat and power let most boards keep, where a driver does not say its base clock
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One way to hold clocks.

    Attributes:
        how: ``locked`` by locked clocks, ``application`` by application clocks; ``left`` unchanged, as
            requested or because of other users of the GPU; ``none`` if this GPU, driver or user cannot hold them.
        sm: MHz, or ``base`` for the clock that the driver knows its power limit to allow; None is not held.
        memory: MHz; None is not held.
        why: which requested clock is not held, and why; empty if all are, or if none was requested.
    """

    how: How
    sm: int | Literal["base"] | None = None
    memory: int | None = None
    why: str = ""

    def __str__(self) -> str:
        """Return the held clocks: ``SM 1410 MHz, memory 1215 MHz``."""
        clocks = {"SM": self.sm, "memory": self.memory}
        parts = [f"{name} {mhz}{'' if mhz == 'base' else ' MHz'}" for name, mhz in clocks.items() if mhz is not None]
        return ", ".join(parts)

    def json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def clock_policy(values: Mapping[str, Any]) -> ClockPolicy:
    """Parse what ``ClockPolicy.json`` returns; raises KeyError, TypeError or ValueError if it is no policy."""
    requested = ClockPolicy(values["sm"], values["memory"], values.get("force", False))  # older programs: no ``force``
    for value, words in ((requested.sm, ("base", "max", "leave")), (requested.memory, ("max", "leave"))):
        if value not in words and (type(value) is not int or value < 1):
            raise ValueError(f"{value!r} is no clock")
    if type(requested.force) is not bool:
        raise ValueError(f"{requested.force!r} is neither true nor false")
    return requested


def choose(able: Abilities, requested: ClockPolicy) -> tuple[Pin, ...]:
    """Return the ways to hold the requested clocks, best first; if a driver refuses one, the caller tries the next.

    The last one is always ``none`` or ``left``.

    Raises:
        GpuError: the GPU does not have the requested clock.
    """
    if requested.nothing:
        return (Pin(how="left"),)
    if able.sliced:
        return (Pin(how="none", why="it is cut into MIG slices, which share its clocks"),)
    pins = (*_locked(able, requested), *_application(able, requested))
    return (*pins, Pin(how="none", why=_why_not(able, requested, tried=bool(pins))))


def _locked(able: Abilities, requested: ClockPolicy) -> Iterator[Pin]:
    if able.architecture < VOLTA:
        return
    memory = _memory(able, requested.memory) if able.architecture >= AMPERE else None
    missing = requested.memory != "leave" and memory is None
    why = f"the memory clock of {_generation(able)} cannot be locked" if missing else ""
    if requested.sm == "leave":
        if memory is not None:
            yield Pin(how="locked", memory=memory)
        return
    if requested.sm == "base":
        yield Pin(how="locked", sm="base", memory=memory, why=why)
    number = _sm(able, requested.sm)
    if number is not None:
        yield Pin(how="locked", sm=number, memory=memory, why=why)


def _application(able: Abilities, requested: ClockPolicy) -> Iterator[Pin]:
    """Yield the pair of application clocks if the board has them; the two are only set together."""
    if able.application is None or requested.sm == "leave":
        return
    number = _sm(able, requested.sm)
    memory = able.application.memory if requested.memory == "leave" else _memory(able, requested.memory)
    if requested.sm == "base" and able.default:
        number = able.default.sm
    if number is not None and memory is not None:
        yield Pin(how="application", sm=number, memory=memory)


def _sm(able: Abilities, requested: Clock) -> int | None:
    """Return the nearest clock in MHz; None if the driver does not list its clocks."""
    if type(requested) is int:
        return nearest(able.name, "SM", able.sm, requested)
    if requested == "base" and able.default:
        return able.default.sm
    if not able.sm:
        return None
    highest = max(able.sm)
    return (
        highest
        if requested == "max"
        else max((mhz for mhz in able.sm if mhz <= SUSTAINED_SHARE * highest), default=highest)
    )


def _memory(able: Abilities, requested: MemoryClock) -> int | None:
    if type(requested) is int:
        return nearest(able.name, "memory", able.memory, requested)
    return max(able.memory, default=None) if requested == "max" else None


def nearest(name: str, what: str, there: tuple[int, ...], mhz: int) -> int:
    """Return the nearest clock that the GPU has; the number itself if the driver lists none.

    Raises:
        GpuError: the number is above or below all of them.
    """
    if not there:
        return mhz
    if not min(there) <= mhz <= max(there):
        hint = f"it has {min(there)} to {max(there)} MHz; set `gpu` in the matrix to one of them, or to `leave`"
        raise GpuError(Problem(f"{name} has no {what} clock of {mhz} MHz", hint=hint))
    return min(there, key=lambda clock: (abs(clock - mhz), clock))


def _generation(able: Abilities) -> str:
    return f"a GPU of the generation {ARCHITECTURES.get(able.architecture, 'before Kepler')}"


def _why_not(able: Abilities, requested: ClockPolicy, *, tried: bool) -> str:
    if tried:
        return "its driver refuses every way to hold them"
    if requested.sm == "leave":
        return f"the memory clock of {_generation(able)} cannot be held without that of its multiprocessors"
    return f"{_generation(able)} has no clocks that can be locked, and this board has no application clocks"


def without_memory(pin: Pin, why: str) -> Pin:
    """Return the pin without the memory clock, which cannot be held."""
    return replace(pin, memory=None, why=why)


def pair(pin: Pin) -> Pair:
    """Return a pin's clocks as a pair of application clocks."""
    assert isinstance(pin.sm, int)
    assert pin.memory is not None
    return Pair(pin.memory, pin.sm)
