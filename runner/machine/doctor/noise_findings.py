"""Which facts about a machine make its times noisy, why, and the command that changes each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from runner.core.units import memory
from runner.gpu.settings import Settings
from runner.machine.doctor.noise import Noise

State = Literal["ok", "noisy", "unseen"]

MAX_LOAD = 0.1  # of the CPUs
MAX_STOLEN = 0.001  # of the CPU time
MAX_SWAPPED = 0.1  # of the swap; a machine that has been on for days keeps unused pages there
MAX_CLOCK_DIFFERENCE = 0.05  # between CPUs
STEADY_CLOCK = 0.75  # of the highest clock of a GPU; heat and power allow most boards to keep it
HOST = "cannot be seen here: the host of this virtual machine decides"
HIDDEN = "cannot be seen here: the kernel does not show it"


@dataclass(frozen=True, slots=True)
class NoiseSource:
    """A possible source of noise.

    Attributes:
        name: what it is.
        state: ``noisy`` or ``ok``; ``unseen`` if this machine does not show it.
        detail: what the machine shows.
        why: its effect on times.
        command: a command that changes it; None if nothing is to be changed or no command can.
    """

    name: str
    state: State
    detail: str
    why: str
    command: str | None = None

    def json(self) -> dict[str, Any]:
        """Return the source as JSON values."""
        return {
            "what": self.name,
            "state": self.state,
            "found": self.detail,
            "why": self.why,
            "command": self.command,
        }


def judge(noise: Noise) -> tuple[NoiseSource, ...]:
    """Return each possible source of noise with its state."""
    parts: tuple[Callable[[Noise], Iterator[NoiseSource]], ...] = (
        *(_governor, _boost, _clocks, _heat, _mains, _threads, _load, _stolen, _quota),
        *(_swap, _huge_pages, _layout, _isolated, _nodes, _interrupts),
    )
    sources = [source for part in parts for source in part(noise)]
    return (*sources, *(source for gpu in noise.gpus for source in _gpu(gpu)))


def _governor(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "governor", "with any governor but performance the clock follows the load"
    if not noise.governors:
        yield NoiseSource(name, "unseen", HOST if noise.virtual else HIDDEN, why)
        return
    detail = ", ".join(f"{governor} on {count} CPUs" for governor, count in sorted(noise.governors.items()))
    if set(noise.governors) == {"performance"}:
        yield NoiseSource(name, "ok", detail, why)
    else:
        yield NoiseSource(name, "noisy", detail, why, "sudo cpupower frequency-set --governor performance")


def _boost(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "turbo", "a turbo clock depends on heat and on how many cores are busy"
    if noise.boost is None:
        yield NoiseSource(name, "unseen", HOST if noise.virtual else HIDDEN, why)
        return
    path, on = noise.boost
    value = 1 if path.endswith("no_turbo") else 0
    if on:
        yield NoiseSource(name, "noisy", "on", why, f"echo {value} | sudo tee /{path}")
    else:
        yield NoiseSource(name, "ok", "off", why)


def _clocks(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "clocks", "a step is as fast as the CPU that it happens to run on"
    if not noise.mhz:
        yield NoiseSource(name, "unseen", HOST if noise.virtual else HIDDEN, why)
        return
    low, high = min(noise.mhz), max(noise.mhz)
    if high > (1 + MAX_CLOCK_DIFFERENCE) * low:
        command = f"sudo cpupower frequency-set --min {low:.0f}MHz --max {low:.0f}MHz" if noise.governors else None
        yield NoiseSource(name, "noisy", f"from {low:.0f} to {high:.0f} MHz", why, command)
    else:
        yield NoiseSource(name, "ok", f"{high:.0f} MHz on all CPUs" + ", as the host reports it" * noise.virtual, why)


def _heat(noise: Noise) -> Iterator[NoiseSource]:
    why = "a hot core is slowed down"
    if noise.overheated:
        yield NoiseSource(
            "heat", "noisy", f"cores were slowed down {noise.overheated} times since the start; cool it", why
        )
    elif noise.overheated is not None:
        yield NoiseSource("heat", "ok", "no core was slowed down since the start", why)


def _mains(noise: Noise) -> Iterator[NoiseSource]:
    why = "on a battery the processor runs slower"
    if noise.mains is not None:
        yield NoiseSource(
            "power", "ok" if noise.mains else "noisy", "mains" if noise.mains else "battery; plug it in", why
        )


def _threads(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "hyper-threads", "two threads of a core share its units, and the scheduler chooses which threads"
    if noise.shared_cores is None:
        yield NoiseSource(name, "unseen", HIDDEN, why)
    elif noise.shared_cores:
        command = "echo off | sudo tee /sys/devices/system/cpu/smt/control"
        yield NoiseSource(name, "noisy", f"on, in {noise.shared_cores} cores", why, command)
    else:
        yield NoiseSource(name, "ok", "off, or hidden by the host" if noise.virtual else "off", why)


def _load(noise: Noise) -> Iterator[NoiseSource]:
    why = "other processes use the CPUs, their caches and the memory"
    busy = ", ".join(f"{process.name} at {process.cpus:.0%} of a CPU" for process in noise.busy)
    busy_cpus = sum(process.cpus for process in noise.busy)
    detail = f"{'' if noise.load is None else f'{noise.load:.2f} over the last minute on {noise.cpus} CPUs, '}"
    detail += f"busy now: {busy}" if busy else "nothing else is busy now"
    limit = max(0.2, MAX_LOAD * noise.cpus)
    if busy_cpus > limit or (noise.load or 0) > max(1.0, limit):
        command = None
        if noise.busy:
            command = f"kill -STOP {noise.busy[0].pid}"
            detail += "; wait for the first, or pause it if it is yours and continue it later: "
            detail += f"kill -CONT {noise.busy[0].pid}"
        yield NoiseSource("other load", "noisy", detail, why, command)
    else:
        yield NoiseSource("other load", "ok", detail, why)


def _stolen(noise: Noise) -> Iterator[NoiseSource]:
    if not noise.virtual or noise.stolen is None:
        return
    why = "while the host serves other machines, the clock of a step runs on"
    detail = f"{noise.stolen:.2%} of the CPU time since the start"
    if noise.stolen > MAX_STOLEN:
        yield NoiseSource("stolen time", "noisy", f"{detail}; use a machine that is not shared", why)
    else:
        yield NoiseSource("stolen time", "ok", detail, why)


def _quota(noise: Noise) -> Iterator[NoiseSource]:
    why = "a step that has used up its quota waits for the next period"
    if noise.quota is None:
        yield NoiseSource("CPU quota", "ok", "none", why)
        return
    detail = f"{noise.quota:g} CPUs at a time, waited {noise.throttled} times"
    detail += "; start the container or job without the limit"
    yield NoiseSource("CPU quota", "noisy", detail, why)


def _swap(noise: Noise) -> Iterator[NoiseSource]:
    why = "pages in swap are read from the disk in the middle of a step"
    if noise.swap is None:
        yield NoiseSource("swap", "unseen", HIDDEN, why)
        return
    used, total = noise.swap
    in_use = f"{memory(used)} of {memory(total)} in use" if total else "none"
    if used > MAX_SWAPPED * total:
        yield NoiseSource("swap", "noisy", in_use, why, "sudo swapoff -a && sudo swapon -a")
    else:
        yield NoiseSource("swap", "ok", in_use, why)


def _huge_pages(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "huge pages", "with always, whether a step gets them depends on how fragmented the memory is"
    if noise.huge_pages is None:
        yield NoiseSource(name, "unseen", HIDDEN, why)
    elif noise.huge_pages == "always":
        command = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        yield NoiseSource(name, "noisy", noise.huge_pages, why, command)
    else:
        yield NoiseSource(name, "ok", noise.huge_pages, why)


def _layout(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "addresses", "a layout makes a step faster or slower; rounds average over random layouts"
    if noise.randomization is None:
        yield NoiseSource(name, "unseen", HIDDEN, why)
    elif noise.randomization < 2:
        yield NoiseSource(name, "noisy", "the same for each process", why, "sudo sysctl kernel.randomize_va_space=2")
    else:
        yield NoiseSource(name, "ok", "random for each process", why)


def _isolated(noise: Noise) -> Iterator[NoiseSource]:
    why = "the scheduler puts other processes on CPUs that are not isolated"
    if noise.isolated:
        detail = f"CPUs {noise.isolated} are isolated; `taskset -c {noise.isolated} runner run ...` measures on them"
    else:
        detail = "no CPU is isolated; for differences below a per cent start the kernel with `isolcpus=`"
    yield NoiseSource("isolation", "ok", detail, why)


def _nodes(noise: Noise) -> Iterator[NoiseSource]:
    why = "memory of another node is slower, and the kernel moves pages"
    if noise.nodes > 1 and noise.balancing:
        command = "sudo sysctl kernel.numa_balancing=0"
        yield NoiseSource(
            "memory nodes", "noisy", f"{noise.nodes}, and the kernel moves pages between them", why, command
        )
    elif noise.nodes > 1:
        yield NoiseSource("memory nodes", "ok", f"{noise.nodes}, and pages stay where they are", why)


def _interrupts(noise: Noise) -> Iterator[NoiseSource]:
    why = "an interrupt takes its CPU away from a step"
    if noise.irqbalance:
        yield NoiseSource(
            "interrupts", "noisy", "irqbalance moves them between CPUs", why, "sudo systemctl stop irqbalance"
        )
    else:
        yield NoiseSource("interrupts", "ok", "nothing moves them between CPUs", why)


def _gpu(gpu: Settings) -> Iterator[NoiseSource]:
    name, smi = f"gpu {gpu.index}", f"sudo nvidia-smi --id={gpu.index}"
    why = "without it the driver shuts the GPU down between processes and resets locked clocks"
    if gpu.persistent is None:
        yield NoiseSource(f"{name} persistence", "unseen", f"{gpu.name}: the driver does not show it", why)
    elif gpu.persistent:
        yield NoiseSource(f"{name} persistence", "ok", f"{gpu.name}: on", why)
    else:
        yield NoiseSource(f"{name} persistence", "noisy", f"{gpu.name}: off", why, f"{smi} --persistence-mode=1")
    why = "a clock that is not locked depends on heat, power and load"
    mhz = f"{gpu.mhz} of at most {gpu.most_mhz} MHz; " if gpu.mhz and gpu.most_mhz else ""
    if gpu.held_back:
        yield NoiseSource(f"{name} clock", "noisy", f"{mhz}slowed down by {' and '.join(gpu.held_back)}", why)
    else:
        hold = int(STEADY_CLOCK * gpu.most_mhz) if gpu.most_mhz else 0
        command = f"{smi} --lock-gpu-clocks={hold},{hold}" if hold else None
        yield NoiseSource(f"{name} clock", "unseen", f"{mhz}no driver shows whether it is locked", why, command)
    why = "kernels of another program run between those of a step"
    if gpu.processes:
        detail = f"{gpu.processes} other processes compute on it"
        yield NoiseSource(f"{name} processes", "noisy", detail, why, f"nvidia-smi --id={gpu.index}")
    elif gpu.processes == 0:
        yield NoiseSource(f"{name} processes", "ok", "no other process computes on it", why)
