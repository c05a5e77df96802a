# ruff: noqa: INP001  a script's module, not a package's
"""The pages about GPUs: what runs on which GPU, and what is known to go wrong with one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.catalog import gpu_errors
from runner.catalog.hardware.builds import Build, builds
from runner.catalog.hardware.facts import toolkit
from runner.catalog.hardware.versions import version_numbers
from runner.core.architectures import USUAL
from runner.core.model import Gpu, Plan, PlannedCell, Skip
from runner.matrix import Matrix, load
from runner.plan.compatibility.rules import BuildTarget, Verdict, code_verdict, ptx_code
from runner.plan.compatibility.variants import choose_variants
from runner.plan.machine_file import read_machine_file
from runner.report.markdown_text import Raw, plain, table
from runner.session.options import Options
from runner.session.plan_elsewhere import planned

RUNS, BY_JIT, PARTLY = "runs", "by JIT", "not by cuDNN"
RELEASED: Mapping[str, str] = {"PyTorch": "torch", "TensorFlow": "tensorflow", "JAX": "jax"}
"""Head of a column -> framework, of the table of releases."""
WORDS: Mapping[str, str] = {"jit": "JIT", "cannot": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A GPU with its driver, and its plans without and with ``--allow-jit``."""

    gpu: Gpu
    plan: Plan
    by_jit: Plan
    chosen_cuda: Mapping[str, str]
    """Environment -> CUDA, where the matrix has several variants and the plan takes an older one."""


