"""From what the command line says to the values the pipeline takes."""

import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import get_args

from runner.backends import Backend, Installed, Resources, choose_backend
from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.locks import together
from runner.core.machine import Capacity
from runner.core.machine import capacity as machine_capacity
from runner.core.model import Device, Gpu, Precision, Request
from runner.core.paths import cache_folder
from runner.core.units import parse_duration
from runner.gpu.clocks.policy import LEAVE, Wish
from runner.gpu.selection import choose_devices
from runner.matrix import Environment, Matrix, choose_cells, load, select_environments
from runner.matrix.models import GpuSettings
from runner.plan import corpus
from runner.workflows.options import Options
from runner.workflows.run import Prepared, RunSettings, prepare

IN_USE = "in-use.lock"  # in the cache: held together by those that use what is there, alone by `runner clean`
NAME = r"[a-z][a-z0-9]*(-[a-z0-9.]+)*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything a command needs to plan and to run; ``note`` is something the user should know first."""

    matrix: Matrix
    request: Request
    backend: Backend
    place: RunSettings
    gpus: tuple[Gpu, ...]
    note: str | None

    @property
    def gpu(self) -> Gpu | None:
        """The first GPU, which stands for all of them in a plan; None is the CPU."""
        return self.gpus[0] if self.gpus else None


@contextmanager
def at_work(environ: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Keep `runner clean` from what this process uses, for the length of the block; wait until it has ended."""
    with together(cache_folder(environ) / IN_USE):
        yield


def prepared(options: Options, say: Callable[[str], None]) -> tuple[Context, Prepared]:
    """Return what the options mean, and the plan they make; ``say`` is told what the user should know first."""
    found = setup(options)
    if found.note:
        say(found.note)
    return found, prepare(found.matrix, found.request, found.backend, found.place, found.gpu)


def setup(options: Options, environ: Mapping[str, str] = os.environ) -> Context:
    """Read the matrix, choose backend and device, and resolve the selection.

    Raises:
        MatrixError, UsageError, NothingSelectedError: what was asked for is not there; the corpus among it.
        EngineError: the docker backend was asked for and no engine answers.
        GpuError: the GPU that was asked for is not there.
    """
    matrix = load(options.matrix)
    cache = cache_folder(environ)
    resources = Resources(dockerfiles=options.matrix.parent / "docker", cache=cache, python=options.python)
    backend, note = choose_backend(options.backend, resources)
    installed = backend.installed()
    if installed is not None:
        if options.selectors:
            raise UsageError(Problem("--backend host measures one interpreter", hint="leave the selectors out"))
        matrix = host_matrix(matrix, installed, options.name)
    device, gpus = choose_devices(options.device)
    request = ask(options, matrix, backend.name, (device, gpus), machine_capacity())
    place = RunSettings(
        file=options.matrix,
        reports=options.reports,
        cache=cache,
        python=installed.python if installed else None,
        margin=matrix.measure.margin,
        controls=matrix.measure.controls,
        clocks=clocks(matrix.gpu, pin=not options.no_pin),
        pin=not options.no_pin,
        telemetry=matrix.gpu.telemetry,
    )
    return Context(matrix=matrix, request=request, backend=backend, place=place, gpus=gpus, note=note)


def clocks(settings: GpuSettings, *, pin: bool) -> Wish:
    """Return the clocks that a matrix asks for; with ``pin`` False nothing is to be changed."""
    if not pin:
        return LEAVE
    return Wish(settings.clocks, settings.memory or ("leave" if settings.clocks == "leave" else "max"))


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
        budget=parse_duration(options.budget) if options.budget else None,
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


def host_matrix(matrix: Matrix, installed: Installed, name: str) -> Matrix:
    """Return the matrix with one environment: what an interpreter holds."""
    if not re.fullmatch(NAME, name):
        raise UsageError(Problem(f"{name!r} cannot name an environment", hint="use letters, digits, dots and dashes"))
    found = Environment.model_validate(
        {
            "framework": installed.framework,
            "release": installed.release,
            "python": installed.python_version,
            "requirements": [installed.framework],
        }
    )
    return matrix.model_copy(update={"environments": {name: found}})
