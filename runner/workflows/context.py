"""From what the command line says to the values the pipeline takes."""

import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from runner.backends import Backend
from runner.core import machine
from runner.core.errors import GpuError, NothingSelectedError, Problem, UsageError
from runner.core.files import together
from runner.core.model import Device, Gpu, Precision, Request
from runner.gpu.clocks.policy import LEAVE, Wish
from runner.matrix import Environment, Matrix, choose_cells, load, select_environments
from runner.matrix.models import GpuSettings
from runner.plan import corpus
from runner.plan.devices import alike
from runner.workflows.options import Options, seconds
from runner.workflows.run import Place, Prepared, prepare

IN_USE = "in-use.lock"  # in the cache: held together by those that use what is there, alone by `runner clean`
NAME = r"[a-z][a-z0-9]*(-[a-z0-9.]+)*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything a command needs to plan and to run; ``note`` is something the user should know first."""

    matrix: Matrix
    request: Request
    backend: Backend
    place: Place
    gpus: tuple[Gpu, ...]
    note: str | None

    @property
    def gpu(self) -> Gpu | None:
        """The first GPU, which stands for all of them in a plan; None is the CPU."""
        return self.gpus[0] if self.gpus else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a machine has to offer: physical cores, bytes of memory, and its C library, None where that is not known."""

    cores: int
    memory: int
    glibc: str | None

    def each(self, devices: int) -> int:
        """Return the cores for each of several devices, one left for the runner; all of them where there is one."""
        return self.cores if devices < 2 else max(1, (self.cores - 1) // devices)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return where this program keeps what can be made again: ``XDG_CACHE_HOME``/matrix-runner."""
    asked = environ.get("XDG_CACHE_HOME", "")
    home = asked if asked.startswith("/") else str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    return Path(home) / "matrix-runner"


