"""What the facts about a machine mean: ok, a warning or missing, with the fix. Nothing here reads the machine."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from runner.backends.interpreters import remedy
from runner.core.units import disk_size, memory
from runner.machine.doctor.inspect import MachineFacts, Outlook
from runner.report.formatting import counted, few

State = Literal["ok", "warning", "missing"]
SHOWN_IDLE = 3
"""Environments of which nothing runs that are named; more are counted."""
LITTLE_MEMORY = 4 << 30  # two servers of a modern framework with their children on the smaller cases
DRIVER = "install NVIDIA's driver (580 or newer runs CUDA 13): https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
TOOLKIT = (
    "install the NVIDIA Container Toolkit, then `sudo nvidia-ctk runtime configure && sudo systemctl restart docker`"
)
COMPILER = "install one: `sudo apt install g++`, or `sudo dnf install gcc-c++`"


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one part of the machine.

    Attributes:
        name: the part.
        state: ``ok``, ``warning`` or ``missing``.
        detail: what the machine has, or what is wrong, in a sentence.
        fix: how to change that; None where the state is ok.
    """

    name: str
    state: State
    detail: str
    fix: str | None = None

    def json(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {"what": self.name, "state": self.state, "found": self.detail, "fix": self.fix}


def judge(facts: MachineFacts, outlooks: Sequence[Outlook]) -> tuple[Finding, ...]:
    """Return the findings about each part of a machine, then those about each backend."""
    parts: tuple[Callable[[MachineFacts], Iterator[Finding]], ...] = (_cpu, _memory, _gpu, _engine, _pythons, _compiler)
    findings = [finding for part in parts for finding in part(facts)]
    for first in outlooks[:1]:  # the clocks do not depend on the backend
        findings += _clocks(first)
    for outlook in outlooks:
        findings += [*_images(outlook), *_environments(outlook), *_disk(facts, outlook)]
    return tuple(findings)


def _judged(name: str, detail: str, *, is_good: bool, fix: str, otherwise: State = "warning") -> Finding:
    """Return a finding that is ok, or else has a fix."""
    return Finding(name, "ok", detail) if is_good else Finding(name, otherwise, detail, fix)


def _cpu(facts: MachineFacts) -> Iterator[Finding]:
    usable, logical = facts.common["cores"], facts.common["logical_cores"]
    text = f"{facts.common['cpu']}: {usable} of {facts.physical_cores} cores may be used ({logical} logical)"
    limit = f"; the control group may use {facts.quota:g} at a time" if facts.quota else ""
    fix = "start runner without `taskset` or a CPU limit on its container or job, to measure with all cores"
    yield _judged("cpu", text + limit, is_good=usable >= facts.physical_cores, fix=fix)
    governor = facts.common["governor"]
    if governor not in {None, "performance"}:
        fix = "change it while you measure: `sudo cpupower frequency-set --governor performance`"
        yield Finding("frequency", "warning", f"the governor is {governor}: the clock follows the load", fix)


def _memory(facts: MachineFacts) -> Iterator[Finding]:
    available = min(facts.memory, facts.memory_limit or facts.memory)
    limit = f"; the control group may use {memory(facts.memory_limit)}" if facts.memory_limit else ""
    text = f"{memory(available)} of {memory(facts.common['memory_bytes'])} available{limit}"
    fix = "close other programs, or select small cases: `--preset quick`"
    yield _judged("memory", text, is_good=available >= LITTLE_MEMORY, fix=fix)


def _gpu(facts: MachineFacts) -> Iterator[Finding]:
    for number, gpu in enumerate(facts.gpus):
        major, minor = gpu.capability
        text = f"cuda:{number}: {gpu.name}, compute capability {major}.{minor}, driver {gpu.driver}"
        yield Finding("gpu", "ok", text)
    if facts.gpus:
        if facts.engine is not None and not facts.engine["gpus"]:
            yield Finding("gpu in containers", "missing", "the engine cannot give a container a GPU", TOOLKIT)
    elif facts.gpu_problem:
        yield Finding("gpu", "missing", facts.gpu_problem.message, facts.gpu_problem.hint or DRIVER)
    else:
        fix = "use a machine with a GPU to measure the tests that need one; they are skipped here"
        yield Finding("gpu", "missing", "none", fix)


def _clocks(outlook: Outlook) -> Iterator[Finding]:
    for clocks in outlook.clocks:
        yield Finding("gpu clocks", "warning" if clocks.fix else "ok", clocks.text, clocks.fix or None)


def _engine(facts: MachineFacts) -> Iterator[Finding]:
    from runner.backends.docker.client import START_HINT

    if facts.engine is None:
        yield Finding("engine", "missing", "no container engine answers", START_HINT)
        return
    kind = "rootless" if facts.engine["rootless"] else "as root"
    capacity = f"{memory(facts.engine['memory_bytes'])} and {facts.engine['cores']} CPUs"
    product = f"{facts.engine['name']} {facts.engine['version']} {kind}"
    text = f"{product}, {facts.engine['storage']} in {facts.engine['root']}, {capacity}"
    is_good = bool(facts.engine["limits_memory"])
    fix = "delegate the memory controller: https://rootlesscontaine.rs/getting-started/common/cgroup2/"
    yield _judged(
        "engine", text + "; it cannot limit the memory of a container" * (not is_good), is_good=is_good, fix=fix
    )


def _pythons(facts: MachineFacts) -> Iterator[Finding]:
    for version, path in facts.interpreters.items():
        name = f"python {version}"
        if path is None:
            yield Finding(name, "missing", "none; only virtual environments need it", f"`{remedy(version)}`")
        elif version not in facts.headers:
            fix = f"`sudo apt install python{version}-dev`, or install another Python: `{remedy(version)}`"
            yield Finding(name, "warning", f"{path}, without the C headers that Theano and torch.compile need", fix)
        else:
            yield Finding(name, "ok", path)


def _compiler(facts: MachineFacts) -> Iterator[Finding]:
    detail = facts.compiler or "no C++ compiler; in a venv torch.compile and Theano need one"
    yield _judged("compiler", detail, is_good=bool(facts.compiler), fix=COMPILER, otherwise="missing")


def _images(outlook: Outlook) -> Iterator[Finding]:
    images = outlook.survey.images
    for kind, label in (("here", "on this engine"), ("registry", "not on this engine, can be pulled")):
        names = [name for name, state in images.items() if state.kind == kind]
        if names:
            yield Finding("images", "ok", f"{label}: {', '.join(names)}")
    for state in images.values():
        if state.kind == "unavailable":
            yield Finding("image", "missing", state.reason, state.fix)


def _environments(outlook: Outlook) -> Iterator[Finding]:
    name = f"with {outlook.name}"
    planned = tuple(dict.fromkeys(cell.cell.environment for cell in outlook.plan.cells))
    idle = [environment for environment in planned if environment not in outlook.environments]
    text = f"{len(outlook.environments)} of {counted(len(planned), 'environment')} run here"
    detail = f"{text}; not {few(idle, SHOWN_IDLE)}" if idle else text
    fix = f"`runner plan --backend {outlook.name}` shows the reason for each environment"
    yield _judged(name, detail, is_good=not idle, fix=fix, otherwise="warning" if outlook.cells else "missing")


def _disk(facts: MachineFacts, outlook: Outlook) -> Iterator[Finding]:
    root: Any = facts.engine["root"] if outlook.name == "docker" and facts.engine else facts.cache
    free = outlook.survey.free
    name = f"disk of {outlook.name}"
    count = f"{len(outlook.specs)} new environment{'s' * (len(outlook.specs) != 1)}"
    text = f"{disk_size(sum(spec.disk for spec in outlook.specs))} needed for {count}"
    if outlook.no_room:
        fix = "remove what `runner clean --dry-run` lists, or select fewer environments"
        yield Finding(name, "missing", f"{outlook.no_room} in {root}", fix)
    elif free:
        yield Finding(name, "ok", f"{text}, {disk_size(free)} free in {root}")
    else:
        detail = f"{text}; {root} is not a folder of this machine, so its free space is unknown"
        yield Finding(name, "warning", detail, "check the free space on the engine's machine")
