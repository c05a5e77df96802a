"""Which logical CPUs are near a GPU: those of its NUMA node, from the kernel, else from the driver.

Sources: Documentation/ABI/testing/sysfs-bus-pci of Linux (``local_cpulist``, ``numa_node``); nvml.h,
``nvmlDeviceGetCpuAffinity``.
"""

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.core import machine
from runner.core.errors import GpuError
from runner.core.model import Gpu
from runner.core.threads import call_with_timeout
from runner.gpu import nvml

BUS = Path("/sys/bus/pci/devices")


@dataclass(frozen=True, slots=True)
class Locality:
    """Which CPUs are near a GPU.

    Attributes:
        cpus: the numbers of the logical CPUs; empty if they are unknown.
        node: the NUMA node; None if it is unknown, or if the machine has a single one.
    """

    cpus: frozenset[int] = frozenset()
    node: int | None = None


Near = Callable[[str], Locality]


def locality(uuid: str, bus: Path = BUS) -> Locality:
    """Return the CPUs near a GPU or a MIG slice; those of all GPUs for several UUIDs with commas between them.

    A GPU that the kernel does not list, as in WSL, and for which the driver names no CPUs, has none.

    Args:
        uuid: as the driver names it.
        bus: the folder of the kernel's PCI devices.
    """
    each = [_of_one(name, bus) for name in uuid.split(",")]
    if not all(near.cpus for near in each):
        return Locality()
    nodes = {near.node for near in each}
    return Locality(frozenset().union(*(near.cpus for near in each)), nodes.pop() if len(nodes) == 1 else None)


def _of_one(uuid: str, bus: Path) -> Locality:
    def ask() -> tuple[str | None, tuple[int, ...] | None]:
        with nvml.opened() as driver:
            device = driver.device(uuid)
            return device.bus(), device.near_cpus()

    try:
        address, by_driver = call_with_timeout(ask)
    except GpuError:
        return Locality()
    if address is not None:
        near = by_kernel(bus / address)
        if near.cpus:
            return near
    return Locality(frozenset(by_driver or ()))


def by_kernel(device: Path) -> Locality:
    """Return what the kernel says of a PCI device; no CPUs if it says nothing.

    A ``numa_node`` of -1 means that the machine has a single node, or that its firmware assigns the device to none. The
    kernel then lists all CPUs.
    """
    try:
        cpus = machine.cpu_list((device / "local_cpulist").read_text())
        node = int((device / "numa_node").read_text())
    except (OSError, ValueError):
        return Locality()
    return Locality(frozenset(cpus), node if node >= 0 else None)


def cores_near(gpus: Sequence[Gpu], near: Near = locality) -> int:
    """Return the number of cores for the threads of each GPU's servers; 0 if the CPUs near a GPU are unknown."""
    local = [near(gpu.uuid).cpus for gpu in gpus]
    if not local or not all(local):
        return 0
    return min(machine.physical_cores(share) for share in near_shares(local, os.sched_getaffinity(0)))


def near_shares(near: Sequence[Collection[int]], allowed: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """Return the logical CPUs for each of several devices, of those that are near it and allowed.

    Devices with the same CPUs divide them into whole cores; if there are fewer cores than devices, each has all of
    them. Where the CPUs of one of several devices are unknown, all devices divide the allowed ones.

    Args:
        near: the CPUs near each device; empty if unknown.
        allowed: the CPUs that this process may use.
    """
    local = [frozenset(cpus) & frozenset(allowed) for cpus in near]
    if not all(local):
        return machine.split_cores(len(near), allowed) if len(near) > 1 else ((),)
    by_cpus: dict[frozenset[int], list[int]] = {}
    for index, cpus in enumerate(local):
        by_cpus.setdefault(cpus, []).append(index)
    shares: dict[int, tuple[int, ...]] = {}
    for cpus, indices in by_cpus.items():
        every = tuple(sorted(cpus))
        parts = machine.split_cores(len(indices), cpus) if len(indices) > 1 else (every,)
        shares |= {index: part or every for index, part in zip(indices, parts, strict=True)}
    return tuple(shares[index] for index in range(len(near)))