@dataclass(slots=True)
class Sources:
    """The sources of facts, numbered in the order of their first use."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> str:
        """Return the number of a source."""
        return str(self.numbers.setdefault(text, len(self.numbers) + 1))

    def items(self) -> str:
        """Return a numbered Markdown list."""
        return "\n".join(f"{number}. {text}" for text, number in self.numbers.items())


def releases_table(machines: Sequence[Machine]) -> str:
    """Return a table of machine x framework: the environments that run there by default, with their CUDA if chosen."""
    rows = [
        (
            f"{machine.gpu.name}, {machine.gpu.driver}",
            *(", ".join(_running(machine, framework)) for framework in RELEASED.values()),
        )
        for machine in machines
    ]
    return table(("GPU, driver", *RELEASED), rows)


def _running(machine: Machine, framework: str) -> Iterator[str]:
    """Yield the environments of a framework of which at least one cell runs without ``--allow-jit``."""
    runs = {each.cell.environment for each in machine.plan.cells if each.skip is None}
    for name, of_framework in machine.plan.frameworks.items():
        if name in runs and of_framework == framework:
            cuda = machine.chosen_cuda.get(name)
            yield f"{name} (CUDA {cuda})" if cuda else name


def environments_table(machines: Sequence[Machine]) -> str:
    """Return a table of environment x machine: how it runs there, or the code of the first reason why not."""
    names = machines[0].plan.frameworks
    rows = [(name, *(_environment_status(machine, name) for machine in machines)) for name in names]
    return table(("environment", *(f"{machine.gpu.name}, {machine.gpu.driver}" for machine in machines)), rows)


def refusals_table(machines: Sequence[Machine], sources: Sources) -> str:
    """Return a table of what does not run on one board, or only by JIT: drivers, reason, alternative and source."""
    drivers_by_skip: dict[tuple[str, Skip], list[str]] = {}
    for machine in machines:
        skips = {
            (each.cell.environment, each.skip): None for each in machine.plan.cells if each.skip and each.skip.source
        }
        for name, skip in skips:
            drivers_by_skip.setdefault((name, skip), []).append(machine.gpu.driver)
    order = list(machines[0].plan.frameworks)
    rows = [
        (name, ", ".join(drivers), skip.code, skip.reason, " or ".join(skip.nearest), sources.number(skip.source))
        for (name, skip), drivers in sorted(drivers_by_skip.items(), key=lambda item: order.index(item[0][0]))
    ]
    return table(("environment", "driver", "code", "why", "nearest that runs", "source"), rows)


def code_table(boards: Sequence[Gpu], sources: Sources) -> str:
    """Return a table of build x board: native code, only PTX, or neither; with the oldest drivers and the source."""
    rows = (
        (
            build.name,
            *_drivers(build),
            *(_code_status(build, gpu)[0] for gpu in boards),
            build.status,
            sources.number(build.source),
        )
        for build in _with_code()
    )
    head = ("build", "driver", "driver for JIT", *(gpu.name for gpu in boards), "how far it was checked", "source")
    return table(head, rows)


def beyond_code_table(boards: Sequence[Gpu], sources: Sources) -> str:
    """Return a table of the builds that have PTX for a board but do not run there."""
    rows = [
        (build.name, gpu.name, verdict.reason, sources.number(verdict.source))
        for build in _with_code()
        for gpu in boards
        if ptx_code(build, gpu.capability) and (verdict := _code_status(build, gpu)[1]) and verdict.outcome == "cannot"
    ]
    return table(("build", "GPU", "why", "source"), rows)


def _environment_status(machine: Machine, name: str) -> str:
    """Return how an environment runs on a machine, from its planned cells."""
    strict = [each for each in machine.plan.cells if each.cell.environment == name]
    if any(each.skip is None for each in strict):
        status = f"{RUNS} {BY_JIT}" if any(each.jit for each in strict) else RUNS
        return f"{status}, {PARTLY}" if any(map(_lacks_cudnn, strict)) else status
    lenient = [each.skip for each in machine.by_jit.cells if each.cell.environment == name]
    if None in lenient:
        return BY_JIT
    skips = sorted((skip for skip in lenient if skip), key=lambda skip: not skip.source)  # the hardware's first
    return skips[0].code if skips else ""


def _lacks_cudnn(planned_cell: PlannedCell) -> bool:
    return planned_cell.kind == "vendor" and planned_cell.skip is not None and planned_cell.skip.code == "arch"


def _with_code() -> Iterator[Build]:
    """Return the builds that have GPU code of their own."""
    return (build for build in builds() if build.sass or build.ptx)


def _code_status(build: Build, gpu: Gpu) -> tuple[str, Verdict | None]:
    """Return how a build runs on a GPU by its code, and the verdict behind it."""
    verdict = code_verdict(build, BuildTarget(gpu=gpu, cuda=build.cuda))
    unsure = " (unverified)" * bool(build.unverified & {"sass", "ptx"})
    return (WORDS[verdict.outcome] if verdict else "native") + unsure, verdict


def _drivers(build: Build) -> tuple[str, str]:
    """Return the oldest drivers for the native code of a build and for its PTX; empty if it is not known."""
    known = toolkit(build.cuda)
    by_jit = build.ptx and "." in build.cuda  # a bare major version does not say which minor version made it
    return ("", "") if known is None else (known.oldest, known.driver if by_jit else "")


def gpu_errors_page() -> str:
    """Return the page of known errors of GPUs, without its first line."""
    rows = [
        (
            _prose(f"`{each.sign}`"),
            _prose(each.sentence),
            _prose(each.fix),
            _prose(f"`{each.failure}`"),
            each.source,
            each.status,
        )
        for each in gpu_errors.gpu_errors()
    ]
    parts = [
        "# When a GPU cannot be used",
        (
            "This table explains messages of engines, NVIDIA's tools and CUDA. If a message contains the text, the run"
            " reports the meaning and the fix. If the engine cannot start a container, the run ends with exit code 5; a"
            " failed cell gets the class. Most rows come from reports of other users; we have not seen them here."
        ),
        table(("text", "meaning", "fix", "class", "source", "status"), rows),
    ]
    return "\n\n".join(parts) + "\n"


def _prose(text: str) -> Raw:
    """Return text with Markdown escaped outside backticks."""
    parts = text.split("`")
    return Raw("`".join(part.replace("|", "\\|") if index % 2 else plain(part) for index, part in enumerate(parts)))


def gpus_page(folder: Path, matrix: Path) -> str:
    """Return the page of what runs on which GPU, without its first line, for the machines described in a folder."""
    machines = described(folder, matrix)
    boards = {machine.gpu.name: machine.gpu for machine in machines}
    sources = Sources()
    parts = ["# GPUs", PROSE["first"]]
    statuses = table(("status", "meaning"), ((Raw(status), Raw(meaning)) for status, meaning in STATUSES))
    parts += ["## Releases", PROSE["releases"], releases_table(machines)]
    parts += ["## Environments", PROSE["grid"], environments_table(machines), statuses]
    parts += ["Any other status is a [skip code](errors.md#skip-codes). The table shows the first of several."]
    parts += ["## Why not", PROSE["why"]]
    for name in boards:
        parts += [f"### {name}", refusals_table([each for each in machines if each.gpu.name == name], sources)]
    parts += ["## Builds", PROSE["builds"], code_table(tuple(boards.values()), sources)]
    parts += [PROSE["beyond"], beyond_code_table(tuple(boards.values()), sources)]
    parts += ["## Sources", sources.items()]
    return "\n\n".join(parts) + "\n"


PROSE = {
    "first": "This page shows what the shipped `matrix.yaml` runs on seven GPUs, with old and recent drivers, "
    "and why the rest does not run. It contains no measurements: it is the output of "
    "`runner plan --machine` for the hand-written descriptions in `docs/machines/`. "
    "[Plan for another machine](how-to/plan-for-another-machine.md) shows how to get the same for your machine.",
    "releases": "`runner compare` has both sides where two releases are in one field. Where an environment has several "
    "CUDA variants, the plan takes the newest that the GPU and its driver run; the table names it if it is an older "
    "one. Cells that need `--allow-jit` are not counted.",
    "grid": "![Environments, GPUs and drivers as a grid with the statuses of the table below](images/gpus.svg)",
    "why": "The last column is the number of a [source](#sources). (unverified) marks a reason that rests on a "
    "fact that nobody has checked.",
    "builds": "This table lists every build whose GPU code is known, and considers only that code. `native`: the build "
    "has code that the GPU runs. `JIT`: it has only PTX for an older GPU, which the driver compiles at the first call. "
    "`no`: it has neither. Native code needs the driver of the second column or a newer one, PTX the driver of the "
    "third column.",
    "beyond": "Judged by their code, these builds would be `JIT`, but they do not run:",
}

STATUSES = (
    ("`runs`", "the environment has code for the GPU, and the driver runs it"),
    ("`runs by JIT`", "at the first call, the driver compiles PTX that was made for exactly this GPU"),
    ("`by JIT`", "only if the driver compiles its PTX for the GPU at the first call, which needs `--allow-jit`"),
    ("`not by cuDNN`", "implementations that call cuDNN do not run: the cuDNN of the build no longer supports the GPU"),
    ("`arch`", "the environment has no code for the GPU"),
    ("`driver`", "the driver is too old for the environment, or too new for the GPU"),
    ("`needs-gpu`", "the matrix has no CUDA build of the environment"),
    ("`image-unavailable`", "the environment has no lock yet, or no known driver runs the contents of the image"),
)


def described(folder: Path, matrix: Path) -> list[Machine]:
    """Return the GPU and the plans of each machine that is described in a folder.

    The preset ``smoke`` has a case of each workload: what runs depends on that, and not on sizes.
    """
    machines, loaded = [], load(matrix, architecture=USUAL)
    for path in sorted(folder.glob("*.json")):
        machine = read_machine_file(path)
        strict, by_jit = (
            planned(Options(matrix=matrix, preset="smoke", seed=0, allow_jit=allowed), machine)
            for allowed in (False, True)
        )
        gpu = machine.gpus[0]
        machines.append(Machine(gpu=gpu, plan=strict, by_jit=by_jit, chosen_cuda=_chosen_cuda(loaded, gpu)))
    return sorted(machines, key=lambda each: (each.gpu.capability, each.gpu.name, version_numbers(each.gpu.driver)))


def _chosen_cuda(matrix: Matrix, gpu: Gpu) -> dict[str, str]:
    """Return environment -> CUDA of the variant that the plan takes, where it is not the newest one."""
    chosen, reasons = choose_variants(matrix, gpu)
    variants = {name: chosen.environments[name].variant("cuda") for name in reasons}
    return {name: variant.cuda for name, variant in variants.items() if variant and variant.cuda}
