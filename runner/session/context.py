"""From the options that the user typed to the values that a workflow takes."""

import difflib
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from runner.backends import Backend, Installed, Resources, choose_backend
from runner.core.errors import GpuError, NothingSelectedError, Problem, UsageError
from runner.core.locks import shared
from runner.core.machine import Capacity, is_wsl
from runner.core.machine import capacity as machine_capacity
from runner.core.model import Device, Gpu, Precision, Request
from runner.core.model.devices import LEAVE, ClockPolicy
from runner.core.paths import cache_folder
from runner.core.units import MAX_SECONDS, parse_duration
from runner.gpu.detect import present
from runner.gpu.locality import cores_near
from runner.gpu.selection import choose_devices
from runner.matrix import Matrix, choose_cells, load, select_environments
from runner.matrix.cell_globs import refuse_impossible
from runner.matrix.models import GpuSettings
from runner.matrix.select import environments_named
from runner.plan import corpus
from runner.plan.compatibility.variants import choose_variants
from runner.session.host_environment import choice_note, host_matrix
from runner.session.named_releases import NamedReleases, with_named_releases
from runner.session.networks import network_notes, with_models
from runner.session.options import Options
from runner.session.preparation import QUIET_SECONDS, Prepared, RunOrigin, RunSettings, prepare
from runner.session.quick_cells import quick_cells, with_all_in_presets
from runner.session.typed_variants import typed_threads, with_typed_variants
from runner.store.run import Run

IN_USE = "in-use.lock"  # in the cache folder: shared by those that use it, exclusive for `runner clean`


CLOSE = 0.8
"""The similarity, from 0 to 1, from which a name that does not exist is taken for a typing mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything a command needs to plan and to run.

    Attributes:
        matrix: the checked matrix; with the host backend, of the one environment that it measures.
        request: what to plan.
        backend: builds environments and starts servers.
        settings: paths, controls and clocks.
        origin: what was typed.
        gpus: the devices; none is the CPU.
        notes: sentences that the user should read first.
    """

    matrix: Matrix
    request: Request
    backend: Backend
    settings: RunSettings
    gpus: tuple[Gpu, ...]
    origin: RunOrigin = field(default_factory=RunOrigin)
    notes: tuple[str, ...] = ()

    @property
    def gpu(self) -> Gpu | None:
        """The first GPU, which stands for all of them in a plan; None is the CPU."""
        return self.gpus[0] if self.gpus else None

    def step_of(self, command: str, reports: Path) -> "Context":
        """Return the context of a run that is a step of a command, and is stored in a folder of its own.

        Args:
            command: measures the run again, where that is interrupted.
            reports: the folder.
        """
        settings, origin = replace(self.settings, reports=reports), replace(self.origin, part_of=command)
        return replace(self, settings=settings, origin=origin)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that is about to be measured.

    Attributes:
        context: backend, devices, settings, and who asked for it.
        prepared: the plan, and the environments that it needs.
        unfinished: the run that continues, locked by the caller; None for a new one.
    """

    context: Context
    prepared: Prepared
    unfinished: Run | None = None


@contextmanager
def cache_in_use(say: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Keep `runner clean` from removing what this process uses, for the length of the block; wait for a running one.

    Args:
        say: receives one line if it has to be waited for.
        environ: names the cache.
    """
    with shared(cache_folder(environ) / IN_USE, say, "`runner clean` is at work in the cache"):
        yield


def prepared(options: Options, say: Callable[[str], None], *, quick: bool = False) -> tuple[Context, Prepared]:
    """Return the context of the options, and the plan; ``say`` takes what the user should read first."""
    context = setup(options, quick=quick)
    for note in context.notes:
        say(note)
    preparation = prepare(context.matrix, context.request, context.backend, context.settings, context.gpu)
    for note in preparation.notes:
        say(note)
    return context, preparation


def setup(
    options: Options, environ: Mapping[str, str] = os.environ, cells: Sequence[str] = (), *, quick: bool = False
) -> Context:
    """Read the matrix, choose backend and devices, and resolve the selection.

    Args:
        options: what the user typed.
        environ: of this process.
        cells: cells that are selected later, beside the selectors; they may name phases of networks.
        quick: take the quick cells where the options name none, see ``session.quick_cells``.

    Raises:
        MatrixError, UsageError, NothingSelectedError: the matrix, the corpus or the selection is wrong.
        EngineError: docker was chosen and no engine answers.
        GpuError: the chosen GPU is not there.
    """
    declared, selected = with_models(load(options.matrix_file), options, cells)
    matrix, typed, options = declared, options, replace(options, workload=selected)
    cache = cache_folder(environ)
    backend, note = _backend(options, cache, matrix.registry)
    installed = backend.installed()
    if installed is not None:
        matrix = host_matrix(matrix, installed, options.name)
    notes = [*filter(None, [note, choice_note(installed, options.framework)])]
    device, gpus = choose_devices(options.device, notes.append)
    if gpus and backend.name == "docker" and is_wsl():
        check_wsl(present())
    if installed is None:
        named = with_named_releases(matrix, options, device, cache)
    else:
        named = NamedReleases(matrix=matrix, options=options)
    notes += named.notes
    matrix = with_all_in_presets(named.matrix, declared)
    matrix, options = with_typed_variants(matrix, named.options)
    capacity = _capacity(options, gpus)
    reasons: Mapping[str, str] = {}
    if gpus and installed is None:
        matrix, reasons = choose_variants(matrix, gpus[0], backend.name, capacity.glibc)
    request = plan_request(options, matrix, backend.name, (device, gpus), capacity)
    if quick:
        matrix, request, quick_notes = quick_cells(matrix, request, options)
        notes += quick_notes
    notes += [reason for name, reason in reasons.items() if name in request.environments]
    notes += network_notes(matrix, request)
    preset = request.preset if request.preset in declared.presets else None
    return Context(
        matrix=matrix,
        request=request,
        backend=backend,
        settings=replace(_settings(options, matrix, cache, installed), locks=named.locks),
        gpus=gpus,
        origin=RunOrigin(command=tuple(replace(typed, preset=preset).to_argv())),
        notes=tuple(notes),
    )


