"""The stages in order, and nothing else: plan, provision, measure, collect, and what is kept of them."""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.backends import Backend
from runner.backends.provision import provision
from runner.core.errors import NothingSelectedError, Problem, ProvisionError
from runner.core.locks import alone
from runner.core.model import Gpu, Outcome, Plan, Provisioned, Request, Skip, Spec, Survey, device_id
from runner.core.progress import Progress
from runner.gpu.clocks.policy import LEAVE, Wish
from runner.gpu.device import Clocks, recovered
from runner.gpu.device_group import Several
from runner.matrix import Matrix
from runner.plan import controls
from runner.plan.devices import apart, assign
from runner.plan.environments import announce, specs
from runner.plan.planner import plan
from runner.store.run import Run
from runner.workflows.run import devices as lanes
from runner.workflows.run.header import begin, digests, now, same_environments
from runner.workflows.run.recorder import RunRecorder, Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan, and what has to be made for it; ``also`` are further environments of it, which are ready."""

    plan: Plan
    specs: tuple[Spec, ...]
    survey: Survey
    also: Mapping[str, Provisioned] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Where things are.

    Attributes:
        file: the matrix file; ``matrix`` is the folder that holds it.
        reports: where runs are kept.
        cache: where that is kept which can be made again.
        python: the interpreter that the host backend measures, else None.
        margin: the change that counts as none, by the matrix.
        controls: whether A/A pairs and a canary are measured, by the matrix.
        clocks: what a GPU's clocks are held at.
        pin: whether a step on the CPU is kept to cores of its own.
        telemetry: readings of a GPU in a second.
    """

    file: Path
    reports: Path
    cache: Path
    python: str | None = None
    margin: float = 0.02
    controls: bool = False
    clocks: Wish = LEAVE
    pin: bool = False
    telemetry: float = 0.0

    @property
    def matrix(self) -> Path:
        """The folder that locks and Dockerfiles are relative to."""
        return self.file.parent

    @property
    def origin(self) -> Mapping[str, Any]:
        """What a run has to remember of it."""
        return {
            "matrix": str(self.file.absolute()),
            "python": self.python,
            "clocks": self.clocks.json(),
            "pin": self.pin,
        }


def prepare(matrix: Matrix, request: Request, backend: Backend, place: RunSettings, gpu: Gpu | None) -> Prepared:
    """Survey what is here and plan by it; nothing is fetched or made."""
    wanted, lacking = specs(matrix, request.environments, request.device, place.matrix)
    survey = backend.survey(wanted)
    planned = plan(matrix, request, {**survey.skips, **lacking}, gpu)
    needed = {cell.environment for block in planned.blocks for cell in block.cells}
    return Prepared(plan=planned, specs=tuple(s for s in wanted if s.environment in needed), survey=survey)


def build(
    prepared: Prepared, backend: Backend, progress: Progress
) -> tuple[Mapping[str, Provisioned], Mapping[str, ProvisionError]]:
    """Announce what will be fetched, then make it.

    Raises:
        NothingSelectedError: nothing of the plan can run.
    """
    if not prepared.plan.blocks:
        raise NothingSelectedError(Problem("nothing of this can run here", hint="`runner plan` says why, cell by cell"))
    for name, skip in left_out(prepared.plan).items():
        progress.note(f"{name} is left out: {skip.code}: {skip.reason}")
    cost = announce(prepared.specs, prepared.survey)
    if cost:
        progress.note(cost)
    found = provision(prepared.specs, backend, progress)
    for name, ready in found[0].items():
        progress.note(f"{name}: {'ready' if ready.cached else f'made in {ready.seconds:.0f} s'}")
    for name, error in found[1].items():
        progress.note(f"{name}: {error.code}: {error}\n{error.log}")
    return {**prepared.also, **found[0]}, found[1]


def left_out(planned: Plan) -> Mapping[str, Skip]:
    """Return the environments of which no cell runs, with the reason of the first."""
    running = {found.cell.environment for found in planned.cells if found.skip is None}
    lost: dict[str, Skip] = {}
    for found in planned.cells:
        if found.skip is not None and found.cell.environment not in running:
            lost.setdefault(found.cell.environment, found.skip)
    return lost


def run(
    prepared: Prepared,
    backend: Backend,
    place: RunSettings,
    progress: Progress,
    gpus: Sequence[Gpu],
    again: Run | None = None,
) -> Totals:
    """Make the environments, measure every cell, and keep each record the moment it is there.

    Args:
        prepared: the plan and what it needs.
        backend: makes environments and starts servers.
        place: where things are.
        progress: told what happens.
        gpus: the devices, between which the cases are dealt out; none is the CPU.
        again: a run to go on with, held by the caller; None begins a new one.

    Raises:
        NothingSelectedError: nothing of the plan can run.
        UsageError: an environment is not the one that the run began with.
        EngineError: the engine is gone; what was measured is kept.
        GpuError: the GPU is lost, likewise; or it has not the clock that was asked for.
    """
    recovered(place.clocks, progress.note)
    planned = prepared.plan if again or not place.controls else controls.with_twins(prepared.plan)
    narrow, wide = apart(planned)
    parts = assign(narrow, len(gpus))
    gpus = gpus[: max(len(parts), *(block.chips for block in wide.blocks), 0)]  # what has no case is left alone
    planned = replace(planned, devices=len(parts))
    devices = [Clocks(gpu, place.clocks, progress.note, rate=place.telemetry) for gpu in gpus or (None,)]
    for clocks in devices:
        clocks.possible()
    ready, failed = build(prepared, backend, progress)
    with contextlib.ExitStack() as stack:
        if again is None:
            stored = begin(planned, place.reports, place.origin, gpus, ready)
            stack.enter_context(stored.held())
        else:
            stored = again
            same_environments(stored.journal().begun["digests"], ready, failed)
            stored.note("resumed", at=now(), digests=digests(ready))
        progress.note(f"run {stored.id} on {planned.backend}, {planned.device}, {planned.measurement.threads} threads")
        keeper = RunRecorder(planned, stored, progress)
        with keeper.ending(resumes=not prepared.also):
            owners = [*zip(parts, devices, strict=False), *([(wide, Several(devices))] if wide.blocks else [])]
            for part, clocks in owners:
                for outcome in _not_made(part, failed, keeper.seen):
                    keeper.keep(outcome, planned.past.spent, clocks)
            for name in sorted(device_id(one.gpu) for one in devices):  # in one order: no two runs wait for each other
                stack.enter_context(alone(place.cache / f"measuring-{name}.lock", progress.note))
            ready = controls.provisioned(planned, ready)
            shared = lanes.RunContext(
                backend=backend,
                ready=ready,
                keeper=keeper,
                cache=place.cache,
                margin=place.margin,
                controls=place.controls,
                pin=place.pin,
            )
            lanes.work(parts, devices, shared, wide)
        return keeper.totals()


def _not_made(planned: Plan, failed: Mapping[str, ProvisionError], seen: Collection[str]) -> Iterator[Outcome]:
    """Yield a failure for each cell of the environments that could not be made, unless it has one already."""
    for cell in (cell for block in planned.blocks for cell in block.cells):
        error = failed.get(cell.environment)
        if error is not None and cell.id not in seen:
            nothing = Provisioned(
                environment=cell.environment, framework="", handle="", digest="", seconds=0.0, cached=False
            )
            reply = {"status": "failed", "class": error.code, "reason": error.problems[0].message, "log": error.log}
            yield Outcome(cell=cell, round=1, reply=reply, facts={}, ready=nothing)
