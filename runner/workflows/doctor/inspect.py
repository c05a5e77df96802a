"""The facts about this machine that decide what it can run, and what each backend would make of them."""

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
from runner.plan.environments import announce, specs
from runner.workflows.context import Context, setup
from runner.workflows.options import Options
from runner.workflows.preparation import prepare

COMPILERS = ("c++", "g++", "clang++")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """This machine.

    Attributes:
        common: what every run's machine.json says.
        system: see ``machine.system``.
        physical_cores: of the whole machine; ``common`` has how many this process may use.
        quota: how many CPUs the control group may use at a time; None without a limit.
        memory: bytes that are available now.
        memory_limit: bytes that the control group may hold; None without a limit.
        trouble: why none can be used though there is a driver, or a device of NVIDIA; else None.
        engine: what the container engine says of itself, see ``docker_survey.engine``; None where none answers.
        interpreters: minor version that the matrix names -> the interpreter, None where there is none.
        headers: those of them that come with what a C compiler needs.
        compiler: the C++ compiler on PATH.
        cache: where venvs and references go; ``cache_free`` bytes are left there.
    """

    common: Mapping[str, Any]
    system: Mapping[str, str | None]
    physical_cores: int
    quota: float | None
    memory: int
    memory_limit: int | None
    gpus: tuple[Gpu, ...]
    trouble: Problem | None
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
        specs: the environments to be made for what would run.
        pythons: the minor versions that environments are made of, where they are no images to pull.
        no_room: why they do not fit on the disk; None where they do.
    """

    name: str
    plan: Plan
    survey: Survey
    specs: tuple[Spec, ...]
    pythons: tuple[str, ...]
    no_room: str | None

    @property
    def cells(self) -> int:
        """How many cells would run."""
        return sum(planned.skip is None for planned in self.plan.cells)

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments of which something would run."""
        return tuple(dict.fromkeys(found.cell.environment for found in self.plan.cells if found.skip is None))

    @property
    def ready(self) -> bool:
        """True where something would run and there is room for it."""
        return bool(self.cells) and self.no_room is None


def look(pythons: Iterable[str], engine: Mapping[str, Any] | None) -> Facts:
    """Return the facts about this machine; ``pythons`` are the minor versions to look for."""
    found = {name: interpreters.find(name) for name in sorted(set(pythons), key=_parts)}
    cache = cache_folder(os.environ)
    quota = machine.quota()
    gpus, trouble = _gpus()
    return Facts(
        common={name: value for name, value in machine.describe(()).items() if name not in {"version", "gpu"}},
        system=machine.system(),
        physical_cores=machine.physical_cores(range(os.cpu_count() or 1)),
        quota=None if quota == float("inf") else quota,
        memory=machine.memory()[1],
        memory_limit=machine.memory_limit(),
        gpus=gpus,
        trouble=trouble,
        engine=engine,
        interpreters={name: str(path) if path else None for name, path in found.items()},
        headers=frozenset(name for name, path in found.items() if path and has_headers(path, name)),
        compiler=next(filter(None, map(shutil.which, COMPILERS)), None),
        cache=str(cache),
        cache_free=shutil.disk_usage(next(one for one in (cache, *cache.parents) if one.is_dir())).free,
    )


def _gpus() -> tuple[tuple[Gpu, ...], Problem | None]:
    try:
        found = detect.gpus()
    except GpuError as error:
        return (), error.problems[0]
    if not found and "CUDA_VISIBLE_DEVICES" not in os.environ and detect.on_the_bus():
        return (), Problem("there is an NVIDIA device, and no driver answers for it")
    return found, None


def outlooks(options: Options) -> tuple[tuple[Outlook, ...], Mapping[str, Any] | None]:
    """Return what each backend could run here of what is selected, the one that ``auto`` takes first, and the engine.

    Nothing is fetched or made. Without an engine there is one outlook. Where no device was asked for and the GPU cannot
    be used, they are those of the CPU: ``Facts.trouble`` says why.
    """
    try:
        first = setup(options)
    except GpuError:
        if options.device is not None:
            raise
        options = replace(options, device="cpu")
        first = setup(options)
    found = [_outlook(first)]
    described = first.backend.describe()
    if described is None:
        return tuple(found), None
    second = Options(selectors=options.selectors, matrix=options.matrix, device=options.device, backend="venv", seed=0)
    return (*found, _outlook(setup(second))), described


def _outlook(found: Context) -> Outlook:
    prepared = prepare(found.matrix, found.request, found.backend, found.settings, found.gpu)
    new = tuple(spec for spec in prepared.specs if spec.environment not in prepared.survey.cached)
    try:
        announce(prepared.specs, prepared.survey)
        no_room = None
    except RunnerError as error:
        no_room = error.problems[0].message
    wanted, _ = specs(found.matrix, found.request.environments, found.request.device, found.settings.matrix)
    return Outlook(
        name=found.backend.name,
        plan=prepared.plan,
        survey=prepared.survey,
        specs=new,
        pythons=tuple(spec.python for spec in wanted if spec.python),
        no_room=no_room,
    )


def has_headers(interpreter: Path, version: str) -> bool:
    """Say whether ``Python.h`` lies where an interpreter's headers do; a compiled extension needs it."""
    return any((interpreter.parent.parent / "include").glob(f"python{version}*/Python.h"))


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
