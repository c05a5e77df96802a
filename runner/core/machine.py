"""What this machine is: the facts every record of a run shares, read once from the kernel."""

import os
import platform
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.core.model import Gpu

CPU_INFO = Path("/proc/cpuinfo")
MEMORY_INFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")
TOPOLOGY = Path("/sys/devices/system/cpu")


def cores() -> int:
    """Return the number of physical cores this process may use; at least 1.

    The smaller of its affinity and the quota of its control group (a container or CI job of 2 CPUs on 64 cores).
    """
    return max(1, int(min(physical_cores(os.sched_getaffinity(0)), cpu_quota())))


def cpu_quota(group: Path = GROUP) -> float:
    """Return how many CPUs a control group may use at a time; infinity where it sets no limit."""
    try:
        limit, period = (group / "cpu.max").read_text().split()  # version 2
        return float("inf") if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass
    try:
        limit = (group / "cpu" / "cpu.cfs_quota_us").read_text()  # version 1
        period = (group / "cpu" / "cpu.cfs_period_us").read_text()
        return int(limit) / int(period) if int(limit) > 0 else float("inf")
    except (OSError, ValueError):
        return float("inf")


def memory_limit() -> int | None:
    """Return the bytes the control group may hold; None where it sets no limit below the machine's memory."""
    for path in (GROUP / "memory.max", GROUP / "memory" / "memory.limit_in_bytes"):
        try:
            most = int(path.read_text())
        except (OSError, ValueError):  # not there, or "max"
            continue
        return most if most < memory()[0] else None
    return None


def room() -> int:
    """Return the bytes that can be had at this moment, in the machine and in its control group."""
    free = memory()[1]
    return min(free, memory_limit() or free)


def physical_cores(cpus: Collection[int]) -> int:
    """Return how many cores logical CPUs are on; as many as there are CPUs where the kernel does not tell."""
    found = set()
    for cpu in cpus:
        topology = TOPOLOGY / f"cpu{cpu}" / "topology"
        try:
            package = (topology / "physical_package_id").read_text().strip()
            found.add((package, (topology / "core_id").read_text().strip()))
        except OSError:
            return len(cpus)
    return len(found)


def apart(threads: int, cpus: Collection[int]) -> tuple[int, ...]:
    """Return as many of some logical CPUs as there are threads, each on a core of its own.

    They are of one package where one has enough. The core of CPU 0, which answers most interrupts, is left out where
    that does not need a further package. Empty where there are fewer cores than threads, or the kernel does not tell.
    """
    packages: dict[int, dict[int, int]] = {}
    try:
        for cpu in sorted(cpus):
            package, core = _place(cpu)
            packages.setdefault(package, {}).setdefault(core, cpu)
        home = _place(0)
    except (OSError, ValueError):
        return ()
    away = [[cpu for core, cpu in cores.items() if (name, core) != home] for name, cores in packages.items()]
    whole = [list(cores.values()) for cores in packages.values()]
    every = [cpu for part in sorted(whole, key=len, reverse=True) for cpu in part]
    enough = [part for part in (*away, *whole, every) if len(part) >= threads]
    return tuple(sorted(enough[0][:threads])) if enough else ()


def shares(count: int, cpus: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """Return the logical CPUs of each of ``count`` processes that work side by side: whole cores, package by package.

    One core is left for who asks, if there are more cores than processes. Empty shares where there are fewer, or the
    kernel does not tell.
    """
    found: dict[tuple[int, int], list[int]] = {}
    try:
        for cpu in sorted(cpus):
            found.setdefault(_place(cpu), []).append(cpu)
    except (OSError, ValueError):
        found = {}
    whole = [found[place] for place in sorted(found)]
    spare = len(whole) > count
    each = (len(whole) - spare) // count
    return tuple(tuple(cpu for core in whole[spare:][k * each : (k + 1) * each] for cpu in core) for k in range(count))


def _place(cpu: int) -> tuple[int, int]:
    """Return the package and the core of a logical CPU; raises OSError or ValueError where the kernel does not tell."""
    topology = TOPOLOGY / f"cpu{cpu}" / "topology"
    return int((topology / "physical_package_id").read_text()), int((topology / "core_id").read_text())


def memory() -> tuple[int, int]:
    """Return (total, available) memory in bytes."""
    found = {}
    for line in MEMORY_INFO.read_text().splitlines():
        name, _, rest = line.partition(":")
        found[name] = int(rest.split()[0]) * 1024 if rest.split() else 0
    return found["MemTotal"], found["MemAvailable"]


def cpu_name() -> str:
    """Return the processor's name as the kernel gives it, the architecture where it gives none."""
    for line in CPU_INFO.read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def describe(gpus: Sequence[Gpu]) -> dict[str, Any]:
    """Return the facts of this machine, and of the GPUs that are measured on, as JSON values."""
    boards = [{"uuid": gpu.uuid, "name": gpu.name, "driver": gpu.driver} for gpu in gpus]
    governor = TOPOLOGY / "cpu0" / "cpufreq" / "scaling_governor"
    return {
        "version": 1,
        "host": platform.node(),
        "kernel": platform.release(),
        "cpu": cpu_name(),
        "cores": cores(),
        "logical_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory()[0],
        "governor": governor.read_text().strip() if governor.exists() else None,
        "load_average": list(os.getloadavg()),
        "gpu": boards[0] if boards else None,
        **({"gpus": boards} if len(boards) > 1 else {}),
    }


def system() -> dict[str, str | None]:
    """Return what software this machine is: ``os``, ``glibc`` and ``architecture``; None for what it does not tell."""
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        name = None
    return {"os": name, "glibc": glibc(), "architecture": platform.machine()}


def glibc() -> str | None:
    """Return the version of the C library, ``2.36``; None where it is another than the GNU one."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        return None
    return version if name == "glibc" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a machine has to offer: physical cores, bytes of memory, and its C library, None where that is not known."""

    cores: int
    memory: int
    glibc: str | None

    def each(self, devices: int) -> int:
        """Return the cores for each of several devices, one left for the runner; all of them where there is one."""
        return self.cores if devices < 2 else max(1, (self.cores - 1) // devices)


def capacity() -> Capacity:
    """Return what this machine has to offer."""
    return Capacity(cores=cores(), memory=memory_limit() or memory()[0], glibc=glibc())
