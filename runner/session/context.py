"""From the options that the user typed to the values that a workflow takes."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runner.backends import Backend, Resources, choose_backend
from runner.core.errors import GpuError, Problem
from runner.core.locks import shared
from runner.core.machine import Capacity, is_wsl
from runner.core.machine import capacity as machine_capacity
from runner.core.model import Gpu, Request
from runner.core.model.devices import LEAVE, ClockPolicy
from runner.core.paths import cache_folder
from runner.gpu.detect import present
from runner.gpu.locality import cores_near
from runner.gpu.selection import choose_devices
from runner.matrix import Matrix, load
from runner.matrix.models import GpuSettings
from runner.plan.compatibility.variants import choose_variants
from runner.releases.outdated import outdated_notes
from runner.releases.release_locks import FOLDER
from runner.session.existing import backend_for, existing_words, with_existing
from runner.session.named_releases import NamedReleases, with_named_releases
from runner.session.networks import network_notes, with_models
from runner.session.options import Options
from runner.session.plan_request import plan_request
from runner.session.preparation import QUIET_SECONDS, Prepared, RunOrigin, RunSettings, prepare
from runner.session.quick_cells import gpu_notes, quick_cells, with_all_in_presets
from runner.session.typed_variants import with_typed_variants

if TYPE_CHECKING:
    from runner.store.run import Run

IN_USE = "in-use.lock"  # in the cache folder: shared by those that use it, exclusive for `runner clean`


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
    unfinished: "Run | None" = None


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
    of_locks = outdated_notes(
        context.matrix,
        context.request.environments,
        context.request.device,
        context.settings.matrix,
        context.settings.reports,
    )
    for note in (*preparation.notes, *of_locks):
        say(note)
    return context, preparation


def setup(
    options: Options,
    environ: Mapping[str, str] = os.environ,
    cells: Sequence[str] = (),
    received: Path | None = None,
    *,
    quick: bool = False,
) -> Context:
    """Read the matrix, choose backend and devices, and resolve the selection.

    Args:
        options: what the user typed.
        environ: of this process.
        cells: ids, without environments, of cells that are selected later; they may name phases of networks.
        received: a folder with locks of named releases that count instead of those that are kept here; None for none.
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
    existing = with_existing(matrix, options, backend)
    notes = [*filter(None, [note]), *existing.notes]
    matrix, options = existing.matrix, existing.options
    device, gpus = choose_devices(options.device, notes.append)
    if gpus and backend.name == "docker" and is_wsl():
        check_wsl(present())
    if backend.name == "host":
        named = NamedReleases(matrix=matrix, options=options)
    else:
        named = with_named_releases(matrix, options, device, cache / FOLDER, received=received)
    notes += named.notes
    matrix = with_all_in_presets(named.matrix, declared, named.options)
    matrix, options = with_typed_variants(matrix, named.options)
    capacity = _capacity(options, gpus)
    reasons: Mapping[str, str] = {}
    if gpus and backend.name != "host":
        matrix, reasons = choose_variants(matrix, gpus[0], backend.name, capacity.glibc)
    request = plan_request(options, matrix, backend.name, (device, gpus), capacity)
    if quick:
        matrix, request, quick_notes = quick_cells(matrix, request, options)
        notes += quick_notes
    notes += [reason for name, reason in reasons.items() if name in request.environments]
    notes += (*gpu_notes(matrix, request), *network_notes(matrix, request))
    preset = request.preset if request.preset in declared.presets else None
    return Context(
        matrix=matrix,
        request=request,
        backend=backend,
        settings=replace(
            _settings(options, matrix, cache), as_is=existing.installed, locks=named.locks, unresolved=named.unresolved
        ),
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
        framework=None if existing_words(options.selectors or ()) else options.framework,
    )
    return choose_backend(backend_for(options), resources)


def _capacity(options: Options, gpus: Sequence[Gpu]) -> Capacity:
    """Return the cores and the memory of this machine; the cores near the GPUs where steps keep to them."""
    capacity = machine_capacity()
    return replace(capacity, near_gpu=cores_near(gpus)) if gpus and options.pin is not False else capacity


def _settings(options: Options, matrix: Matrix, cache: Path) -> RunSettings:
    """Return how and where a run is measured."""
    return RunSettings(
        file=options.matrix_file,
        reports=options.reports,
        cache=cache,
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
