"""How a GPU is set up, as far as that makes times noisy: read from the driver, and nothing is changed."""

from contextlib import suppress
from dataclasses import dataclass

from runner.core.errors import GpuError
from runner.core.threads import call_with_timeout
from runner.gpu import nvml
from runner.gpu.types import held_back


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
    """Return the settings of each GPU that the driver shows and that is well; empty where no driver works."""
    try:
        return call_with_timeout(_settings)
    except GpuError:
        return ()


def _settings() -> tuple[Settings, ...]:
    settings_by_gpu = []
    with nvml.opened() as driver:
        for device in driver.devices():
            with suppress(GpuError):  # the others may be well
                settings_by_gpu.append(_of(device))
    return tuple(settings_by_gpu)


def _of(device: nvml.Device) -> Settings:
    processes, reading = device.processes(), device.reading()
    return Settings(
        index=device.index,
        name=device.name(),
        persistent=device.persistent(),
        mhz=reading.sm,
        most_mhz=device.highest_sm(),
        held_back=held_back(reading.reasons or 0),
        processes=None if processes is None else len(processes),
    )
