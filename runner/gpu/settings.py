"""Read the settings of GPUs that make times noisy; nothing is changed."""

from contextlib import suppress
from dataclasses import dataclass

from runner.core.errors import GpuError
from runner.core.threads import call_with_timeout
from runner.gpu import nvml
from runner.gpu.types import held_back


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one GPU; None for values that the driver does not report.

    Attributes:
        index: as ``nvidia-smi`` numbers it.
        persistent: the driver keeps it initialised while no process uses it (persistence mode).
        mhz: the present SM clock; ``most_mhz`` is its maximum.
        held_back: what throttles the clock at present, other than being idle.
        processes: number of processes that compute on it.
    """

    index: int
    name: str
    persistent: bool | None
    mhz: int | None
    most_mhz: int | None
    held_back: tuple[str, ...] = ()
    processes: int | None = None


def settings() -> tuple[Settings, ...]:
    """Return the settings of each GPU that works; empty without a working driver."""
    try:
        return call_with_timeout(_settings)
    except GpuError:
        return ()


def _settings() -> tuple[Settings, ...]:
    settings_by_gpu = []
    with nvml.opened() as driver:
        for device in driver.devices():
            with suppress(GpuError):  # report the other GPUs
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
