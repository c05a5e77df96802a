"""The facts about this machine that make times noisy, read from the kernel and the GPU's driver."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.core.busy import Busy, busiest, process_ticks, user_of
from runner.core.errors import GpuError
from runner.core.machine import cpu_quota
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


def gpu_settings() -> tuple[Settings, ...]:
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
                settings_by_gpu.append(_settings_of(device))
    return tuple(settings_by_gpu)


def _settings_of(device: nvml.Device) -> Settings:
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


CPUS = "sys/devices/system/cpu"
GROUP = "sys/fs/cgroup"
WATCH_SECONDS = 1.0  # for which other processes are watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What makes times noisy on a machine. What the kernel does not show is None or empty.

    Attributes:
        cpus: number of logical CPUs.
        virtual: the kernel runs in a virtual machine.
        governors: governor -> number of CPUs that it governs.
        boost: the file that switches the turbo clock, relative to the root, and whether it is on.
        shared_cores: number of cores with more than one thread that is on.
        mhz: the current clock of each CPU.
        load: average number of running or waiting processes over the last minute.
        busy: the processes that computed most while they were watched, without this one.
        busiest_user: the UID of the user of the first of them; None if that is not known.
        stolen: share of the CPU time since boot that the host of a virtual machine gave to others.
        swap: (used, total) bytes.
        huge_pages: ``always``, ``madvise`` or ``never``.
        randomization: of address layouts, 0 to 2, as the kernel's ``randomize_va_space``.
        isolated: the CPUs that the scheduler leaves alone, as the kernel writes them.
        quota: number of CPUs that the control group may use at a time; None without a limit.
        throttled: number of periods in which the control group had to wait.
        nodes: number of memory nodes.
        balancing: the kernel moves pages between memory nodes.
        irqbalance: the service that moves interrupts from CPU to CPU is running.
        mains: the machine runs on mains power; None if it has no battery.
        overheated: how often a core was slowed down by heat.
        gpus: the settings of each GPU.
    """

    cpus: int
    virtual: bool = False
    governors: Mapping[str, int]
    boost: tuple[str, bool] | None = None
    shared_cores: int | None = None
    mhz: tuple[float, ...] = ()
    load: float | None = None
    busy: tuple[Busy, ...] = ()
    busiest_user: int | None = None
    stolen: float | None = None
    swap: tuple[int, int] | None = None
    huge_pages: str | None = None
    randomization: int | None = None
    isolated: str = ""
    quota: float | None = None
    throttled: int = 0
    nodes: int = 1
    balancing: bool = False
    irqbalance: bool = False
    mains: bool | None = None
    overheated: int | None = None
    gpus: tuple[Settings, ...] = ()


