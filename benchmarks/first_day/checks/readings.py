"""Every getter of NVML that ``runner.gpu.nvml`` calls, by itself: its value or the driver's answer, and its time."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.first_day.rows import Row, UntestableError
from benchmarks.first_day.settings import Settings
from runner.core.errors import GpuError
from runner.core.threads import call_with_timeout
from runner.gpu import binding, nvml, types
from runner.gpu.types import COUNTERS

SUBJECT = "NVML"
SECONDS = 10.0  # for one getter: a driver without persistence mode may take some
SLOW = 0.02  # seconds; telemetry makes about ten calls per reading, ten times per second

CPU_WORDS = 16  # of 64 CPUs each
SM, MEMORY = "NVML_CLOCK_SM", "NVML_CLOCK_MEM"
GETTERS: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("nvmlDeviceGetName", ()),
    ("nvmlDeviceGetUUID", ()),
    ("nvmlDeviceGetIndex", ()),
    ("nvmlDeviceGetPciInfo", ()),
    ("nvmlDeviceGetCpuAffinity", (CPU_WORDS,)),
    ("nvmlDeviceGetCudaComputeCapability", ()),
    ("nvmlDeviceGetArchitecture", ()),
    ("nvmlDeviceGetMemoryInfo", ()),
    ("nvmlDeviceGetPersistenceMode", ()),
    ("nvmlDeviceGetMigMode", ()),
    ("nvmlDeviceGetMaxMigDeviceCount", ()),
    ("nvmlDeviceGetMigDeviceHandleByIndex", (0,)),
    ("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", ()),
    ("nvmlDeviceGetComputeRunningProcesses_v3", ()),
    ("nvmlDeviceGetComputeRunningProcesses_v2", ()),
    ("nvmlDeviceGetMaxClockInfo", (SM,)),
    ("nvmlDeviceGetSupportedMemoryClocks", ()),
    ("nvmlDeviceGetSupportedGraphicsClocks", ("highest memory clock",)),
    ("nvmlDeviceGetApplicationsClock", (SM,)),
    ("nvmlDeviceGetApplicationsClock", (MEMORY,)),
    ("nvmlDeviceGetDefaultApplicationsClock", (SM,)),
    ("nvmlDeviceGetDefaultApplicationsClock", (MEMORY,)),
    ("nvmlDeviceGetClockInfo", (SM,)),
    ("nvmlDeviceGetClockInfo", (MEMORY,)),
    ("nvmlDeviceGetPowerUsage", ()),
    ("nvmlDeviceGetTotalEnergyConsumption", ()),
    ("nvmlDeviceGetCurrentClocksEventReasons", ()),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", ()),
    ("nvmlDeviceGetTemperatureV", (0,)),
    ("nvmlDeviceGetTemperature", (0,)),
)
"""Function and arguments after the handle; the name of a clock is a constant of the binding."""
READ = ("sm", "memory", "reasons", "watts", "joules", "celsius")
ENUMERATING = ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByUUID")


def rows(_settings: Settings) -> Iterator[Row]:
    """Yield a row for each getter and each field of each GPU, then what the runner makes of them."""
    try:
        with nvml.opened() as driver:
            yield Row("driver", "read", driver.version, {"driver": driver.version})
            for device in driver.devices():
                yield from _device(device)
    except GpuError as error:
        raise UntestableError(error.problems[0].message) from error


def _device(device: nvml.Device) -> Iterator[Row]:
    prefix = f"GPU {device.index}: "
    for name, arguments in GETTERS:
        label = ", ".join(str(argument).removeprefix("NVML_CLOCK_") for argument in arguments)
        yield _row(f"{prefix}{name}({label})", partial(_value, name, device.handle, arguments))
    for number in (nvml.POWER_NOW, *COUNTERS):
        yield _row(f"{prefix}nvmlDeviceGetFieldValues({number})", partial(_field, device.handle, number))
    yield from _together(prefix, device)


def _row(name: str, call: Callable[[], object]) -> Row:
    """Return a row of one call: an answer that the runner expects is as good as a value."""
    begin = time.perf_counter()
    try:
        value, answer = call_with_timeout(call, SECONDS), ""
    except GpuError as error:
        value, answer = None, error.kind
        detail = error.problems[0].message
    except AttributeError:
        value, answer, detail = None, "binding", "nvidia-ml-py has no such function"
    else:
        detail = _text(value)
    seconds = time.perf_counter() - begin
    values = {"seconds": seconds, "answer": answer, "value": value if isinstance(value, int | float | str) else None}
    expected = answer in {"", "binding", *binding.NO_ANSWER}
    return Row(name, "read" if expected else "did not hold", detail, values)


def _value(name: str, handle: object, arguments: tuple[object, ...]) -> object:
    import pynvml

    resolved: list[Any] = []
    for argument in arguments:
        if argument == "highest memory clock":
            resolved.append(max(_call("nvmlDeviceGetSupportedMemoryClocks", handle)))
        else:
            resolved.append(getattr(pynvml, argument) if isinstance(argument, str) else argument)
    return _call(name, handle, *resolved)


def _field(handle: object, number: int) -> object:
    (field,) = _call("nvmlDeviceGetFieldValues", handle, [number])
    if field.nvmlReturn:
        raise types.error(_name(field.nvmlReturn), f"field {number}")
    return int(field.value.uiVal if number == nvml.POWER_NOW else field.value.ullVal)


def _call(name: str, *values: object) -> Any:  # noqa: ANN401
    import pynvml

    try:
        return getattr(pynvml, name)(*values)
    except pynvml.NVMLError as error:
        raise types.error(_name(error.value), name) from error


def _name(code: int) -> str:
    import pynvml

    names = [name for name in dir(pynvml) if name.startswith("NVML_ERROR_") and getattr(pynvml, name) == code]
    return names[0].removeprefix("NVML_ERROR_") if names else str(code)


def _text(value: object) -> str:
    """Return a value of NVML in one line."""
    if hasattr(value, "total"):
        return f"{value.total / 2**30:.1f} GiB"
    if hasattr(value, "busId"):
        return bytes(value.busId).decode() if isinstance(value.busId, bytes) else str(value.busId)
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"{len(value)} values, {min(value)} to {max(value)}"
    if isinstance(value, list | tuple) and value and hasattr(value[0], "pid"):
        return f"{len(value)} processes"
    return str(value)


def _together(prefix: str, device: nvml.Device) -> Iterator[Row]:
    """Yield what the runner makes of the getters: a description, what the clocks support, a reading and its cost."""
    begin = time.perf_counter()
    reading = device.reading()
    seconds = time.perf_counter() - begin
    missing = [name for name in READ if getattr(reading, name) is None]
    detail = f"{1e3 * seconds:.1f} ms" + (f", without {', '.join(missing)}" if missing else ", complete")
    values = {"seconds": seconds, "missing": missing, "counted": sorted(reading.counted or ())}
    yield Row(f"{prefix}a reading", "held" if seconds < SLOW else "did not hold", detail, values)
    able = device.abilities()
    processes = device.processes()
    detail = f"{len(able.sm)} SM clocks, {len(able.memory)} memory clocks, application clocks {able.application}"
    values = {
        "architecture": able.architecture,
        "capability": list(device.capability()),
        "highest_sm": device.highest_sm(),
        "application": [able.application.memory, able.application.sm] if able.application else None,
        "default": able.default.sm if able.default else None,
        "persistent": device.persistent(),
        "sliced": device.sliced(),
        "processes": None if processes is None else len(processes),
    }
    yield Row(f"{prefix}what its clocks support", "read", detail, values)
