"""The facts about this machine that decide what it can run, and what each backend could run."""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.backends import interpreters
from runner.core import machine
from runner.core.errors import GpuError, Problem, RunnerError
from runner.core.model import Gpu, Plan, Spec, Survey
from runner.core.paths import cache_folder
from runner.gpu import detect
from runner.gpu.clocks.preconditions import Announcement
from runner.machine.clocks import announcements
from runner.plan.specs import announce, specs
from runner.session.context import Context, setup
from runner.session.options import Options
from runner.session.preparation import prepare
from runner.session.quick_cells import quick_cells

COMPILERS = ("c++", "g++", "clang++")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What this machine has.

    Attributes:
        common: the facts in every run's machine.json.
        system: see ``machine.system``.
        physical_cores: of the whole machine; ``common`` has how many this process may use.
        quota: how many CPUs the control group may use at a time; None without a limit.
        memory: available bytes.
        memory_limit: bytes that the control group may use; None without a limit.
        gpus: the GPUs that can be used.
        gpu_problem: why none can be used although there is a driver, or a device of NVIDIA; else None.
        engine: the container engine, see ``docker.survey.engine``; None where none answers.
        interpreters: minor version that the matrix names -> path of the interpreter, None where there is none.
        headers: the minor versions whose interpreter comes with C headers.
        compiler: the C++ compiler on PATH.
        cache: the folder of venvs and references.
        cache_free: free bytes there.
    """

    common: Mapping[str, Any]
    system: Mapping[str, str | None]
    physical_cores: int
    quota: float | None
    memory: int
    memory_limit: int | None
    gpus: tuple[Gpu, ...]
    gpu_problem: Problem | None
    engine: Mapping[str, Any] | None
    interpreters: Mapping[str, str | None]
    headers: frozenset[str]
    compiler: str | None
    cache: str
    cache_free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What one backend could run.

    Attributes:
        specs: the environments that would have to be made.
        pythons: the minor Python versions of the environments, images to pull left out.
        no_room: why ``specs`` do not fit on the disk; None where they do.
        quick: the plan of a run that names no cells; None where that is ``plan``, for the matrix has no preset quick.
        clocks: what a run will do to the clocks of its GPUs.
    """

    name: str
    plan: Plan
    survey: Survey
    specs: tuple[Spec, ...]
    pythons: tuple[str, ...]
    no_room: str | None
    quick: Plan | None = None
    clocks: tuple[Announcement, ...] = ()

    @property
    def cells(self) -> int:
        """The number of cells that would run."""
        return running(self.plan)

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments in which some cell would run."""
        return tuple(dict.fromkeys(planned.cell.environment for planned in self.plan.cells if planned.skip is None))

    @property
    def ready(self) -> bool:
        """True if some cell would run and there is disk space for its environment."""
        return bool(self.cells) and self.no_room is None


def running(plan: Plan) -> int:
    """Return the number of cells of a plan that would run."""
    return sum(planned.skip is None for planned in plan.cells)


def read_facts(pythons: Iterable[str], engine: Mapping[str, Any] | None) -> MachineFacts:
    """Return the facts about this machine; ``pythons`` are the minor versions to search for."""
    paths = {version: interpreters.find(version) for version in sorted(set(pythons), key=_parts)}
    cache = cache_folder(os.environ)
    quota = machine.cpu_quota()
    gpus, gpu_problem = _gpus()
    return MachineFacts(
        common={name: value for name, value in machine.describe(()).items() if name not in {"version", "gpu"}},
        system=machine.system(),
        physical_cores=machine.physical_cores(range(os.cpu_count() or 1)),
        quota=None if quota == float("inf") else quota,
        memory=machine.memory()[1],
        memory_limit=machine.memory_limit(),
        gpus=gpus,
        gpu_problem=gpu_problem,
        engine=engine,
        interpreters={version: str(path) if path else None for version, path in paths.items()},
        headers=frozenset(version for version, path in paths.items() if path and has_headers(path, version)),
        compiler=next(filter(None, map(shutil.which, COMPILERS)), None),
        cache=str(cache),
        cache_free=shutil.disk_usage(next(path for path in (cache, *cache.parents) if path.is_dir())).free,
    )


def _gpus() -> tuple[tuple[Gpu, ...], Problem | None]:
    try:
        gpus = detect.gpus()
    except GpuError as error:
        return (), error.problems[0]
    if not gpus and "CUDA_VISIBLE_DEVICES" not in os.environ and detect.on_the_bus():
        return (), Problem("there is an NVIDIA device, and no driver answers for it")
    return gpus, None


def outlooks_and_engine(options: Options) -> tuple[tuple[Outlook, ...], Mapping[str, Any] | None]:
    """Return what each backend could run of the selection, and the facts about the engine, None where none answers.

    The first outlook is that of the backend which ``auto`` takes; without an engine it is the only one. If the options
    name no device and the GPU cannot be used, the outlooks are those of the CPU; ``MachineFacts.gpu_problem`` says why.
    """
    try:
        first = setup(options)
    except GpuError:
        if options.device is not None:
            raise
        options = replace(options, device="cpu")
        first = setup(options)
    outlook = _outlook(first)
    engine = first.backend.describe()
    if engine is None:
        return (outlook,), None
    second = Options(selectors=options.selectors, matrix=options.matrix, device=options.device, backend="venv", seed=0)
    return (outlook, _outlook(setup(second))), engine


def _outlook(context: Context) -> Outlook:
    request = context.request
    prepared = prepare(context.matrix, request, context.backend, context.settings, context.gpu)
    new = tuple(spec for spec in prepared.specs if spec.environment not in prepared.survey.cached)
    try:
        announce(prepared.specs, prepared.survey)
        no_room = None
    except RunnerError as error:
        no_room = error.problems[0].message
    matrix, quick, _ = quick_cells(context.matrix, request, Options())
    others = prepare(matrix, quick, context.backend, context.settings, context.gpu, prepared.survey)
    selected, _ = specs(context.matrix, request.environments, request.device, context.settings.matrix)
    return Outlook(
        name=context.backend.name,
        plan=prepared.plan,
        survey=prepared.survey,
        specs=new,
        pythons=tuple(spec.python for spec in selected if spec.python),
        no_room=no_room,
        quick=others.plan if quick.preset else None,
        clocks=announcements(context.gpus, context.settings.clocks),
    )


def has_headers(interpreter: Path, version: str) -> bool:
    """Return True if the folder of an interpreter's headers has ``Python.h``, which a compiled extension needs."""
    return any((interpreter.parent.parent / "include").glob(f"python{version}*/Python.h"))


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
