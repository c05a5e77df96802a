"""``runner tune``: the sources of noise on this machine, their effect on times, and the commands that change them."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from runner.core.busy import Busy
from runner.core.units import memory
from runner.core.user import name_of
from runner.machine.doctor import table
from runner.machine.doctor.noise import Noise, Settings, read_noise

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


def _seen(name: str, why: str, detail: str, command: str | None = None, *, is_noisy: bool) -> NoiseSource:
    """Return a source that the machine shows; the command only where there is something to change."""
    return NoiseSource(name, "noisy" if is_noisy else "ok", detail, why, command if is_noisy else None)


def _governor(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "governor", "with any governor but performance the clock follows the load"
    if not noise.governors:
        yield NoiseSource(name, "unseen", HOST if noise.virtual else HIDDEN, why)
        return
    detail = ", ".join(f"{governor} on {count} CPUs" for governor, count in sorted(noise.governors.items()))
    command = "sudo cpupower frequency-set --governor performance"
    yield _seen(name, why, detail, command, is_noisy=set(noise.governors) != {"performance"})


def _boost(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "turbo", "a turbo clock depends on heat and on how many cores are busy"
    if noise.boost is None:
        yield NoiseSource(name, "unseen", HOST if noise.virtual else HIDDEN, why)
        return
    path, on = noise.boost
    command = f"echo {1 if path.endswith('no_turbo') else 0} | sudo tee /{path}"
    yield _seen(name, why, "on" if on else "off", command, is_noisy=on)


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
    if noise.overheated is not None:
        count = f"cores were slowed down {noise.overheated} times since the start; cool it"
        detail = count if noise.overheated else "no core was slowed down since the start"
        yield _seen("heat", "a hot core is slowed down", detail, is_noisy=noise.overheated > 0)


def _mains(noise: Noise) -> Iterator[NoiseSource]:
    if noise.mains is not None:
        detail = "mains" if noise.mains else "battery; plug it in"
        yield _seen("power", "on a battery the processor runs slower", detail, is_noisy=not noise.mains)


def _threads(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "hyper-threads", "two threads of a core share its units, and the scheduler chooses which threads"
    if noise.shared_cores is None:
        yield NoiseSource(name, "unseen", HIDDEN, why)
        return
    off = "off, or hidden by the host" if noise.virtual else "off"
    detail = f"on, in {noise.shared_cores} cores" if noise.shared_cores else off
    command = "echo off | sudo tee /sys/devices/system/cpu/smt/control"
    yield _seen(name, why, detail, command, is_noisy=noise.shared_cores > 0)


def _load(noise: Noise) -> Iterator[NoiseSource]:
    why = "other processes use the CPUs, their caches and the memory"
    busy = ", ".join(f"{process.name} at {100 * process.cpus:.0f} % of a CPU" for process in noise.busy)
    busy_cpus = sum(process.cpus for process in noise.busy)
    detail = f"{'' if noise.load is None else f'{noise.load:.2f} over the last minute on {noise.cpus} CPUs, '}"
    detail += f"busy now: {busy}" if busy else "nothing else is busy now"
    limit = max(0.2, MAX_LOAD * noise.cpus)
    is_noisy = busy_cpus > limit or (noise.load or 0) > max(1.0, limit)
    command = None
    if is_noisy and noise.busy:
        advice, command = _about_busiest(noise.busy[0], noise.busiest_user)
        detail += f"; {advice}"
    yield _seen("other load", why, detail, command, is_noisy=is_noisy)


def _about_busiest(process: Busy, user: int | None) -> tuple[str, str | None]:
    """Return what helps against a process, and the command that pauses it if its user is the one of this process."""
    if user == os.getuid():
        advice = f"wait for the first, or pause it and continue it later: kill -CONT {process.pid}"
        return advice, f"kill -STOP {process.pid}"
    if user is None:
        return f"wait for the first, process {process.pid}", None
    owner = name_of(user)
    return f"wait for the first, process {process.pid} of the user {owner}, or ask {owner} to pause it", None


def _stolen(noise: Noise) -> Iterator[NoiseSource]:
    if noise.virtual and noise.stolen is not None:
        is_noisy = noise.stolen > MAX_STOLEN
        detail = f"{100 * noise.stolen:.2f} % of the CPU time since the start"
        detail += "; use a machine that is not shared" * is_noisy
        why = "while the host serves other machines, the clock of a step runs on"
        yield _seen("stolen time", why, detail, is_noisy=is_noisy)


def _quota(noise: Noise) -> Iterator[NoiseSource]:
    detail = "none"
    if noise.quota is not None:
        detail = f"{noise.quota:g} CPUs at a time, waited {noise.throttled} times"
        detail += "; start the container or job without the limit"
    why = "a step that has used up its quota waits for the next period"
    yield _seen("CPU quota", why, detail, is_noisy=noise.quota is not None)


def _swap(noise: Noise) -> Iterator[NoiseSource]:
    why = "pages in swap are read from the disk in the middle of a step"
    if noise.swap is None:
        yield NoiseSource("swap", "unseen", HIDDEN, why)
        return
    used, total = noise.swap
    in_use = f"{memory(used)} of {memory(total)} in use" if total else "none"
    yield _seen("swap", why, in_use, "sudo swapoff -a && sudo swapon -a", is_noisy=used > MAX_SWAPPED * total)


def _huge_pages(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "huge pages", "with always, whether a step gets them depends on how fragmented the memory is"
    if noise.huge_pages is None:
        yield NoiseSource(name, "unseen", HIDDEN, why)
        return
    command = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
    yield _seen(name, why, noise.huge_pages, command, is_noisy=noise.huge_pages == "always")


def _layout(noise: Noise) -> Iterator[NoiseSource]:
    name, why = "addresses", "a layout makes a step faster or slower; rounds average over random layouts"
    if noise.randomization is None:
        yield NoiseSource(name, "unseen", HIDDEN, why)
        return
    is_noisy = noise.randomization < 2
    detail = "the same for each process" if is_noisy else "random for each process"
    yield _seen(name, why, detail, "sudo sysctl kernel.randomize_va_space=2", is_noisy=is_noisy)


def _isolated(noise: Noise) -> Iterator[NoiseSource]:
    why = "the scheduler puts other processes on CPUs that are not isolated"
    if noise.isolated:
        detail = f"CPUs {noise.isolated} are isolated; `taskset -c {noise.isolated} runner run ...` measures on them"
    else:
        detail = "no CPU is isolated; for differences below a per cent start the kernel with `isolcpus=`"
    yield NoiseSource("isolation", "ok", detail, why)


def _nodes(noise: Noise) -> Iterator[NoiseSource]:
    if noise.nodes > 1:
        moved = "the kernel moves pages between them" if noise.balancing else "pages stay where they are"
        why, command = (
            "memory of another node is slower, and the kernel moves pages",
            "sudo sysctl kernel.numa_balancing=0",
        )
        yield _seen("memory nodes", why, f"{noise.nodes}, and {moved}", command, is_noisy=noise.balancing)


def _interrupts(noise: Noise) -> Iterator[NoiseSource]:
    why = "an interrupt takes its CPU away from a step"
    detail = f"{'irqbalance' if noise.irqbalance else 'nothing'} moves them between CPUs"
    yield _seen("interrupts", why, detail, "sudo systemctl stop irqbalance", is_noisy=noise.irqbalance)


def _gpu(gpu: Settings) -> Iterator[NoiseSource]:
    name, smi = f"gpu {gpu.index}", f"sudo nvidia-smi --id={gpu.index}"
    why = "without it the driver shuts the GPU down between processes and resets locked clocks"
    if gpu.persistent is None:
        yield NoiseSource(f"{name} persistence", "unseen", f"{gpu.name}: the driver does not show it", why)
    else:
        detail = f"{gpu.name}: {'on' if gpu.persistent else 'off'}"
        yield _seen(f"{name} persistence", why, detail, f"{smi} --persistence-mode=1", is_noisy=not gpu.persistent)
    why = "a clock that is not locked depends on heat, power and load"
    mhz = f"{gpu.mhz} of at most {gpu.most_mhz} MHz; " if gpu.mhz and gpu.most_mhz else ""
    if gpu.held_back:
        yield NoiseSource(f"{name} clock", "noisy", f"{mhz}slowed down by {' and '.join(gpu.held_back)}", why)
    else:
        hold = int(STEADY_CLOCK * gpu.most_mhz) if gpu.most_mhz else 0
        command = f"{smi} --lock-gpu-clocks={hold},{hold}" if hold else None
        yield NoiseSource(f"{name} clock", "unseen", f"{mhz}no driver shows whether it is locked", why, command)
    why = "kernels of another program run between those of a step"
    if gpu.processes is not None:
        detail = f"{gpu.processes or 'no'} other process{'es compute' if gpu.processes else ' computes'} on it"
        yield _seen(f"{name} processes", why, detail, f"nvidia-smi --id={gpu.index}", is_noisy=gpu.processes > 0)


VERSION = 1
WIDTH = 100


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of ``runner tune``."""

    sources: Sequence[NoiseSource]

    @property
    def verdict(self) -> str:
        """How many sources are noisy, in a sentence."""
        noisy = [source.name for source in self.sources if source.state == "noisy"]
        if not noisy:
            return "nothing that can be seen here makes times noisy; nothing was changed"
        verb = "makes" if len(noisy) == 1 else "make"
        return f"{len(noisy)} of {len(self.sources)} {verb} times noisy: {', '.join(noisy)}; nothing was changed"

    def json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {"version": VERSION, "sources": [source.json() for source in self.sources]}

    def text(self, width: int = WIDTH, *, colour: bool = False) -> str:
        """Return a table of ``width`` columns, and the verdict."""
        rows = ((source.state, source.name, _description(source)) for source in self.sources)
        return table(rows, self.verdict, width, colour=colour)


def examine() -> Tuning:
    """Examine this machine for about a second; nothing is changed."""
    return Tuning(judge(read_noise()))


def _description(source: NoiseSource) -> str:
    command = f"\nto change it: `{source.command}`" if source.command else ""
    return f"{source.detail} ({source.why}){command}"
