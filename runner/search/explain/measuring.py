"""Measures both releases and some candidates in one run, so that all of them share its rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.analysis.analyse import Analysis, analyse_run
from runner.core.errors import OutageError, Problem, ProvisionError, RunnerError
from runner.core.model import Cell
from runner.core.model.cells import is_control, without_environment
from runner.core.progress import Progress
from runner.matrix import Environment, Matrix
from runner.search.built import removed
from runner.search.explain.candidates import Candidate, environment_name, environment_of
from runner.search.explain.packages import also_changed, make_lock
from runner.search.explain.question import ExplainCase
from runner.search.explain.state import ExplainState
from runner.session import execution, flow
from runner.session.context import Context, PlannedRun
from runner.session.execution.header import check_machine, check_program, read_header
from runner.session.execution.resume import remaining_work, stored_plan, with_header
from runner.session.preparation import Prepared, prepare
from runner.store.run import Run, runs

LOCKS = "locks"
BUILT = "an explanation built it"
ROUNDS = 8
"""The rounds without ``--rounds``: their number is fixed, because a candidate that changes nothing would take the most
rounds to be shown as such, and what explains a change is decided long before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateMeasuring:
    """Measures the runs of an explanation.

    Attributes:
        case: what is explained.
        state: where locks and runs are; what cannot be tried is noted in it.
        progress: shows the work.
        locks: environment -> its lock, of the candidates that have one.
    """

    case: ExplainCase
    state: ExplainState
    progress: Progress
    locks: dict[str, Path] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        """Backend, devices and settings; its reports are those of the user."""
        return self.case.context

    def name(self, candidate: Candidate) -> str:
        """Return the environment of a candidate."""
        return environment_name(self.case.bad, candidate)

    def run(self, candidates: Sequence[Candidate]) -> Analysis:
        """Return what a run of both releases and of candidates shows.

        A stored run is read again, and an unfinished one is continued.

        Raises:
            OutageError: an environment is not available now.
            RunnerError: one of the releases cannot be measured.
        """
        self._make_locks(candidates)
        usable = [each for each in candidates if self.name(each) not in self.state.untried]
        names = {self.case.bad.name, self.case.good.name, *map(self.name, usable)}
        context = self.with_candidates(usable)
        stored = next((run for run in runs(self.state.path) if _environments(run) == names), None)
        if stored is not None and not stored.journal().unfinished:
            analysis = analyse_run(stored, context.settings.margin)
            if not self._failure(analysis):
                return analysis
            stored = None  # a release failed in it, which may have passed
        measured = self._new(context, usable) if stored is None else self._continued(context, stored)
        analysis = analyse_run(measured, context.settings.margin)
        if problem := self._failure(analysis):
            raise RunnerError(Problem(problem, hint="give the same command again once that is remedied"))
        return analysis

    def folder_of(self, analysis: Analysis) -> Path:
        """Return the folder of a run."""
        return next(run.path for run in runs(self.state.path) if run.id == analysis.dataset.run)

    def with_candidates(self, candidates: Sequence[Candidate]) -> Context:
        """Return the context whose request is the test in both releases and in candidates, the changed one first."""
        matrix, bad, device = self.context.matrix, self.case.bad, self.context.request.device
        environments = {self.name(each): environment_of(matrix, bad, each, device) for each in candidates}
        rounds = self.context.request.rounds or ROUNDS
        request = replace(
            self.context.request,
            environments=(bad.name, self.case.good.name, *environments),
            rounds=rounds,
            max_rounds=self.context.request.max_rounds or rounds,
            chosen=lambda cell: without_environment(cell) == self.state.question.cell,
            cell_selectors=(self.state.question.cell,),
        )
        settings = replace(
            self.context.settings,
            locks={**self.context.settings.locks, **self.locks},
            metrics=(self.state.question.metric,),
            controls=False,
            profile=True,
        )
        context = replace(
            self.context, matrix=_with(matrix, bad.name, environments), request=request, settings=settings
        )
        return context.step_of("runner explain", self.state.path)

    def _make_locks(self, candidates: Sequence[Candidate]) -> None:
        """Make the locks of the candidates that have packages of their own; what has no solution stays untried."""
        bad, device = self.case.bad, self.context.request.device
        for candidate in candidates:
            name = self.name(candidate)
            if not candidate.is_built or name in self.state.untried:
                continue
            self.locks[name] = path = (self.state.path / LOCKS / f"{name}.txt").resolve()
            if path.exists():
                continue
            self.progress.note(f"{name}: locking")
            environment = environment_of(self.context.matrix, bad, candidate, device)
            try:
                make_lock(name, environment, candidate.pins, device, bad.lock, path)
            except ProvisionError as error:
                self._give_up(name, error)

    def _give_up(self, name: str, error: ProvisionError) -> None:
        """Note that a candidate cannot be tried; raise OutageError where that is no fact about it."""
        reason = " ".join(error.problems[0].message.split())
        if error.passing:
            hint = "give the same command again when that has passed: the explanation goes on"
            raise OutageError(Problem(f"{name} is not available now: {reason}", hint=hint)) from error
        self.state.untried[name] = reason
        self.state.save()

    def also_changed(self, candidate: Candidate) -> tuple[str, ...]:
        """Return the packages that differ beside those of a candidate, because these need them."""
        path = self.locks.get(self.name(candidate))
        return also_changed(candidate.pins, self.case.bad.lock, path) if path and path.exists() else ()

    def prepared(self, context: Context) -> Prepared:
        """Return the plan of a context."""
        return prepare(context.matrix, context.request, context.backend, context.settings, context.gpu)

    def _new(self, context: Context, candidates: Sequence[Candidate]) -> Run:
        """Build and measure a new run; a candidate that cannot be built is left out of it."""
        prepared = self.prepared(context)
        skipped = {cell.cell.environment: cell.skip for cell in prepared.plan.cells if cell.skip is not None}
        for end in (self.case.bad, self.case.good):
            if end.name in skipped:
                raise RunnerError(Problem(f"{end.name} cannot be measured: {skipped[end.name].reason}"))
        to_build = {self.name(each) for each in candidates if each.is_built} - prepared.survey.cached
        self.state.built = list(dict.fromkeys([*self.state.built, *sorted(to_build)]))
        self.state.save()
        _, failed = execution.build(prepared, context.backend, self.progress)
        for name, error in failed.items():
            if name in (self.case.bad.name, self.case.good.name):
                raise error
            self._give_up(name, error)
        if failed:
            kept = [each for each in candidates if self.name(each) not in failed]
            context = self.with_candidates(kept)
            prepared = self.prepared(context)
        survey = context.backend.survey(prepared.specs)
        return self._measured(PlannedRun(context, replace(prepared, survey=survey)))

    def _continued(self, context: Context, stored: Run) -> Run:
        """Measure the rest of an interrupted run."""
        with stored.hold():
            header, journal = read_header(stored), stored.journal()
            check_program(stored, header)
            plan = stored_plan(stored, journal, header, self.progress.note)
            context = replace(context, settings=with_header(context.settings, header))
            check_machine(stored, header, context.gpus)
            plan = replace(plan, devices=max(1, len(context.gpus)))
            self.progress.note(f"continuing run {stored.id}")
            return self._measured(PlannedRun(context, remaining_work(plan, context, self.locks), stored))

    def _measured(self, work: PlannedRun) -> Run:
        return flow.measure_planned(work, self.progress, without=(flow.remember, flow.answer, flow.propose)).run

    def _failure(self, analysis: Analysis) -> str:
        """Return which of the releases has no good record in a run, with the reason; empty if both have."""
        for end in (self.case.bad, self.case.good):
            side = analysis.measured.side(end.name)
            cell = Cell.parse(f"{end.name}/{self.state.question.cell}")
            if cell not in side.measured:
                return f"{end.name} cannot be measured: {side.ends.get(cell, ('', 'it has no such test'))[1]}"
        return ""

    def remove_built(self, candidates: Mapping[str, Candidate]) -> None:
        """Remove what was built for the explanation; ``candidates`` has each by its environment."""
        matrix, bad, device = self.context.matrix, self.case.bad, self.context.request.device
        for name in list(self.state.built):
            lock = (self.state.path / LOCKS / f"{name}.txt").resolve()
            candidate = candidates.get(name)
            if candidate is None or not lock.exists():
                self.state.built.remove(name)
                continue
            environment = environment_of(matrix, bad, candidate, device)
            if removed(self.context, name, environment, lock, BUILT, self.progress.note):
                self.state.built.remove(name)
                self.state.save()


def _environments(run: Run) -> set[str]:
    """Return the environments of a run, without its controls."""
    names = {Cell.parse(cell["id"]).environment for cell in run.plan()["cells"]}
    return {name for name in names if not is_control(name)}


def _with(matrix: Matrix, bad: str, environments: Mapping[str, Environment]) -> Matrix:
    """Return the matrix with the environments of candidates, which have the thread count of the changed release."""
    threads = matrix.launch_of(bad).threads
    counts = dict.fromkeys(environments, threads) if threads else {}
    return matrix.with_environments({**matrix.environments, **environments}, counts, {})
