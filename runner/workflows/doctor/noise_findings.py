"""What the facts about a machine say of its noise: fine, noisy with the command that changes it, or not to be seen."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from runner.core.units import memory
from runner.gpu.settings import Settings
from runner.workflows.doctor.noise import Noise

State = Literal["ok", "noisy", "unseen"]

LOADED = 0.1  # of the CPUs
STOLEN = 0.001  # of the CPU time
SWAPPED = 0.1  # of the swap; a machine that has been on for days keeps a little there that nobody misses
APART = 0.05  # by which clocks differ between CPUs
CALM = 0.75  # of the highest clock of a GPU, that heat and power allow it to hold
HOST = "cannot be seen here: in a virtual machine its host decides"
HIDDEN = "cannot be seen here: the kernel does not show it"


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that may make times noisy.

    Attributes:
        state: ``noisy`` where it does, ``ok`` where it does not, ``unseen`` where this machine does not tell.
        found: what was seen.
        why: what it does to times.
        command: what changes it, where it is noisy and a command can.
    """

    what: str
    state: State
    found: str
    why: str
    command: str | None = None


def judge(noise: Noise) -> tuple[Source, ...]:
    """Return a line for each thing that may make times noisy."""
    parts: tuple[Callable[[Noise], Iterator[Source]], ...] = (
        *(_governor, _boost, _clocks, _heat, _mains, _threads, _load, _stolen, _quota),
        *(_swap, _huge_pages, _layout, _isolated, _nodes, _interrupts),
    )
    found = [source for part in parts for source in part(noise)]
    return (*found, *(source for gpu in noise.gpus for source in _gpu(gpu)))


def _governor(noise: Noise) -> Iterator[Source]:
    what, why = "governor", "with another one than performance the clock follows the load"
    if not noise.governors:
        yield Source(what, "unseen", HOST if noise.virtual else HIDDEN, why)
        return
    found = ", ".join(f"{name} on {count} CPUs" for name, count in sorted(noise.governors.items()))
    if set(noise.governors) == {"performance"}:
        yield Source(what, "ok", found, why)
    else:
        yield Source(what, "noisy", found, why, "sudo cpupower frequency-set --governor performance")


def _boost(noise: Noise) -> Iterator[Source]:
    what, why = "turbo", "how fast a turbo clock is depends on heat and on how many cores work"
    if noise.boost is None:
        yield Source(what, "unseen", HOST if noise.virtual else HIDDEN, why)
        return
    path, on = noise.boost
    value = 1 if path.endswith("no_turbo") else 0
    if on:
        yield Source(what, "noisy", "on", why, f"echo {value} | sudo tee /{path}")
    else:
        yield Source(what, "ok", "off", why)


def _clocks(noise: Noise) -> Iterator[Source]:
    what, why = "clocks", "a step is as fast as the CPU that it happens to run on"
    if not noise.mhz:
        yield Source(what, "unseen", HOST if noise.virtual else HIDDEN, why)
        return
    low, high = min(noise.mhz), max(noise.mhz)
    if high > (1 + APART) * low:
        command = f"sudo cpupower frequency-set --min {low:.0f}MHz --max {low:.0f}MHz" if noise.governors else None
        yield Source(what, "noisy", f"from {low:.0f} to {high:.0f} MHz", why, command)
    else:
        yield Source(what, "ok", f"{high:.0f} MHz on all CPUs" + ", as the host tells it" * noise.virtual, why)


def _heat(noise: Noise) -> Iterator[Source]:
    why = "a hot core is slowed down"
    if noise.hot:
        yield Source("heat", "noisy", f"cores were slowed down {noise.hot} times since the start; cool it", why)
    elif noise.hot is not None:
        yield Source("heat", "ok", "no core was slowed down since the start", why)


def _mains(noise: Noise) -> Iterator[Source]:
    why = "on a battery the processor is held back"
    if noise.mains is not None:
        yield Source("power", "ok" if noise.mains else "noisy", "mains" if noise.mains else "battery; plug it in", why)


def _threads(noise: Noise) -> Iterator[Source]:
    what, why = "hyper-threads", "two threads of a core share what it can do, and the scheduler chooses which"
    if noise.shared_cores is None:
        yield Source(what, "unseen", HIDDEN, why)
    elif noise.shared_cores:
        command = "echo off | sudo tee /sys/devices/system/cpu/smt/control"
        yield Source(what, "noisy", f"on, in {noise.shared_cores} cores", why, command)
    else:
        yield Source(what, "ok", "off, or hidden by the host" if noise.virtual else "off", why)


def _load(noise: Noise) -> Iterator[Source]:
    why = "others take time of the CPUs, their caches and their memory"
    busy = ", ".join(f"{one.name} at {one.cpus:.0%} of a CPU" for one in noise.busy)
    taken = sum(one.cpus for one in noise.busy)
    found = f"{'' if noise.load is None else f'{noise.load:.2f} over the last minute on {noise.cpus} CPUs, '}"
    found += f"busy now: {busy}" if busy else "nothing else is busy now"
    limit = max(0.2, LOADED * noise.cpus)
    if taken > limit or (noise.load or 0) > max(1.0, limit):
        command = f"kill -STOP {noise.busy[0].pid}" if noise.busy else None
        yield Source("other load", "noisy", found, why, command)
    else:
        yield Source("other load", "ok", found, why)