@contextmanager
def at_work(environ: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Keep `runner clean` from what this process uses, for the length of the block; wait until it has ended."""
    with together(cache_folder(environ) / IN_USE):
        yield


def prepared(options: Options, say: Callable[[str], None]) -> tuple[Setup, Prepared]:
    """Return what the options mean, and the plan they make; ``say`` is told what the user should know first."""
    found = setup(options)
    if found.note:
        say(found.note)
    return found, prepare(found.matrix, found.request, found.backend, found.place, found.gpu)


def setup(options: Options, environ: Mapping[str, str] = os.environ) -> Setup:
    """Read the matrix, choose backend and device, and resolve the selection.

    Raises:
        MatrixError, UsageError, NothingSelectedError: what was asked for is not there; the corpus among it.
        EngineError: the docker backend was asked for and no engine answers.
        GpuError: the GPU that was asked for is not there.
    """
    matrix = load(options.matrix)
    cache = cache_folder(environ)
    backend, note = choose_backend(options, cache)
    if options.backend == "host":
        if options.selectors:
            raise UsageError(Problem("--backend host measures one interpreter", hint="leave the selectors out"))
        matrix = host_matrix(matrix, backend, options.name)
    device, gpus = choose_devices(options.device)
    request = ask(options, matrix, backend.name, (device, gpus), here())
    python = getattr(backend, "python", None)  # the host's
    place = Place(
        file=options.matrix,
        reports=options.reports,
        cache=cache,
        python=python,
        margin=matrix.measure.margin,
        controls=matrix.measure.controls,
        clocks=clocks(matrix.gpu, pin=not options.no_pin),
        pin=not options.no_pin,
        telemetry=matrix.gpu.telemetry,
    )
    return Setup(matrix=matrix, request=request, backend=backend, place=place, gpus=gpus, note=note)


def clocks(settings: GpuSettings, *, pin: bool) -> Wish:
    """Return the clocks that a matrix asks for; with ``pin`` False nothing is to be changed."""
    if not pin:
        return LEAVE
    return Wish(settings.clocks, settings.memory or ("leave" if settings.clocks == "leave" else "max"))


def here() -> Capacity:
    """Return what this machine has to offer."""
    memory = machine.memory_limit() or machine.memory()[0]
    return Capacity(cores=machine.cores(), memory=memory, glibc=machine.glibc())


def ask(
    options: Options, matrix: Matrix, backend: str, device: tuple[Device, Sequence[Gpu]], capacity: Capacity
) -> Request:
    """Return what is asked to be planned, with the selection resolved.

    Args:
        options: what was typed.
        matrix: the checked matrix.
        backend: the name of the backend that is taken.
        device: where to measure, and its GPUs.
        capacity: what the machine has to offer.

    Raises:
        UsageError, NothingSelectedError: what was asked for is not there; the corpus among it.
    """
    for kind, name, known in (
        *(("preset", name, tuple(matrix.presets)) for name in (options.preset,) if name),
        *(("workload", name, tuple(matrix.workloads)) for name in options.workload or ()),
        *(("precision", name, get_args(Precision)) for name in options.precision or ()),
    ):
        if name not in known:
            raise UsageError(Problem(f"there is no {kind} {name!r}", hint=f"there are {', '.join(known)}"))
    gpus = device[1]
    return Request(
        environments=_environments(matrix, options.selectors or ()),
        chosen=choose_cells(matrix, options.selectors) if options.selectors else None,
        workloads=tuple(options.workload or ()),
        preset=options.preset,
        precisions=tuple(dict.fromkeys(options.precision or ())),
        device=device[0],
        backend=backend,
        rounds=options.rounds,
        max_rounds=options.max_rounds,
        budget=seconds(options.budget) if options.budget else None,
        seconds=options.seconds,
        threads=options.threads or matrix.measure.threads or capacity.each(len(gpus)),
        devices=max(1, len(gpus)),
        seed=random.randrange(1 << 31) if options.seed is None else options.seed,
        protocol=options.protocol,
        memory=gpus[0].memory if gpus else capacity.memory,
        corpus=corpus.read(options.corpus) if options.corpus else None,
        allow_jit=options.allow_jit,
        glibc=capacity.glibc,
    )


def _environments(matrix: Matrix, selectors: Sequence[str]) -> tuple[str, ...]:
    if not matrix.environments:
        raise NothingSelectedError("the matrix names no environment")
    return select_environments(matrix, selectors)


def choose_backend(options: Options, cache: Path) -> tuple[Backend, str | None]:
    """Return the backend of a name; ``auto`` is docker where an engine answers, else venv, and says so."""
    from runner.backends.host import HostBackend
    from runner.backends.venv import VenvBackend

    if options.backend == "host":
        return HostBackend(options.python or "python3", cache), None
    if options.python:
        raise UsageError(Problem("--python is for --backend host", hint="add --backend host"))
    if options.backend == "venv":
        return VenvBackend(cache), None
    if options.backend not in {"auto", "docker"}:
        raise UsageError(Problem(f"there is no backend {options.backend!r}", hint="there are auto, docker, venv, host"))
    from runner.backends.docker.backend import DockerBackend, reachable

    folder = options.matrix.parent / "docker"
    if options.backend == "docker" or reachable():
        return DockerBackend(folder), None
    return VenvBackend(cache), "no container engine answers: using virtual environments of this machine's interpreters"


def host_matrix(matrix: Matrix, backend: Backend, name: str) -> Matrix:
    """Return the matrix with one environment: what the host's interpreter holds."""
    from runner.backends.host import HostBackend

    assert isinstance(backend, HostBackend)
    if not re.fullmatch(NAME, name):
        raise UsageError(Problem(f"{name!r} cannot name an environment", hint="use letters, digits, dots and dashes"))
    framework, release, python = backend.framework()
    found = Environment.model_validate(
        {"framework": framework, "release": release, "python": python, "requirements": [framework]}
    )
    return matrix.model_copy(update={"environments": {name: found}})


def choose_devices(wanted: str | None) -> tuple[Device, tuple[Gpu, ...]]:
    """Return the devices: the first GPU where there is one, else the CPU, which is no GPU; or what was asked for.

    Args:
        wanted: ``cpu``, ``cuda``, ``cuda:1`` or a GPU's UUID; several GPUs as ``cuda:0,1``, or UUIDs with commas
            between them; ``cuda:all`` for every one; None for what there is.

    Raises:
        GpuError: that GPU is not there; or nothing was asked for, and a driver is here that does not work.
        UsageError: several were asked for that cannot share a run.
    """
    from runner.gpu.detect import gpus

    if wanted == "cpu":
        return "cpu", ()
    try:
        found = gpus()
    except GpuError as error:
        problem = error.problems[0]
        hint = "; ".join(filter(None, [problem.hint, "`--device cpu` measures without a GPU"]))
        raise GpuError(Problem(problem.message, hint=hint), kind=error.kind) from error
    return pick_devices(wanted, found, "this machine")


def pick_devices(wanted: str | None, found: Sequence[Gpu], where: str) -> tuple[Device, tuple[Gpu, ...]]:
    """Return the devices of a machine whose GPUs are known; ``where`` is what messages call it. See choose_devices."""
    if wanted is None:
        return ("cuda", (found[0],)) if found else ("cpu", ())
    if wanted == "cpu":
        return "cpu", ()
    if wanted == "cuda:all" and found:
        return "cuda", alike(tuple(found))
    names = (f"cuda:{name}" if place and name.isdigit() else name for place, name in enumerate(wanted.split(",")))
    picked = {_pick(name, found, where) for name in names}
    return "cuda", alike(tuple(gpu for gpu in found if gpu in picked))


def _pick(wanted: str, found: Sequence[Gpu], where: str) -> Gpu:
    index = wanted.removeprefix("cuda").removeprefix(":") or "0"
    for number, gpu in enumerate(found):
        if wanted == gpu.uuid or (wanted.startswith("cuda") and index == str(number)):
            return gpu
    seen = ", ".join(f"cuda:{number} ({gpu.name})" for number, gpu in enumerate(found)) or "no GPU at all"
    raise GpuError(Problem(f"there is no device {wanted!r}", hint=f"{where} shows {seen}; or --device cpu"))
