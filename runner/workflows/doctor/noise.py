"""The facts about this machine that make times noisy: read from the kernel and the GPU's driver, nothing is changed."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.gpu.settings import Settings, settings

CPUS = "sys/devices/system/cpu"
WATCHED = 1.0  # seconds for which other processes are watched
NAMED = 3  # of them


@dataclass(frozen=True, slots=True)
class Busy:
    """A process and how many CPUs it kept busy."""

    name: str
    pid: int
    cpus: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """This machine. What the kernel does not show is None or empty.

    Attributes:
        cpus: logical ones.
        virtual: the kernel runs in a virtual machine.
        governors: each with how many CPUs it governs.
        boost: the file that switches it, below the root, and whether the clock may go above its base.
        shared_cores: cores with more than one thread that is on.
        mhz: the clock of each CPU now.
        load: processes at work or waiting, over the last minute.
        busy: the processes that computed most while they were watched, this one left out.
        stolen: share of the CPU time that the host of a virtual machine gave to others, since it started.
        swap: (used, there is) in bytes.
        huge_pages: ``always``, ``madvise`` or ``never``.
        layout: how far address layouts are random, 0 to 2.
        isolated: CPUs that the scheduler leaves alone, as the kernel writes them.
        quota: CPUs that the control group may use at a time; None without a limit. ``waits`` is how often it waited.
        nodes: of memory; ``balancing`` says whether the kernel moves pages between them.
        interrupts: a service moves interrupts from CPU to CPU.
        mains: it runs on mains power; None where it has no battery.
        hot: how often a core was slowed down by heat.
    """

    cpus: int
    virtual: bool = False
    governors: Mapping[str, int]
    boost: tuple[str, bool] | None = None
    shared_cores: int | None = None
    mhz: tuple[float, ...] = ()
    load: float | None = None
    busy: tuple[Busy, ...] = ()
    stolen: float | None = None
    swap: tuple[int, int] | None = None
    huge_pages: str | None = None
    layout: int | None = None
    isolated: str = ""
    quota: float | None = None
    waits: int = 0
    nodes: int = 1
    balancing: bool = False
    interrupts: bool = False
    mains: bool | None = None
    hot: int | None = None
    gpus: tuple[Settings, ...] = ()


def look(
    root: Path = Path("/"),
    pause: Callable[[float], object] = time.sleep,
    gpus: Callable[[], tuple[Settings, ...]] = settings,
    own: int | None = None,
) -> Noise:
    """Return what can be seen here.

    Args:
        root: the folder that holds ``proc`` and ``sys``.
        pause: waits the seconds it is given, while other processes are watched.
        gpus: returns the settings of each GPU.
        own: the id of the process to leave out; by default this one's.
    """
    folder = root / CPUS
    cpus = len(list(folder.glob("cpu[0-9]*"))) or os.cpu_count() or 1
    before, times = _spent(root), _times(root)
    pause(WATCHED)
    total = sum(times)
    ticks = (sum(_times(root)) - total) / cpus
    quota, waits = _group(root)
    return Noise(
        cpus=cpus,
        virtual=" hypervisor" in _text(root / "proc/cpuinfo"),
        governors=Counter(filter(None, map(_text, folder.glob("cpu[0-9]*/cpufreq/scaling_governor")))),
        boost=_boost(root),
        shared_cores=_shared_cores(folder),
        mhz=_mhz(root),
        load=_number(_text(root / "proc/loadavg").partition(" ")[0]),
        busy=_busy(before, _spent(root), ticks, own or os.getpid()),
        stolen=times[7] / total if len(times) > 7 and total else None,
        swap=_swap(root),
        huge_pages=_chosen(_text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        layout=_whole(_text(root / "proc/sys/kernel/randomize_va_space")),
        isolated=_text(folder / "isolated"),
        quota=quota,
        waits=waits,
        nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or 1,
        balancing=_text(root / "proc/sys/kernel/numa_balancing") not in {"", "0"},
        interrupts=any(_text(path) == "irqbalance" for path in root.glob("proc/[0-9]*/comm")),
        mains=_mains(root),
        hot=_hot(folder),
        gpus=gpus(),
    )


def _text(path: Path) -> str:
    """Return what a file says; empty where it is not there or may not be read."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    number = _number(text)
    return None if number is None else int(number)


