"""The driver and its GPUs, as NVIDIA's management library describes and sets them.

A refusal of the driver raises a GpuError with a message. A value that a GPU or a driver does not report is None.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from runner.core.errors import GpuError
from runner.core.model import Gpu
from runner.gpu import types
from runner.gpu.binding import call, compute_processes, constant, initialise, library, query
from runner.gpu.types import COUNTERS, Abilities, ClockPair, GpuReading

SLICE = "MIG-"  # prefix of the UUID of a slice
POWER_NOW = 186  # the field: mW at this moment; power usage is a mean over a second on most boards, not on all


@contextmanager
def opened() -> Iterator["NvmlDriver"]:
    """Open the driver for the length of the block; GPUs that were accessed stay initialised until its end.

    Raises:
        GpuError: there is no driver, or it does not work.
    """
    initialise()
    try:
        yield NvmlDriver(str(call("nvmlSystemGetDriverVersion")))
    finally:
        with suppress(GpuError):
            call("nvmlShutdown")


class NvmlDriver:
    """The driver, while it is open."""

    def __init__(self, version: str) -> None:
        """Store the version, such as ``580.65.06``."""
        self.version = version

    def devices(self) -> tuple["Device", ...]:
        """Return the GPUs in the driver's order; without those that do not answer.

        Raises:
            GpuError: there are GPUs, and none of them answers.
        """
        devices, silent = [], None
        for index in range(int(call("nvmlDeviceGetCount"))):
            try:
                devices.append(Device(call("nvmlDeviceGetHandleByIndex", index), index, self.version))
            except GpuError as error:
                silent = error
        if silent and not devices:
            raise silent
        return tuple(devices)

    def device(self, uuid: str) -> "Device":
        """Return the GPU, or the MIG slice, with a UUID.

        Raises:
            GpuError: there is no such GPU, or it is lost.
        """
        handle, part = call("nvmlDeviceGetHandleByUUID", uuid), None
        if uuid.startswith(SLICE):
            handle, part = call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle), handle
        return Device(handle, int(query("nvmlDeviceGetIndex", handle) or 0), self.version, part)


class Device:
    """A GPU, or a slice that MIG has cut from one, while the driver is open. Clocks are in MHz.

    A slice has its own UUID, name and memory; everything else is read from the GPU, and includes its other slices.
    Every method raises GpuError if the driver refuses, or the GPU is lost.
    """

    def __init__(self, handle: object, index: int, driver: str, part: object = None) -> None:
        """Take NVML's handle, the number by which ``nvidia-smi`` names it, the driver's version, a slice's handle."""
        self.handle = handle
        self.index = index
        self.driver = driver
        self.part_handle = handle if part is None else part

    def gpu(self) -> Gpu:
        """Return the description of the GPU or slice."""
        return Gpu(
            uuid=str(call("nvmlDeviceGetUUID", self.part_handle)),
            name=self.name(),
            capability=self.capability(),
            driver=self.driver,
            memory=self.memory(),
        )

    def name(self) -> str:
        """Return its name."""
        return str(call("nvmlDeviceGetName", self.part_handle))

    def capability(self) -> tuple[int, int]:
        """Return its compute capability as (major, minor)."""
        major, minor = call("nvmlDeviceGetCudaComputeCapability", self.handle)
        return int(major), int(minor)

    def architecture(self) -> int:
        """Return NVML's number of its architecture; from the compute capability if the driver does not report it."""
        number = query("nvmlDeviceGetArchitecture", self.handle)
        return number if number in types.ARCHITECTURES else types.architecture(self.capability())

    def memory(self) -> int:
        """Return its memory in bytes; 0 if the driver does not report it."""
        info = query("nvmlDeviceGetMemoryInfo", self.part_handle)
        return int(info.total) if info else 0

    def persistent(self) -> bool | None:
        """Return whether the driver keeps it initialised while no process uses it."""
        return _flag(query("nvmlDeviceGetPersistenceMode", self.handle))

    def sliced(self) -> bool | None:
        """Return whether MIG is on; None if the GPU has no MIG."""
        mode = query("nvmlDeviceGetMigMode", self.handle)
        return None if mode is None else bool(mode[0])

    def slices(self) -> tuple["Device", ...]:
        """Return its MIG slices; empty without MIG."""
        if not self.sliced():
            return ()
        limit = query("nvmlDeviceGetMaxMigDeviceCount", self.handle) or 0
        handles = (query("nvmlDeviceGetMigDeviceHandleByIndex", self.handle, number) for number in range(limit))
        return tuple(Device(self.handle, self.index, self.driver, part) for part in handles if part)

    def bus(self) -> str | None:
        """Return its address as the kernel writes it in ``/sys/bus/pci/devices``, ``0000:3b:00.0``."""
        info = query("nvmlDeviceGetPciInfo", self.handle)
        return None if info is None else types.sysfs_address(info.busId)

    def near_cpus(self) -> tuple[int, ...] | None:
        """Return the logical CPUs that the driver considers near it."""
        words = query("nvmlDeviceGetCpuAffinity", self.handle, types.CPU_WORDS)
        return None if words is None else types.cpus_of_words(tuple(map(int, words)))

    def processes(self) -> tuple[int, ...] | None:
        """Return the ids of the processes that compute on it."""
        processes = query("nvmlDeviceGetComputeRunningProcesses_v3", self.handle)
        if processes is None:  # drivers before 510
            processes = query("nvmlDeviceGetComputeRunningProcesses_v2", self.handle)
        if processes is None:  # drivers before 450
            return compute_processes(library(), self.handle)
        return tuple(int(process.pid) for process in processes)

    def highest_sm(self) -> int | None:
        """Return the highest clock of its multiprocessors."""
        return _number(query("nvmlDeviceGetMaxClockInfo", self.handle, constant("CLOCK_SM")))

    def abilities(self) -> Abilities:
        """Return what its clocks support."""
        memory = query("nvmlDeviceGetSupportedMemoryClocks", self.handle) or ()
        sm = query("nvmlDeviceGetSupportedGraphicsClocks", self.handle, max(memory)) if memory else ()
        return Abilities(
            name=self.name(),
            architecture=self.architecture(),
            memory=tuple(sorted(map(int, memory), reverse=True)),
            sm=tuple(sorted(map(int, sm or ()), reverse=True)),
            application=self._pair("nvmlDeviceGetApplicationsClock"),
            default=self._pair("nvmlDeviceGetDefaultApplicationsClock"),
            sliced=self.sliced(),
        )

    def _pair(self, function: str) -> ClockPair | None:
        memory, sm = (query(function, self.handle, constant(f"CLOCK_{name}")) for name in ("MEM", "SM"))
        return ClockPair(int(memory), int(sm)) if memory and sm else None

    def reading(self) -> GpuReading:
        """Return its clocks, power and temperature at this moment."""
        watts, counted = self._fields()
        if watts is None:
            milliwatts = query("nvmlDeviceGetPowerUsage", self.handle)
            watts = None if milliwatts is None else milliwatts / 1e3
        energy = query("nvmlDeviceGetTotalEnergyConsumption", self.handle)
        return GpuReading(
            at=time.monotonic(),
            sm=query("nvmlDeviceGetClockInfo", self.handle, constant("CLOCK_SM")),
            memory=query("nvmlDeviceGetClockInfo", self.handle, constant("CLOCK_MEM")),
            reasons=self.reasons(),
            watts=watts,
            joules=None if energy is None else energy / 1e3,
            celsius=self._celsius(),
            counted=counted,
        )

    def reasons(self) -> int | None:
        """Return the mask of the reasons for its present clock; see ``types.held_back``."""
        mask = query("nvmlDeviceGetCurrentClocksEventReasons", self.handle)
        if mask is None:  # drivers before 535 have only the old name
            mask = query("nvmlDeviceGetCurrentClocksThrottleReasons", self.handle)
        return _number(mask)

    def _celsius(self) -> int | None:
        celsius = query("nvmlDeviceGetTemperatureV", self.handle, 0)
        return _number(query("nvmlDeviceGetTemperature", self.handle, 0) if celsius is None else celsius)

    def _fields(self) -> tuple[float | None, dict[str, float]]:
        """Return power in watts and the seconds of each counter, as far as the driver has these fields."""
        fields = query("nvmlDeviceGetFieldValues", self.handle, [POWER_NOW, *COUNTERS])
        values = [None if field.nvmlReturn else field.value for field in fields or ()]
        counted: dict[str, float] = {}
        for words, value in zip(COUNTERS.values(), values[1:], strict=False):
            if value is not None:
                counted[words] = counted.get(words, 0.0) + value.ullVal / 1e9
        return (values[0].uiVal / 1e3 if values and values[0] is not None else None), counted

    def lock_sm(self, mhz: int | Literal["base"]) -> None:
        """Lock the SM clock at a number, or at the base clock, which the power limit always allows."""
        clock = constant("CLOCK_LIMIT_ID_TDP") if mhz == "base" else mhz
        call("nvmlDeviceSetGpuLockedClocks", self.handle, clock, clock)

    def unlock_sm(self) -> None:
        """Unlock the clock of its multiprocessors."""
        call("nvmlDeviceResetGpuLockedClocks", self.handle)

    def lock_memory(self, mhz: int) -> None:
        """Lock the clock of its memory."""
        call("nvmlDeviceSetMemoryLockedClocks", self.handle, mhz, mhz)

    def unlock_memory(self) -> None:
        """Unlock the clock of its memory."""
        call("nvmlDeviceResetMemoryLockedClocks", self.handle)

    def set_application(self, pair: ClockPair | None) -> None:
        """Set the application clocks; None is the driver's own."""
        if pair is None:
            call("nvmlDeviceResetApplicationsClocks", self.handle)
        else:
            call("nvmlDeviceSetApplicationsClocks", self.handle, pair.memory, pair.sm)


def _number(value: int | None) -> int | None:
    return None if value is None else int(value)


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)
