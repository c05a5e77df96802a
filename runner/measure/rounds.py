"""Measure a plan round by round: all environments alive at once, the cells of a case in turns, in random order.

``round_plan.RoundPlan`` decides what comes when; this module carries it out.
"""

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from runner.core.errors import RunnerError
from runner.core.model import (
    Block,
    Canary,
    CaseFinished,
    CaseSkipped,
    Cell,
    Event,
    ExtraRound,
    GroupsFormed,
    Outcome,
    Plan,
    Round,
    RoundTimes,
)
from runner.core.model.cells import is_called, is_plain
from runner.harness.cases import is_model
from runner.measure.batches import Batches
from runner.measure.breakdown import Breakdown
from runner.measure.disturbances import Disturbances, Repeat
from runner.measure.interleave import Ask, measure_in_turns
from runner.measure.jit import prime
from runner.measure.models import Models
from runner.measure.precompile import CompileJob, compile_ahead, possible
from runner.measure.references import References
from runner.measure.round_plan import TRANSIENT_FAILURES, RoundPlan, RoundStep, TurnSet, abandoned_cells
from runner.measure.server_pool import ServerPool

__all__ = ["Hooks", "measure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What the caller of ``measure`` is told, and what it decides.

    Attributes:
        say: shows what is measured now.
        next_cells: given the number of finished rounds, returns the cells of the next round; no cells end the run.
            Without it every cell gets the plan's rounds.
        over_budget: called before each case of a first round, with the seconds of what was done once for all rounds;
            returns why the budget has no time for the case, which is then left out; empty if it is measured. None:
            every case is measured.
        canary: measures a fixed product, in seconds, before each case. None: no canary.
        interleave: whether the cells of a case take turns, on a CPU.
        wait_until_cool: called before each case. None: nothing to cool.
        measure_unthrottled: carries out one measurement, and repeats it where the GPU was throttled. None: no GPU.
        busy_allowed: CPUs that other programs may keep busy beside a cell; a round with more is measured again. None:
            every round is measured once, whatever others do.
        has_time_for: given the number of finished rounds and some cells, returns whether there is time to measure these
            again. Without it there always is.
    """

    say: Callable[[str], None]
    next_cells: Callable[[int], Collection[Cell]] | None = None
    over_budget: Callable[[Block, float], str] | None = None
    canary: Callable[[], float] | None = None
    interleave: bool = True
    wait_until_cool: Callable[[], None] | None = None
    measure_unthrottled: Callable[[Callable[[], Outcome]], Outcome] | None = None
    busy_allowed: float | None = None
    has_time_for: Callable[[int, Collection[Cell]], bool] | None = None


def measure(plan: Plan, servers: ServerPool, references: References, hooks: Hooks) -> Iterator[Event]:
    """Yield one outcome for each cell and round in the order in which they were measured, and what was decided.

    A round goes through all cases before the next one starts. After each, ``hooks`` decides which cells get another,
    up to the plan's limit. What the plan has in its past is not measured again; a case of which a part of a round was
    measured gets all of that round again, as the next attempt. So do cells whose round other programs disturbed, once
    the other cases have had theirs (``disturbances``).

    Args:
        plan: what to measure and how.
        servers: start as they are needed, in the environments that were built; cells of the others are left out. The
            caller closes them; closing them from another thread ends the measuring with an error.
        references: the float64 reference of each case.
        hooks: what the caller is told and decides.

    Raises:
        EngineError: the engine is gone; nothing is yielded for the cell that was being measured.
    """
    names = dict.fromkeys(name for block in plan.blocks for name in block.environments)
    present = tuple(name for name in names if name in servers.ready)
    if not present:
        return
    breakdown = Breakdown()
    groups = plan.past.groups.get(servers.limits.device)
    if groups is None:
        with breakdown.during("start"):
            groups = servers.groups(present)
        yield GroupsFormed(groups)
    order = RoundPlan(plan, servers.ready.keys(), groups)
    with contextlib.closing(Models(servers)) as models:
        yield from _Executor(order, servers, references, models, hooks, breakdown).run()


class _Executor:
    """Carries out the rounds of a plan, one after the other."""

    def __init__(
        self,
        order: RoundPlan,
        servers: ServerPool,
        references: References,
        models: Models,
        hooks: Hooks,
        breakdown: Breakdown,
    ) -> None:
        self.order = order
        self.breakdown = breakdown
        self.plan = order.plan
        self.servers = servers
        self.references = references
        self.models = models
        self.hooks = hooks
        self.batches = Batches(self.plan)
        self.disturbances = Disturbances(self.plan.measurement, self.plan.past, hooks.busy_allowed)
        self.memory = None if servers.backend.limits_memory else servers.limits.memory
        self.abandoned = set(abandoned_cells(self.plan.past))
        self.single: set[Cell] = set()  # cells that ran out of memory once: nothing waits next to them any more
        self.left_out: set[str] = set()  # cases whose reference cannot be computed, or that exceed the budget

    def run(self) -> Iterator[Event]:
        """Yield the events of every round."""
        measurement, next_cells = self.plan.measurement, self.hooks.next_cells
        selected = frozenset(cell for block in self.plan.blocks for cell in block.cells)
        for number in range(1, (measurement.round_limit if next_cells else measurement.rounds) + 1):
            if next_cells and number > 1:
                selected = frozenset(next_cells(number - 1))
                if not selected:
                    return
                if number > measurement.rounds and number >= self.plan.last_started_round:
                    yield ExtraRound(number, selected)
            for group_round in self.order.rounds(number):
                yield from self._round(group_round, selected)

    def _round(self, of: Round, selected: Collection[Cell]) -> Iterator[Event]:
        """Yield the events of one round of one group."""
        steps = self.order.steps(of, selected, self.abandoned, self.left_out)
        tenant = self._start_servers(steps, of)
        jobs = self._first_jobs(steps) if of.number == 1 else []
        for index, planned in enumerate(steps):
            step, reason = self._within_budget(planned, of)
            case_id = step.block.case_id
            if reason:
                self.left_out.add(case_id)
                jobs = [job for job in jobs if job.cell.case_id != case_id]
                yield CaseSkipped(case_id, step.block.cells, reason)
                continue
            if self.servers.tenant_of(step.block) != tenant:
                tenant = self._start_servers(steps[index:], of)
            jobs = self._compiled_ahead(jobs, step)
            yield from self._step(step)
        again = 0
        for event in self._again(of):
            again += 1
            yield event
        if steps or again:
            yield RoundTimes(self.plan.measurement.stored_number(of), self.breakdown.take())

    def _first_jobs(self, steps: Sequence[RoundStep]) -> list[CompileJob]:
        """Return what can be compiled ahead of a first round; first compile the code of GPUs, where there is some."""
        if self.servers.jit:
            self.servers.serve(None)
            self.breakdown.move("start", "compile", self.breakdown.seconds["start"])  # the first contexts compile
            with self.breakdown.during("compile"):
                prime(self.servers, (job for step in steps for job in self._compile_jobs(step)))
        return [job for step in steps for job in self._compile_jobs(step)] if possible(self.servers) else []

    def _compiled_ahead(self, jobs: list[CompileJob], step: RoundStep) -> list[CompileJob]:
        """Compile ahead of a step; return the jobs that are left for the steps after it."""
        if not jobs:
            return []
        self.servers.serve(None)
        with self.breakdown.during("compile"):
            compiled = compile_ahead(self.servers, jobs, step.cells)
        case_id = step.block.case_id
        return [job for job in jobs if job.cell.case_id != case_id and job.cell not in compiled]

    def _start_servers(self, steps: Sequence[RoundStep], of: Round) -> str:
        """Start the servers of the first of some steps, and of those after it that share them; return their tenant."""
        tenant = self.servers.serve(steps[0].block if steps else None)
        alike = itertools.takewhile(lambda step: self.servers.tenant_of(step.block) == tenant, steps)
        environments = {cell.environment for step in alike for cell in step.cells}
        if environments:
            with self.breakdown.during("start"):
                self.servers.next_round(self.order.server_order(environments, of))
            share = self.servers.starts.take_import_share()
            self.breakdown.move("start", "import", share * self.breakdown.seconds["start"])
        return tenant

    def _again(self, of: Round) -> Iterator[Event]:
        """Measure disturbed rounds again, on new servers, one of each case at a time, until none is to be repeated."""
        yield from self.disturbances.marks()  # of a resumed run
        repeated: set[tuple[str, int]] = set()
        while repeats := self.disturbances.to_repeat(of.group, self.abandoned, repeated):
            repeats = [each for each in repeats if self._has_time_for(of, each)]
            steps = [self.order.step_again(*each) for each in repeats]
            self._start_servers(steps, of)
            for repeat, step in zip(repeats, steps, strict=True):
                if self.disturbances.is_in_vain:
                    return
                if not self._has_time_for(of, repeat):  # the repeats before it took time
                    continue
                self.disturbances.begin(repeat)
                repeated.add((repeat.case_id, repeat.round))
                yield from self._step(step, is_repeat=True)
            if not repeats:
                return

    def _has_time_for(self, of: Round, repeat: Repeat) -> bool:
        if repeat.case_id in self.left_out:
            return False
        return self.hooks.has_time_for is None or self.hooks.has_time_for(of.number, repeat.cells)

    def _within_budget(self, step: RoundStep, of: Round) -> tuple[RoundStep, str]:
        """Return the step, and why the budget has no time for its case; empty if it has. A started case goes on.

        Where there is time for the case alone, its plain-process controls are left out in all rounds.
        """
        if self.hooks.over_budget is None or of.number > 1:
            return step, ""
        reason = self.hooks.over_budget(step.block, self.breakdown.once())
        controls = {cell for cell in step.block.cells if is_plain(cell.environment)}
        if not reason or not controls:
            return step, reason
        block = replace(step.block, cells=tuple(cell for cell in step.block.cells if cell not in controls))
        if reason := self.hooks.over_budget(block, self.breakdown.once()):
            return step, reason
        self.abandoned |= controls
        return replace(step, cells=tuple(cell for cell in step.cells if cell not in controls)), ""

    def _step(self, step: RoundStep, *, is_repeat: bool = False) -> Iterator[Event]:
        """Yield the canary, the outcome of each cell, the end of a step, and which rounds turn out to be disturbed."""
        self.servers.serve(step.block)
        if self.hooks.wait_until_cool:
            self.hooks.wait_until_cool()
        if self.hooks.canary:
            self.servers.settle()
            with self.breakdown.during("canary"):
                seconds = self.hooks.canary()
            yield Canary(step.block.case_id, step.number, seconds)
        for outcome in self._outcomes(step):
            self._note_failure(step.block, outcome)
            self.breakdown.count_samples(outcome)
            attempted = replace(outcome, attempt=step.attempt)
            self.disturbances.note(attempted)
            yield attempted
        yield CaseFinished(step.block.case_id, step.number)
        yield from self.disturbances.marks(is_repeat=is_repeat)

    def _note_failure(self, block: Block, outcome: Outcome) -> None:
        """Decide whether a cell that failed is measured again, and next to others."""
        if outcome.reply.get("status") == "ok":
            return
        cell, failure = outcome.cell, outcome.reply.get("class")
        again = failure in TRANSIENT_FAILURES and cell.environment not in self.servers.broken
        if failure == "oom" and cell not in self.single:  # others waited next to it, and held memory, too
            self.single.add(cell)
            again = self._takes_turns(block, cell)
        if not again:
            self.abandoned.add(cell)

    def _compile_jobs(self, step: RoundStep) -> Iterator[CompileJob]:
        """Yield what it takes to compile the cells of a step; nothing for a user's network, which has no estimate."""
        block = step.block
        if is_model(dict(block.spec)):
            return
        common = {**self._request(block), "key": self.references.key(block.spec)}
        for cell in step.cells:
            request = {**common, **self.servers.request_of(cell)}
            yield CompileJob(cell, block.memory_bytes, request, partial(self.references.get, block.spec))

    def _outcomes(self, step: RoundStep) -> Iterator[Outcome]:
        """Measure each cell of a step, or fail all of them where their reference cannot be computed."""
        block = step.block
        if is_model(dict(block.spec)):
            yield from self._model_outcomes(step)
            return
        if not self.references.known(block.spec):
            self.hooks.say(f"{block.case_id}: computing the reference")
        try:
            with self.breakdown.during("reference"):
                reference = self.references.get(block.spec)
        except RunnerError as error:
            self.left_out.add(block.case_id)
            reply = {"status": "failed", "class": "crash", "reason": error.problems[0].message}
            for cell in step.cells:
                ready = self.servers.ready[cell.environment]
                yield Outcome(cell=cell, round=step.number, reply=reply, facts={}, ready=ready)
            return
        common = {**self._request(block), "key": self.references.key(block.spec)}
        ask = partial(self.servers.ask, number=step.number, common=common, truth=lambda: reference)
        for outcome in self._measured(step, ask):
            if outcome.reply["status"] == "ok":
                self.servers.verified.add(outcome.cell)
            yield outcome

    def _model_outcomes(self, step: RoundStep) -> Iterator[Outcome]:
        """Measure each cell of a user's network, after the base environment has made the references."""
        request = self._request(step.block)
        with self.breakdown.during("reference"):
            self.models.make(step.block, step.cells, request)
        ask = partial(self.models.ask, block=step.block, number=step.number, request=request)
        for outcome in self._measured(step, ask):
            self.models.note(outcome)
            if outcome.reply["status"] == "ok":
                self.servers.verified.add(outcome.cell)
            yield outcome

    def _measured(self, step: RoundStep, ask: Ask) -> Iterator[Outcome]:
        """Yield the outcomes of cells that take turns set by set, and of all others one after the other."""
        in_turns = {cell for cell in step.cells if self._takes_turns(step.block, cell)}
        alone = [cell for cell in step.cells if cell not in in_turns]
        yield from self.batches.outcomes(step, alone, partial(self._alone, ask), self.hooks.say)
        limit = self.servers.limits.memory // 2 // max(step.block.memory_bytes, 1)
        for turn_set in self.order.turn_sets(step, in_turns, limit, self.single):
            yield from self._in_turns(turn_set, ask)

    def _takes_turns(self, block: Block, cell: Cell) -> bool:
        return self.hooks.interleave and block.device == "cpu" and is_called(cell.phase)

    def _alone(self, ask: Ask, cell: Cell, extra: Mapping[str, Any]) -> Outcome:
        """Return the outcome of a cell that is measured in one go; its request has ``extra`` as well."""

        def measured() -> Outcome:
            outcome = ask(cell, extra=extra)
            assert outcome is not None, "a cell that takes no turns waits for one"
            return outcome

        with self.breakdown.during("turns"):
            return self.hooks.measure_unthrottled(measured) if self.hooks.measure_unthrottled else measured()

    def _in_turns(self, turn_set: TurnSet, ask: Ask) -> Iterator[Outcome]:
        """Yield the outcomes of cells that take turns, as they end; their records name the set."""
        name, cells = turn_set
        draw = self.order.random(f"{cells[0].case_id}/{name}")
        text = f"round {name.partition('/')[0]}: turns of {len(cells)} tests of {cells[0].case_id}"
        announce = partial(self.hooks.say, text)
        started = draw.sample(cells, len(cells))
        for outcome in measure_in_turns(self.servers, ask, started, draw, self.breakdown, announce):
            partners = {"turns_with": name} if "turns" in outcome.reply and len(cells) > 1 else {}
            yield replace(outcome, reply={**outcome.reply, **partners})

    def _request(self, block: Block) -> dict[str, Any]:
        """Return the part of a measuring request that the cells of a block share."""
        return {
            "case": dict(block.spec),
            "device": block.device,
            "seconds": self.plan.measurement.seconds,
            "timeout": self.plan.measurement.timeout,
            "memory": self.memory,
        }