def _chosen(text: str) -> str | None:
    """Return the word in brackets: ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else None


def _boost(root: Path) -> tuple[str, bool] | None:
    for name, on in ((f"{CPUS}/intel_pstate/no_turbo", "0"), (f"{CPUS}/cpufreq/boost", "1")):
        said = _text(root / name)
        if said:
            return name, said == on
    return None


def _shared_cores(folder: Path) -> int | None:
    """Return how many cores have several threads; None where the kernel does not tell."""
    siblings = set(filter(None, map(_text, folder.glob("cpu[0-9]*/topology/thread_siblings_list"))))
    return sum(bool(re.search("[,-]", one)) for one in siblings) if siblings else None


def _mhz(root: Path) -> tuple[float, ...]:
    """Return the clock of each CPU, as far as any is told."""
    exact = [_number(_text(path)) for path in sorted((root / CPUS).glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))]
    if exact:
        return tuple(khz / 1000 for khz in exact if khz)
    return tuple(map(float, re.findall(r"^cpu MHz\s*: ([0-9.]+)$", _text(root / "proc/cpuinfo"), re.MULTILINE)))


def _times(root: Path) -> list[int]:
    """Return the ticks of all CPUs since the start: user, nice, system, idle, iowait, irq, softirq, steal."""
    first = _text(root / "proc/stat").partition("\n")[0].split()
    return [int(word) for word in first[1:9]] if first[:1] == ["cpu"] else []


def _spent(root: Path) -> dict[int, tuple[str, int]]:
    """Return process -> its name and the ticks it computed; see proc(5), stat, fields 2, 14 and 15."""
    found = {}
    for path in root.glob("proc/[0-9]*/stat"):
        name, _, rest = _text(path).partition("(")[2].rpartition(")")
        fields = rest.split()
        if len(fields) > 12:
            found[int(path.parent.name)] = name, int(fields[11]) + int(fields[12])
    return found


def _busy(
    before: Mapping[int, tuple[str, int]], after: Mapping[int, tuple[str, int]], ticks: float, own: int
) -> tuple[Busy, ...]:
    """Return the processes that kept a twentieth of a CPU busy for the length of ``ticks``, the busiest first."""
    if ticks <= 0:
        return ()
    found = [
        Busy(name, pid, (now - before[pid][1]) / ticks)
        for pid, (name, now) in after.items()
        if pid in before and pid != own
    ]
    found.sort(key=lambda one: -one.cpus)
    return tuple(one for one in found[:NAMED] if one.cpus >= 0.05)


def _swap(root: Path) -> tuple[int, int] | None:
    found = dict(re.findall(r"^(Swap(?:Total|Free)):\s+(\d+) kB$", _text(root / "proc/meminfo"), re.MULTILINE))
    if len(found) < 2:
        return None
    total, free = int(found["SwapTotal"]) * 1024, int(found["SwapFree"]) * 1024
    return total - free, total


def _group(root: Path) -> tuple[float | None, int]:
    """Return how many CPUs the control group may use at a time, and how often it waited for its next period."""
    group = root / "sys/fs/cgroup"
    for limit, statistics in (
        (_text(group / "cpu.max").split(), group / "cpu.stat"),
        ([_text(group / "cpu/cpu.cfs_quota_us"), _text(group / "cpu/cpu.cfs_period_us")], group / "cpu/cpu.stat"),
    ):
        if len(limit) == 2 and limit[0].isdigit() and limit[1].isdigit():
            waits = re.search(r"^nr_throttled (\d+)$", _text(statistics), re.MULTILINE)
            return int(limit[0]) / int(limit[1]), int(waits[1]) if waits else 0
    return None, 0


def _mains(root: Path) -> bool | None:
    """Say whether it is on mains power; None where there is no battery."""
    supplies = list(_supplies(root))
    if "Battery" not in {kind for kind, _ in supplies}:
        return None
    return any(online for kind, online in supplies if kind in {"Mains", "USB"})


def _supplies(root: Path) -> Iterator[tuple[str, bool]]:
    for path in root.glob("sys/class/power_supply/*"):
        if _text(path / "scope") != "Device":  # a mouse has a battery, too
            yield _text(path / "type"), _text(path / "online") == "1"


def _hot(folder: Path) -> int | None:
    counts = [_whole(_text(path)) for path in folder.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
    return sum(count or 0 for count in counts) if counts else None
