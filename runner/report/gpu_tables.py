"""What runs on which GPU, as Markdown: environments on machines that are described, and builds by their code."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from runner.catalog.hardware.facts import Build, builds, toolkit
from runner.core.model import Gpu, Plan, Skip
from runner.plan.compatibility.rules import Setting, Verdict, has_code_for_it, portable
from runner.report.markdown import table

RUNS, BY_JIT, PARTLY = "runs", "by JIT", "not by cuDNN"
WORDS: Mapping[str, str] = {"jit": "JIT", "cannot": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A GPU with its driver, and the plans for it: without and with ``--allow-jit``."""

    gpu: Gpu
    plan: Plan
    by_jit: Plan


@dataclass(slots=True)
class Sources:
    """Where facts are from, numbered in the order in which they were first used."""

    known: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> str:
        """Return the number of a source."""
        return str(self.known.setdefault(text, len(self.known) + 1))

    def items(self) -> str:
        """Return them as a numbered list."""
        return "\n".join(f"{number}. {text}" for text, number in self.known.items())


def environments(machines: Sequence[Machine]) -> str:
    """Return environment x machine: what of it runs there, or the code of the first thing in the way."""
    names = machines[0].plan.frameworks
    rows = [(name, *(_word(machine, name) for machine in machines)) for name in names]
    return table(("environment", *(f"{machine.gpu.name}, {machine.gpu.driver}" for machine in machines)), rows)


def refusals(machines: Sequence[Machine], sources: Sources) -> str:
    """Return what does not run on one board, or only by JIT: why, with which drivers, what would, and the source."""
    found: dict[tuple[str, Skip], list[str]] = {}
    for machine in machines:
        seen = {(one.cell.environment, one.skip): None for one in machine.plan.cells if one.skip and one.skip.source}
        for name, skip in seen:
            found.setdefault((name, skip), []).append(machine.gpu.driver)
    order = list(machines[0].plan.frameworks)
    rows = [
        (name, ", ".join(drivers), skip.code, skip.reason, " or ".join(skip.nearest), sources.number(skip.source))
        for (name, skip), drivers in sorted(found.items(), key=lambda one: order.index(one[0][0]))
    ]
    return table(("environment", "driver", "code", "why", "nearest that runs", "source"), rows)


def code(boards: Sequence[Gpu], sources: Sources) -> str:
    """Return build x board: native code, PTX alone, or nothing; with the oldest drivers, and the source."""
    rows = (
        (
            build.name,
            *_drivers(build),
            *(_of(build, gpu)[0] for gpu in boards),
            build.status,
            sources.number(build.source),
        )
        for build in _with_code()
    )
    head = ("build", "driver", "driver for JIT", *(gpu.name for gpu in boards), "how far it was checked", "source")
    return table(head, rows)


def beyond_code(boards: Sequence[Gpu], sources: Sources) -> str:
    """Return the builds that hold PTX for a board and do not run there all the same."""
    rows = [
        (build.name, gpu.name, verdict.reason, sources.number(verdict.source))
        for build in _with_code()
        for gpu in boards
        if portable(build, gpu.capability) and (verdict := _of(build, gpu)[1]) and verdict.word == "cannot"
    ]
    return table(("build", "GPU", "why", "source"), rows)


def _word(machine: Machine, name: str) -> str:
    """Return what an environment does on a machine, by its cells."""
    strict = [one for one in machine.plan.cells if one.cell.environment == name]
    if any(one.skip is None for one in strict):
        held = any(one.kind == "vendor" and one.skip and one.skip.code == "arch" for one in strict)
        word = f"{RUNS} {BY_JIT}" if any(one.jit for one in strict) else RUNS
        return f"{word}, {PARTLY}" if held else word
    lenient = [one.skip for one in machine.by_jit.cells if one.cell.environment == name]
    if None in lenient:
        return BY_JIT
    skips = sorted((skip for skip in lenient if skip), key=lambda skip: not skip.source)  # the hardware's first
    return skips[0].code if skips else ""


def _with_code() -> Iterator[Build]:
    """Yield the builds that hold code of their own."""
    return (build for build in builds() if build.sass or build.ptx)


def _of(build: Build, gpu: Gpu) -> tuple[str, Verdict | None]:
    """Return what a build does on a GPU by its code, in a word, and the verdict behind it."""
    found = has_code_for_it(build, Setting(gpu=gpu, cuda=build.cuda))
    unsure = " (unverified)" * bool(build.unverified & {"sass", "ptx"})
    return (WORDS[found.word] if found else "native") + unsure, found


def _drivers(build: Build) -> tuple[str, str]:
    """Return the oldest driver for a build's native code, and that for its PTX; empty where there is none."""
    known = toolkit(build.cuda)
    by_jit = build.ptx and "." in build.cuda  # of a bare major version nobody knows which minor one made it
    return ("", "") if known is None else (known.oldest, known.driver if by_jit else "")