def _backend(options: Options, cache: Path, registry: str | None) -> tuple[Backend, str | None]:
    """Return the chosen backend, and what there is to say about the choice."""
    resources = Resources(
        dockerfiles=options.matrix_file.parent / "docker",
        cache=cache,
        registry=registry,
        python=options.python,
        framework=options.framework,
    )
    return choose_backend(options.backend, resources)


def _capacity(options: Options, gpus: Sequence[Gpu]) -> Capacity:
    """Return the cores and the memory of this machine; the cores near the GPUs where steps keep to them."""
    capacity = machine_capacity()
    return replace(capacity, near_gpu=cores_near(gpus)) if gpus and options.pin is not False else capacity


def _settings(options: Options, matrix: Matrix, cache: Path, installed: Installed | None) -> RunSettings:
    """Return how and where a run is measured."""
    return RunSettings(
        file=options.matrix_file,
        reports=options.reports,
        cache=cache,
        installed=installed,
        margin=matrix.measure.margin,
        controls=matrix.measure.controls,
        clocks=clocks(matrix.gpu, pin=options.pin),
        pin=options.pin is not False,
        telemetry=matrix.gpu.telemetry,
        quiet_seconds=0.0 if options.busy_ok else QUIET_SECONDS,
        profile=options.profile,
    )


def check_wsl(all_gpus: Sequence[Gpu]) -> None:
    """Raise GpuError if a container of WSL 2 would see more than the GPU that it measures: it is given all of them."""
    if len(all_gpus) > 1:
        names = ", ".join(gpu.name for gpu in all_gpus)
        message = f"a container of WSL 2 gets all GPUs of the machine, and this has {len(all_gpus)} ({names})"
        raise GpuError(Problem(message, hint="`--backend venv` measures on one of them"))


def clocks(settings: GpuSettings, *, pin: bool | None) -> ClockPolicy:
    """Return the clock policy of a matrix.

    Args:
        settings: those of the matrix.
        pin: True also changes clocks that others depend on, False changes none.
    """
    if pin is False:
        return LEAVE
    memory = settings.memory or ("leave" if settings.clocks == "leave" else "max")
    return ClockPolicy(settings.clocks, memory, force=pin is True)


def plan_request(
    options: Options, matrix: Matrix, backend: str, device: tuple[Device, Sequence[Gpu]], capacity: Capacity
) -> Request:
    """Return the request to the planner, with the selection resolved.

    Args:
        options: what the user typed.
        matrix: the checked matrix.
        backend: the name of the chosen backend.
        device: ``cpu`` or ``cuda``, and the GPUs.
        capacity: cores, memory and C library of the machine.

    Raises:
        UsageError, NothingSelectedError: the corpus, the preset, the seconds or the selection are wrong.
    """
    for kind, name, known in (
        *(("preset", name, tuple(matrix.presets)) for name in (options.preset,) if name),
        *(("workload", name, tuple(matrix.workloads)) for name in options.workload or ()),
        *(("precision", name, get_args(Precision)) for name in options.precision or ()),
    ):
        if name not in known:
            close = difflib.get_close_matches(name, known, 1, CLOSE)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise UsageError(Problem(f"there is no {kind} {name!r}", hint=hint))
    if options.seconds is not None and not options.seconds <= MAX_SECONDS:  # typer's limits let NaN pass
        raise UsageError(Problem(f"--seconds {options.seconds} is not a time", hint="write --seconds 2"))
    gpus, environments = device[1], _environments(matrix, options.selectors or ())
    refuse_impossible(matrix, options.selectors or ())
    return Request(
        environments=environments,
        chosen=choose_cells(matrix, options.selectors) if options.selectors else None,
        cell_selectors=tuple(selector for selector in options.selectors or () if "/" in selector),
        workloads=tuple(options.workload or ()),
        preset=options.preset,
        precisions=tuple(dict.fromkeys(options.precision or ())),
        device=device[0],
        backend=backend,
        rounds=options.rounds,
        max_rounds=options.max_rounds,
        budget=parse_duration(options.budget) if options.budget else None,
        seconds=options.seconds,
        threads=next(iter(typed_threads(options)), None) or matrix.measure.threads or capacity.each(len(gpus)),
        devices=max(1, len(gpus)),
        seed=random.randrange(1 << 31) if options.seed is None else options.seed,
        process=options.process,
        protocol=options.protocol,
        memory=gpus[0].memory if gpus else capacity.memory,
        corpus=corpus.read(options.corpus) if options.corpus else None,
        allow_jit=options.allow_jit,
        glibc=capacity.glibc,
    )


def _environments(matrix: Matrix, selectors: Sequence[str]) -> tuple[str, ...]:
    """Return the selected environments in the order of the selectors, and in that of the file within each of them.

    The first of a framework is what others are compared with.
    """
    if not matrix.environments:
        raise NothingSelectedError("the matrix names no environment")
    names = select_environments(matrix, selectors)
    included = [environments_named(matrix, each) for each in selectors if not each.startswith("!")]

    def position(name: str) -> int:
        followed = matrix.follows.get(name, name)
        return next((index for index, named in enumerate(included) if followed in named), len(included))

    return tuple(sorted(names, key=position))
