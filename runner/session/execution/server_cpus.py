"""The processors that the servers of each device keep to: cores of their own, and those near its GPU."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from runner.core import machine
from runner.core.model import Gpu
from runner.gpu.locality import Locality, Near, locality, near_shares

UNPINNED = "any: not pinned"
TOO_FEW = "any: more threads than cores near the GPU"
UNKNOWN = "unknown: neither the kernel nor the driver names the CPUs near the GPU"


class ServerCpus(NamedTuple):
    """The logical CPUs of a device's servers, empty for any; and their relation to the GPU, empty on a CPU."""

    cpus: tuple[int, ...] = ()
    affinity: str = ""


def on_cpu(threads: int, *, pin: bool) -> ServerCpus:
    """Return the processors for the only device of a run, which is the CPU."""
    return ServerCpus(machine.spread_over_cores(threads, os.sched_getaffinity(0)) if pin else ())


def on_gpus(gpus: Sequence[Gpu], threads: int, *, pin: bool, near: Near = locality) -> tuple[ServerCpus, ...]:
    """Return the processors for each GPU, or for GPUs that compute together, whose UUIDs have commas between them.

    GPUs near the same processors divide their cores. If nobody knows which processors are near, a GPU alone has none
    of its own, and several divide all cores. No GPU has fewer cores than ``threads``: it uses any instead.
    """
    if not pin:
        return (ServerCpus(affinity=UNPINNED),) * len(gpus)
    allowed = os.sched_getaffinity(0)
    localities = [near(gpu.uuid) for gpu in gpus]
    shares = near_shares([each.cpus for each in localities], allowed)
    return tuple(_enough(share, each, threads) for share, each in zip(shares, localities, strict=True))


def _enough(share: tuple[int, ...], near: Locality, threads: int) -> ServerCpus:
    if share and machine.physical_cores(share) < threads:
        return ServerCpus(affinity=TOO_FEW)
    if not near.cpus:
        return ServerCpus(share, UNKNOWN)
    node = "" if near.node is None else f", NUMA node {near.node}"
    return ServerCpus(share, f"near the GPU{node}") if share else ServerCpus(affinity=UNKNOWN)
