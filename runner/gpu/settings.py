"""How a GPU is set up, as far as that makes times noisy: read from the driver, and nothing is changed."""

from collections.abc import Callable
from dataclasses import dataclass

HELD_BACK = {
    0x4: "its power limit",
    0x8: "a hardware slowdown",
    0x20: "heat",
    0x40: "heat",
    0x80: "the power brake",
}
"""Bit of the clocks' event reasons -> what holds the clock back. Source: nvml.h, nvmlClocksEventReason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One GPU; what the driver does not tell is None.

    Attributes:
        index: as ``nvidia-smi`` numbers it.
        persistent: the driver keeps it initialised while nobody uses it.
        mhz: the clock of its multiprocessors now; ``most_mhz`` is the highest it may have.
        held_back: what keeps the clock below that now, but for having nothing to do.
        processes: how many processes compute on it.
    """

    index: int
    name: str
    persistent: bool | None
    mhz: int | None
    most_mhz: int | None
    held_back: tuple[str, ...] = ()
    processes: int | None = None


def settings() -> tuple[Settings, ...]:
    """Return the settings of each GPU that the driver shows; empty where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(
            _of(index, pynvml.nvmlDeviceGetHandleByIndex(index)) for index in range(pynvml.nvmlDeviceGetCount())
        )
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def _of(index: int, handle: object) -> Settings:
    import pynvml

    persistent = _asked(lambda: pynvml.nvmlDeviceGetPersistenceMode(handle))
    processes = _asked(lambda: len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)))
    mask = _asked(lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    if mask is None:  # drivers before 535 have only the old name
        mask = _asked(lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    return Settings(
        index=index,
        name=str(pynvml.nvmlDeviceGetName(handle)),
        persistent=None if persistent is None else bool(persistent),
        mhz=_asked(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        most_mhz=_asked(lambda: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        held_back=held_back(mask or 0),
        processes=processes,
    )


def held_back(mask: int) -> tuple[str, ...]:
    """Return what a mask of event reasons says holds the clock back.

    >>> held_back(0x61)
    ('heat',)
    """
    return tuple(dict.fromkeys(words for bit, words in HELD_BACK.items() if mask & bit))


def _asked(question: Callable[[], object]) -> int | None:
    """Return a number that the driver gives; None where it refuses."""
    import pynvml

    try:
        return int(str(question()))
    except pynvml.NVMLError:
        return None
