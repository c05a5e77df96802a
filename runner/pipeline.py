"""The stages in order, and nothing else: plan, provision, measure, collect, and what is kept of them."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner import machine
from runner.backends import Backend, archive
from runner.collect import collect
from runner.environments import announce, specs
from runner.errors import NothingSelectedError, Problem, ProvisionError
from runner.files import alone
from runner.matrix import Matrix
from runner.measure import measure
from runner.measure.references import References
from runner.model import Cell, Gpu, Limits, Outcome, Plan, Provisioned, Request, Skip, Spec, Survey
from runner.plan import kind, plan
from runner.plan_json import plan_json
from runner.progress import Progress
from runner.provision import provision
from runner.store import Run

MEMORY_SHARE = 0.8  # of what is free at the start, for all servers and the one child at work


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan, and what has to be made for it."""

    plan: Plan
    specs: tuple[Spec, ...]
    survey: Survey


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where things are: ``matrix`` holds the matrix file, ``reports`` the runs, ``cache`` what can be made again."""

    matrix: Path
    reports: Path
    cache: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How a run ended: its folder, and the cells that have a good record and those that have none."""

    run: Run
    good: int
    bad: tuple[str, ...]


def prepare(matrix: Matrix, request: Request, backend: Backend, place: Place, gpu: Gpu | None) -> Prepared:
    """Survey what is here and plan by it; nothing is fetched or made."""
    wanted, lacking = specs(matrix, request.environments, request.device, place.matrix)
    survey = backend.survey(wanted)
    planned = plan(matrix, request, {**survey.skips, **lacking}, gpu)
    needed = {cell.environment for block in planned.blocks for cell in block.cells}
    return Prepared(plan=planned, specs=tuple(s for s in wanted if s.environment in needed), survey=survey)


def build(
    prepared: Prepared, backend: Backend, progress: Progress
) -> tuple[Mapping[str, Provisioned], Mapping[str, ProvisionError]]:
    """Announce what will be fetched, then make it."""
    for name, skip in left_out(prepared.plan).items():
        progress.note(f"{name} is left out: {skip.code}: {skip.reason}")
    cost = announce(prepared.specs, prepared.survey)
    if cost:
        progress.note(cost)
    found = provision(prepared.specs, backend, progress.status)
    for name, ready in found[0].items():
        progress.note(f"{name}: {'ready' if ready.cached else f'made in {ready.seconds:.0f} s'}")
    for name, error in found[1].items():
        progress.note(f"{name}: {error.code}: {error}\n{error.log}")
    return found


def left_out(planned: Plan) -> Mapping[str, Skip]:
    """Return the environments of which no cell runs, with the reason of the first."""
    running = {found.cell.environment for found in planned.cells if found.skip is None}
    lost: dict[str, Skip] = {}
    for found in planned.cells:
        if found.skip is not None and found.cell.environment not in running:
            lost.setdefault(found.cell.environment, found.skip)
    return lost


def run(prepared: Prepared, backend: Backend, place: Place, progress: Progress, gpu: Gpu | None) -> Totals:
    """Make the environments, measure every cell, and keep each record the moment it is there."""
    planned = prepared.plan
    if not planned.blocks:
        raise NothingSelectedError(Problem("nothing of this can run here", hint="`runner plan` says why, cell by cell"))
    ready, failed = build(prepared, backend, progress)
    stored = Run.create(place.reports, plan_json(planned), machine.describe(gpu), {}, datetime.now(UTC))
    progress.note(f"run {stored.id} on {planned.backend}, {planned.device}, {planned.measurement.threads} threads")
    if gpu:
        progress.note("the GPU's clocks are not pinned: this version cannot do that yet")
    keeper = _Keeper(planned, stored, progress, gpu)
    progress.begin(sum(len(b.cells) for b in planned.blocks) * planned.measurement.rounds, planned.seconds)
    for block in planned.blocks:
        for cell in block.cells:
            if cell.environment in failed:
                keeper.keep(_not_made(cell, failed[cell.environment]))
    limits = Limits(memory=int(MEMORY_SHARE * machine.memory()[1]), device=gpu.uuid if gpu else "cpu", run=stored.id)
    references = References(place.cache / "references", planned.measurement.threads)
    outcomes = measure(planned, ready, backend, limits, references, lambda text: progress.status("now", text))
    lock = place.cache / f"measuring-{limits.device}.lock"
    with alone(lock, progress.note), contextlib.closing(outcomes):  # type: ignore[type-var]  # ends the servers
        for outcome in outcomes:
            keeper.keep(outcome)
    return keeper.totals()


def _not_made(cell: Cell, error: ProvisionError) -> Outcome:
    nothing = Provisioned(environment=cell.environment, framework="", handle="", digest="", seconds=0.0, cached=False)
    reply = {"status": "failed", "class": error.code, "reason": error.problems[0].message, "log": error.log}
    return Outcome(cell=cell, round=1, reply=reply, facts={}, ready=nothing)


class _Keeper:
    """Writes records and the facts of environments as they come, and counts."""

    def __init__(self, planned: Plan, stored: Run, progress: Progress, gpu: Gpu | None) -> None:
        self.planned = planned
        self.stored = stored
        self.progress = progress
        self.gpu = gpu
        self.environments: dict[str, Any] = {}
        self.good: set[str] = set()
        self.seen: set[str] = set()
        self.expected = {p.cell: p.seconds / planned.measurement.rounds for p in planned.cells}

    def keep(self, outcome: Outcome) -> None:
        """Make the record of an outcome and store it."""
        cell = outcome.cell
        framework = self.planned.frameworks[cell.environment]
        common = {
            "environment": cell.environment,
            "framework": framework,
            "kind": kind(framework, cell.implementation),
            "backend": self.planned.backend,
            "device": self.gpu.name if self.gpu else "cpu",
            "device_uuid": self.gpu.uuid if self.gpu else None,
            "driver": self.gpu.driver if self.gpu else None,
            "threads": self.planned.measurement.threads,
            "precision": cell.precision,
            "protocol": "aligned",
            "clocks": "none" if self.gpu else None,  # nothing is pinned yet
            "harness": archive.version(),
        }
        record, log = collect(outcome, self.stored.id, common)
        self.stored.add(record, log if record.status != "ok" else "")
        self._facts(outcome)
        self.seen.add(cell.id)
        if record.status == "ok":
            self.good.add(cell.id)
        else:
            self.progress.note(f"{cell.id}: {record.failure}: {record.reason}")
        self.progress.advance(self.expected.get(cell, 0.0), cell.id)

    def _facts(self, outcome: Outcome) -> None:
        name = outcome.cell.environment
        if name not in self.environments and outcome.facts:
            self.environments[name] = {
                **outcome.ready.facts,
                **{key: value for key, value in outcome.facts.items() if key != "server"},
                "digest": outcome.ready.digest,
            }
            self.stored.write_environments(self.environments)

    def totals(self) -> Totals:
        """Return how it ended."""
        return Totals(run=self.stored, good=len(self.good), bad=tuple(sorted(self.seen - self.good)))
