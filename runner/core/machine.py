"""This machine's cores, memory and software, read from the kernel; the facts that all records of a run share."""

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
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
WSL_GPU = Path("/dev/dxg")


def cores() -> int:
    """Return the number of physical cores that this process may use; at least 1.

    It is the smaller of its affinity and the quota of its control group (a container or CI job of 2 CPUs on 64 cores).
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
    """Return the bytes that the control group may use; None if its limit is not below the machine's memory."""
    for path in (GROUP / "memory.max", GROUP / "memory" / "memory.limit_in_bytes"):
        try:
            limit = int(path.read_text())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        return limit if limit < memory()[0] else None
    return None


def available_memory() -> int:
    """Return the bytes that are available now, within the limit of the control group."""
    free = memory()[1]
    return min(free, memory_limit() or free)


def physical_cores(cpus: Collection[int]) -> int:
    """Return on how many cores some logical CPUs are; the number of CPUs if the kernel does not show it."""
    cores = set()
    for cpu in cpus:
        topology = TOPOLOGY / f"cpu{cpu}" / "topology"
        try:
            package = (topology / "physical_package_id").read_text().strip()
            cores.add((package, (topology / "core_id").read_text().strip()))
        except OSError:
            return len(cpus)
    return len(cores)


def spread_over_cores(threads: int, cpus: Collection[int]) -> tuple[int, ...]:
    """Return one logical CPU for each thread, no two of them on one core.

    They are on one package if one has enough cores. The core of CPU 0, which handles most interrupts, is used only if
    that saves a package. Empty if there are fewer cores than threads, or the kernel does not show the cores.
    """
    packages: dict[int, dict[int, int]] = {}
    try:
        for cpu in sorted(cpus):
            package, core = _package_and_core(cpu)
            packages.setdefault(package, {}).setdefault(core, cpu)
        first_core = _package_and_core(0)
    except (OSError, ValueError):
        return ()
    without_first = [
        [cpu for core, cpu in cores.items() if (package, core) != first_core] for package, cores in packages.items()
    ]
    by_package = [list(cores.values()) for cores in packages.values()]
    all_cores = [cpu for cpus in sorted(by_package, key=len, reverse=True) for cpu in cpus]
    candidates = [cpus for cpus in (*without_first, *by_package, all_cores) if len(cpus) >= threads]
    return tuple(sorted(candidates[0][:threads])) if candidates else ()


def split_cores(count: int, cpus: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """Return the logical CPUs for each of ``count`` processes that run in parallel: whole cores, package by package.

    One core is left for the caller if there are more cores than processes. The shares are empty if there are fewer, or
    if the kernel does not show the cores.
    """
    cpus_by_core: dict[tuple[int, int], list[int]] = {}
    try:
        for cpu in sorted(cpus):
            cpus_by_core.setdefault(_package_and_core(cpu), []).append(cpu)
    except (OSError, ValueError):
        cpus_by_core = {}
    cores = [cpus_by_core[core] for core in sorted(cpus_by_core)]
    reserved = len(cores) > count
    each = (len(cores) - reserved) // count
    shares = (cores[reserved:][k * each : (k + 1) * each] for k in range(count))
    return tuple(tuple(cpu for core in share for cpu in core) for share in shares)


def cpu_list(text: str) -> tuple[int, ...]:
    """Return the numbers of a list of the kernel; raises ValueError for any other text.

    >>> cpu_list("0-2,8")
    (0, 1, 2, 8)
    """
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)


def _package_and_core(cpu: int) -> tuple[int, int]:
    """Return package and core of a logical CPU; raises OSError or ValueError if the kernel does not show them."""
    topology = TOPOLOGY / f"cpu{cpu}" / "topology"
    return int((topology / "physical_package_id").read_text()), int((topology / "core_id").read_text())


def memory() -> tuple[int, int]:
    """Return (total, available) memory in bytes."""
    sizes = {}
    for line in MEMORY_INFO.read_text().splitlines():
        name, _, value = line.partition(":")
        sizes[name] = int(value.split()[0]) * 1024 if value.split() else 0
    return sizes["MemTotal"], sizes["MemAvailable"]


def cpu_flags(path: Path = CPU_INFO) -> frozenset[str]:
    """Return what the first processor can do, as the kernel names it, ``avx512f``; nothing where it does not say."""
    lines = path.read_text().splitlines() if path.is_file() else []
    named = (line.partition(":") for line in lines)
    return frozenset(next((text for name, _, text in named if name.strip() in ("flags", "Features")), "").split())


def cpu_name() -> str:
    """Return the processor's name from the kernel, else the architecture."""
    for line in CPU_INFO.read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def describe(gpus: Sequence[Gpu]) -> dict[str, Any]:
    """Return the facts about this machine, and about the GPUs that are measured on, as JSON values."""
    boards = [{"uuid": gpu.uuid, "name": gpu.name, "driver": gpu.driver} for gpu in gpus]
    governor = TOPOLOGY / "cpu0" / "cpufreq" / "scaling_governor"
    return {
        "version": 1,
        "host": platform.node(),
        "kernel": platform.release(),
        "cpu": cpu_name(),
        "cores": cores(),
        "logical_cores": len(os.sched_getaffinity(0)),
        "online_cpus": os.cpu_count() or 1,
        "memory_bytes": memory()[0],
        "governor": governor.read_text().strip() if governor.exists() else None,
        "huge_pages": huge_pages(),
        "load_average": list(os.getloadavg()),
        "gpu": boards[0] if boards else None,
        **({"gpus": boards} if len(boards) > 1 else {}),
    }


def huge_pages() -> str | None:
    """Return which memory gets transparent huge pages: ``always``, ``madvise`` or ``never``; None if it is not known.

    References:
        The kernel's page on transparent huge pages: the setting is the word in brackets.
    """
    try:
        words = HUGE_PAGES.read_text().split()
    except OSError:
        return None
    return next((word[1:-1] for word in words if word.startswith("[")), None)


def system() -> dict[str, str | None]:
    """Return ``os``, ``glibc`` and ``architecture`` of this machine; None for what is unknown."""
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        name = None
    return {"os": name, "glibc": glibc(), "architecture": platform.machine()}


def is_wsl(release: str | None = None) -> bool:
    """Return whether this is the Windows Subsystem for Linux, by the kernel's release and by its file for GPUs.

    >>> is_wsl("5.15.90.1-microsoft-standard-WSL2")
    True
    """
    return "microsoft" in (release or platform.release()).lower() or WSL_GPU.exists()


def glibc() -> str | None:
    """Return the version of the C library, ``2.36``; None if it is not the GNU C library."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        return None
    return version if name == "glibc" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The physical cores of a machine, its bytes of memory, and the version of its C library, None if unknown.

    ``near_gpu`` is the number of cores that each GPU has near it, 0 if unknown.
    """

    cores: int
    memory: int
    glibc: str | None
    near_gpu: int = 0

    def each(self, devices: int) -> int:
        """Return the cores for each of several devices, one core left for the runner; all cores for one device.

        A GPU has no more than those near it.
        """
        share = self.cores if devices < 2 else max(1, (self.cores - 1) // devices)
        return min(share, self.near_gpu or share)


def capacity() -> Capacity:
    """Return the capacity of this machine, within the limits of its control group."""
    return Capacity(cores=cores(), memory=memory_limit() or memory()[0], glibc=glibc())