def read_noise(
    root: Path = Path("/"),
    pause: Callable[[float], object] = time.sleep,
    gpus: Callable[[], tuple[Settings, ...]] = gpu_settings,
    ignored: int | None = None,
) -> Noise:
    """Return what this machine shows; takes ``WATCH_SECONDS``.

    Args:
        root: the folder that holds ``proc`` and ``sys``.
        pause: waits the seconds it is given, while other processes are watched.
        gpus: returns the settings of each GPU.
        ignored: the id of a process that is not counted as other load; by default that of this process.
    """
    folder = root / CPUS
    cpus = len(list(folder.glob("cpu[0-9]*"))) or os.cpu_count() or 1
    before, times = process_ticks(root), _cpu_ticks(root)
    pause(WATCH_SECONDS)
    total = sum(times)
    ticks = (sum(_cpu_ticks(root)) - total) / cpus
    quota = cpu_quota(root / GROUP)
    busy = busiest(before, process_ticks(root), ticks, ignored or os.getpid())
    return Noise(
        cpus=cpus,
        virtual=" hypervisor" in _text(root / "proc/cpuinfo"),
        governors=Counter(filter(None, map(_text, folder.glob("cpu[0-9]*/cpufreq/scaling_governor")))),
        boost=_boost(root),
        shared_cores=_shared_cores(folder),
        mhz=_mhz(root),
        load=_number(_text(root / "proc/loadavg").partition(" ")[0]),
        busy=busy,
        busiest_user=user_of(busy[0].pid, root) if busy else None,
        stolen=times[7] / total if len(times) > 7 and total else None,
        swap=_swap(root),
        huge_pages=_in_brackets(_text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        randomization=_integer(_text(root / "proc/sys/kernel/randomize_va_space")),
        isolated=_text(folder / "isolated"),
        quota=None if quota == float("inf") else quota,
        throttled=_throttled(root / GROUP),
        nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or 1,
        balancing=_text(root / "proc/sys/kernel/numa_balancing") not in {"", "0"},
        irqbalance=any(_text(path) == "irqbalance" for path in root.glob("proc/[0-9]*/comm")),
        mains=_mains(root),
        overheated=_overheated(folder),
        gpus=gpus(),
    )


def _text(path: Path) -> str:
    """Return the text of a file, stripped; empty if it does not exist or may not be read."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _integer(text: str) -> int | None:
    number = _number(text)
    return None if number is None else int(number)


def _in_brackets(text: str) -> str | None:
    """Return the word in brackets: ``always [madvise] never``."""
    match = re.search(r"\[(\w+)\]", text)
    return match[1] if match else None


def _boost(root: Path) -> tuple[str, bool] | None:
    for name, on in ((f"{CPUS}/intel_pstate/no_turbo", "0"), (f"{CPUS}/cpufreq/boost", "1")):
        text = _text(root / name)
        if text:
            return name, text == on
    return None


def _shared_cores(folder: Path) -> int | None:
    """Return how many cores have several threads; None if the kernel does not show it."""
    siblings = set(filter(None, map(_text, folder.glob("cpu[0-9]*/topology/thread_siblings_list"))))
    return sum(bool(re.search("[,-]", threads)) for threads in siblings) if siblings else None


def _mhz(root: Path) -> tuple[float, ...]:
    """Return the clock of each CPU; of those alone that the kernel shows."""
    exact = [_number(_text(path)) for path in sorted((root / CPUS).glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))]
    if exact:
        return tuple(khz / 1000 for khz in exact if khz)
    return tuple(map(float, re.findall(r"^cpu MHz\s*: ([0-9.]+)$", _text(root / "proc/cpuinfo"), re.MULTILINE)))


def _cpu_ticks(root: Path) -> list[int]:
    """Return the ticks of all CPUs since boot: user, nice, system, idle, iowait, irq, softirq, steal."""
    first = _text(root / "proc/stat").partition("\n")[0].split()
    return [int(word) for word in first[1:9]] if first[:1] == ["cpu"] else []


def _swap(root: Path) -> tuple[int, int] | None:
    kilobytes = dict(re.findall(r"^(Swap(?:Total|Free)):\s+(\d+) kB$", _text(root / "proc/meminfo"), re.MULTILINE))
    if len(kilobytes) < 2:
        return None
    total, free = int(kilobytes["SwapTotal"]) * 1024, int(kilobytes["SwapFree"]) * 1024
    return total - free, total


def _throttled(group: Path) -> int:
    """Return in how many periods a control group had to wait for the next one; 0 where none is counted."""
    statistics = _text(group / "cpu.stat") or _text(group / "cpu/cpu.stat")
    match = re.search(r"^nr_throttled (\d+)$", statistics, re.MULTILINE)
    return int(match[1]) if match else 0


def _mains(root: Path) -> bool | None:
    """Return whether the machine is on mains power; None if it has no battery."""
    supplies = list(_supplies(root))
    if "Battery" not in {kind for kind, _ in supplies}:
        return None
    return any(online for kind, online in supplies if kind in {"Mains", "USB"})


def _supplies(root: Path) -> Iterator[tuple[str, bool]]:
    for path in root.glob("sys/class/power_supply/*"):
        if _text(path / "scope") != "Device":  # a mouse has a battery, too
            yield _text(path / "type"), _text(path / "online") == "1"


def _overheated(folder: Path) -> int | None:
    counts = [_integer(_text(path)) for path in folder.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
    return sum(count or 0 for count in counts) if counts else None
