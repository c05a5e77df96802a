"""What the facts about a machine mean: ok, a warning or missing, with the fix; touches nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from runner.backends.interpreters import remedy
from runner.core.units import disk_size, memory
from runner.workflows.doctor.inspect import Facts, Outlook

State = Literal["ok", "warning", "missing"]
LITTLE_MEMORY = 4 << 30  # two servers of a modern framework with their children on the smaller cases
DRIVER = "install NVIDIA's driver (580 or newer runs CUDA 13): https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
TOOLKIT = (
    "install the NVIDIA Container Toolkit, then `sudo nvidia-ctk runtime configure && sudo systemctl restart docker`"
)
COMPILER = "install one: `sudo apt install g++`, or `sudo dnf install gcc-c++`"


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of the machine: its state, what was found, and how to mend it where it is not ok."""

    what: str
    state: State
    found: str
    fix: str | None = None


def judge(facts: Facts, outlooks: Sequence[Outlook]) -> tuple[Finding, ...]:
    """Return a finding for each part of a machine, and one for each backend."""
    parts: tuple[Callable[[Facts], Iterator[Finding]], ...] = (_cpu, _memory, _gpu, _engine, _pythons, _compiler)
    found = [finding for part in parts for finding in part(facts)]
    for outlook in outlooks:
        found += [*_images(outlook), *_environments(outlook), *_disk(facts, outlook)]
    return tuple(found)


def _cpu(facts: Facts) -> Iterator[Finding]:
    usable, logical = facts.common["cores"], facts.common["logical_cores"]
    text = f"{facts.common['cpu']}: {usable} of {facts.physical_cores} cores may be used ({logical} logical)"
    limit = f"; the control group may use {facts.quota:g} at a time" if facts.quota else ""
    if usable < facts.physical_cores:
        fix = "start it without `taskset` or a CPU limit on its container or job, to measure with all cores"
        yield Finding("cpu", "warning", text + limit, fix)
    else:
        yield Finding("cpu", "ok", text + limit)
    governor = facts.common["governor"]
    if governor not in {None, "performance"}:
        fix = "hold it while you measure: `sudo cpupower frequency-set --governor performance`"
        yield Finding("frequency", "warning", f"the governor is {governor}: the clock follows the load", fix)


def _memory(facts: Facts) -> Iterator[Finding]:
    available = min(facts.memory, facts.memory_limit or facts.memory)
    limit = f"; the control group may hold {memory(facts.memory_limit)}" if facts.memory_limit else ""
    text = f"{memory(available)} of {memory(facts.common['memory_bytes'])} available{limit}"
    if available < LITTLE_MEMORY:
        yield Finding("memory", "warning", text, "close other programs, or select small cases: `--preset quick`")
    else:
        yield Finding("memory", "ok", text)


def _gpu(facts: Facts) -> Iterator[Finding]:
    for number, gpu in enumerate(facts.gpus):
        major, minor = gpu.capability
        text = f"cuda:{number}: {gpu.name}, compute capability {major}.{minor}, driver {gpu.driver}"
        yield Finding("gpu", "ok", text)
    if facts.gpus:
        if facts.engine is not None and not facts.engine["gpus"]:
            yield Finding("gpu in containers", "missing", "the engine cannot hand a GPU to a container", TOOLKIT)
    elif facts.trouble:
        yield Finding("gpu", "missing", facts.trouble.message, facts.trouble.hint or DRIVER)
    else:
        fix = "measure on a machine with one, or live with the CPU: cells that need a GPU are skipped"
        yield Finding("gpu", "missing", "none", fix)


def _engine(facts: Facts) -> Iterator[Finding]:
    from runner.backends.docker.client import START_HINT

    if facts.engine is None:
        yield Finding("engine", "missing", "no container engine answers", START_HINT)
        return
    kind = "rootless" if facts.engine["rootless"] else "as root"
    room = f"{memory(facts.engine['memory_bytes'])} and {facts.engine['cores']} CPUs"
    text = f"Docker {facts.engine['version']} {kind}, {facts.engine['storage']} in {facts.engine['root']}, {room}"
    if facts.engine["limits_memory"]:
        yield Finding("engine", "ok", text)
    else:
        fix = "delegate the memory controller: https://rootlesscontaine.rs/getting-started/common/cgroup2/"
        yield Finding("engine", "warning", f"{text}; it cannot limit the memory of a container", fix)


def _pythons(facts: Facts) -> Iterator[Finding]:
    for version, path in facts.interpreters.items():
        if path is None:
            yield Finding(
                f"python {version}", "missing", "none; only virtual environments need it", f"`{remedy(version)}`"
            )
        elif version not in facts.headers:
            fix = f"`sudo apt install python{version}-dev`, or take it from elsewhere: `{remedy(version)}`"
            text = f"{path}, without the C headers that Theano needs, and torch.compile"
            yield Finding(f"python {version}", "warning", text, fix)
        else:
            yield Finding(f"python {version}", "ok", path)


def _compiler(facts: Facts) -> Iterator[Finding]:
    if facts.compiler:
        yield Finding("compiler", "ok", facts.compiler)
    else:
        yield Finding("compiler", "missing", "no C++ compiler; in a venv torch.compile and Theano need one", COMPILER)


def _images(outlook: Outlook) -> Iterator[Finding]:
    images: Mapping[str, str] = outlook.survey.images
    for place, words in (("here", "on this engine"), ("registry", "not here, and can be pulled")):
        names = [name for name, found in images.items() if found == place]
        if names:
            yield Finding("images", "ok", f"{words}: {', '.join(names)}")
    for found in images.values():
        if found not in {"here", "registry"}:
            why, _, fix = found.rpartition("; ")
            yield Finding("image", "missing", why, fix)


def _environments(outlook: Outlook) -> Iterator[Finding]:
    what = f"with {outlook.name}"
    every = tuple(dict.fromkeys(planned.cell.environment for planned in outlook.plan.cells))
    lost = [name for name in every if name not in outlook.environments]
    text = (
        f"{outlook.cells} of {len(outlook.plan.cells)} cells run, "
        f"in {len(outlook.environments)} of {len(every)} environments"
    )
    if not lost:
        yield Finding(what, "ok", text)
        return
    fix = f"`runner plan --backend {outlook.name}` says why, environment by environment"
    yield Finding(what, "warning" if outlook.cells else "missing", f"{text}; none in {', '.join(lost)}", fix)


def _disk(facts: Facts, outlook: Outlook) -> Iterator[Finding]:
    root: Any = facts.engine["root"] if outlook.name == "docker" and facts.engine else facts.cache
    free = outlook.survey.free
    what = f"disk of {outlook.name}"
    count = f"{len(outlook.specs)} environment{'s' * (len(outlook.specs) != 1)}"
    text = f"{disk_size(sum(spec.disk for spec in outlook.specs))} needed for {count} to be made"
    room = f"{disk_size(free)} free in {root}" if free else f"{root} is not a folder of this machine: room unknown"
    if outlook.no_room:
        fix = "`runner clean --dry-run` shows what could go; or select fewer environments"
        yield Finding(what, "missing", f"{outlook.no_room} in {root}", fix)
    else:
        yield Finding(what, "ok" if free else "warning", f"{text}, {room}", None if free else "look at it there")