def _stolen(noise: Noise) -> Iterator[Source]:
    if not noise.virtual or noise.stolen is None:
        return
    why = "while the host serves others, the clock of a step runs on"
    found = f"{noise.stolen:.2%} of the CPU time since the start"
    if noise.stolen > STOLEN:
        yield Source("stolen time", "noisy", f"{found}; measure on a machine of its own", why)
    else:
        yield Source("stolen time", "ok", found, why)


def _quota(noise: Noise) -> Iterator[Source]:
    why = "a step that has used up its period stands still until the next one"
    if noise.quota is None:
        yield Source("CPU quota", "ok", "none", why)
        return
    found = f"{noise.quota:g} CPUs at a time, waited {noise.waits} times; start the container or job without the limit"
    yield Source("CPU quota", "noisy", found, why)


def _swap(noise: Noise) -> Iterator[Source]:
    why = "what is in swap is read from the disk in the middle of a step"
    if noise.swap is None:
        yield Source("swap", "unseen", HIDDEN, why)
        return
    used, there = noise.swap
    if used > SWAPPED * there:
        yield Source("swap", "noisy", f"{memory(used)} of {memory(there)} in use", why, "sudo swapoff -a && sudo swapon -a")
    else:
        yield Source("swap", "ok", f"{memory(used)} of {memory(there)} in use" if there else "none", why)


def _huge_pages(noise: Noise) -> Iterator[Source]:
    what, why = "huge pages", "with always it depends on how memory is scattered whether a step gets them"
    if noise.huge_pages is None:
        yield Source(what, "unseen", HIDDEN, why)
    elif noise.huge_pages == "always":
        command = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        yield Source(what, "noisy", noise.huge_pages, why, command)
    else:
        yield Source(what, "ok", noise.huge_pages, why)


def _layout(noise: Noise) -> Iterator[Source]:
    what, why = "addresses", "a layout makes a step faster or slower; rounds average over it where it is random"
    if noise.layout is None:
        yield Source(what, "unseen", HIDDEN, why)
    elif noise.layout < 2:
        yield Source(what, "noisy", "the same for each process", why, "sudo sysctl kernel.randomize_va_space=2")
    else:
        yield Source(what, "ok", "random for each process", why)


def _isolated(noise: Noise) -> Iterator[Source]:
    why = "the scheduler puts others on the CPUs that measure unless they are kept apart"
    if noise.isolated:
        found = f"CPUs {noise.isolated} are kept apart; `taskset -c {noise.isolated} runner run ...` measures on them"
    else:
        found = "no CPU is kept apart; for differences below a per cent start the kernel with `isolcpus=`"
    yield Source("isolation", "ok", found, why)


def _nodes(noise: Noise) -> Iterator[Source]:
    why = "memory of the other node is slower, and the kernel moves pages"
    if noise.nodes > 1 and noise.balancing:
        command = "sudo sysctl kernel.numa_balancing=0"
        yield Source("memory nodes", "noisy", f"{noise.nodes}, and pages are moved between them", why, command)
    elif noise.nodes > 1:
        yield Source("memory nodes", "ok", f"{noise.nodes}, and pages stay where they are", why)


def _interrupts(noise: Noise) -> Iterator[Source]:
    why = "an interrupt takes its CPU away from a step"
    if noise.interrupts:
        yield Source("interrupts", "noisy", "irqbalance moves them about", why, "sudo systemctl stop irqbalance")
    else:
        yield Source("interrupts", "ok", "nothing moves them about", why)


def _gpu(gpu: Settings) -> Iterator[Source]:
    what, pinned = f"gpu {gpu.index}", f"sudo nvidia-smi --id={gpu.index}"
    why = "without it the driver lets go of the GPU between processes, and of the clocks that were held"
    if gpu.persistent is None:
        yield Source(f"{what} persistence", "unseen", f"{gpu.name}: the driver does not tell", why)
    elif gpu.persistent:
        yield Source(f"{what} persistence", "ok", f"{gpu.name}: on", why)
    else:
        yield Source(f"{what} persistence", "noisy", f"{gpu.name}: off", why, f"{pinned} --persistence-mode=1")
    why = "a clock that is not held depends on heat, power and load"
    mhz = f"{gpu.mhz} of at most {gpu.most_mhz} MHz; " if gpu.mhz and gpu.most_mhz else ""
    if gpu.held_back:
        yield Source(f"{what} clock", "noisy", f"{mhz}held back by {' and '.join(gpu.held_back)}", why)
    else:
        hold = int(CALM * gpu.most_mhz) if gpu.most_mhz else 0
        command = f"{pinned} --lock-gpu-clocks={hold},{hold}" if hold else None
        yield Source(f"{what} clock", "unseen", f"{mhz}no driver tells whether it is held", why, command)
    why = "another program's kernels run between those of a step"
    if gpu.processes:
        found = f"{gpu.processes} compute on it"
        yield Source(f"{what} processes", "noisy", found, why, f"nvidia-smi --id={gpu.index}")
    elif gpu.processes == 0:
        yield Source(f"{what} processes", "ok", "none computes on it", why)
