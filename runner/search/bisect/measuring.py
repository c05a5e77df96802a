"""A step of a bisect: lock and build a candidate if needed, and measure it in turns with another in a run."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.core.errors import OutageError, Problem, ProvisionError, RunnerError
from runner.core.model.cells import is_control, without_environment
from runner.core.progress import Progress
from runner.measure.round_plan import OUTAGE
from runner.plan.pairs import with_plain
from runner.releases.candidates import ReleaseCandidate, lock_request_of
from runner.releases.release_locks import lock_of_its_time
from runner.search.bisect.measured_step import UnmeasurableError, comparison_of, failure, step_of
from runner.search.bisect.rebuilt import is_rebuilt, lock_again
from runner.search.bisect.state import SearchState, SearchStep
from runner.search.built import removed
from runner.session import execution, flow
from runner.session.context import Context, PlannedRun
from runner.session.flow import RunSession
from runner.session.preparation import Prepared, prepare

LOCKS = "locks"
BUILT = "a bisect built it"
MAX_ROUNDS = 40
"""The limit of a comparison without ``--max-rounds``: twice that of a run, because an open step costs a release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """Measures the steps of a search.

    Attributes:
        context: backend, devices and settings; its reports are those of the user.
        state: the search; what is built is noted in it.
        cell: the measured cell, without its environment.
        progress: shows the work.
        clock: seconds, monotonic.
    """

    context: Context
    state: SearchState
    cell: str
    progress: Progress
    clock: Callable[[], float] = time.monotonic
    locks: dict[str, Path] = field(default_factory=dict)

    def step(self, base: ReleaseCandidate, other: ReleaseCandidate, *, confirms: bool = False) -> SearchStep:
        """Measure two candidates in turns, and return what that shows of the second.

        Args:
            base: the first.
            other: the second.
            confirms: measure plain processes, too, also where the matrix has no controls.

        Raises:
            OutageError: a candidate is not available now.
            RunnerError: the base cannot be measured, or the engine or the GPU is gone.
        """
        begin = self.clock()
        try:
            self._lock(base, base)
            self._lock(other, base)
            prepared = self.prepared(base, other)
            self._check_plan(prepared, base, other)
            prepared = self._built(prepared, base, other)
            if confirms and not self.context.settings.controls:  # with controls, each run has plain processes
                prepared = replace(prepared, plan=with_plain(prepared.plan))
            step = step_of(base, other, self._measured(prepared, other), self.state.question)
        except UnmeasurableError as error:
            reason = error.problems[0].message
            return SearchStep(
                base=base.name, other=other.name, outcome="missing", reason=reason, seconds=self.clock() - begin
            )
        return replace(step, seconds=round(self.clock() - begin, 1))

    def prepared(self, *candidates: ReleaseCandidate) -> Prepared:
        """Return the plan of the cell in some candidates, the base first."""
        environments = {candidate.name: candidate.environment for candidate in candidates}
        matrix = self.context.matrix.model_copy(update={"environments": environments})
        request = replace(
            self.context.request,
            environments=tuple(environments),
            max_rounds=self.context.request.max_rounds or MAX_ROUNDS,
            chosen=lambda cell: without_environment(cell) == self.cell,
            cell_selectors=(self.cell,),
        )
        settings = replace(self.context.settings, reports=self.state.path, locks=self.locks)
        return prepare(matrix, request, self.context.backend, settings, self.context.gpu)

    def _lock(self, candidate: ReleaseCandidate, base: ReleaseCandidate) -> None:
        """Write the lock of a candidate for which the matrix has none below the search, if it is not there."""
        variant = candidate.environment.variant(self.context.request.device)
        if candidate.source == "matrix" and not (variant is not None and variant.is_locked_when_named):
            return
        path = self._lock_of(candidate)
        if not path.exists():
            self.progress.note(f"{candidate.name}: locking")
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                if is_rebuilt(candidate):
                    settings, device = self.context.settings, self.context.request.device
                    lock_again(candidate, path.parent, settings.matrix, device, path)
                else:
                    for note in lock_of_its_time(lock_request_of(candidate, self.context.request.device, path)):
                        self.progress.note(note)
            except ProvisionError as error:
                raise _unprovisioned(candidate, base, error) from error
        self.locks[candidate.name] = path

    def _lock_of(self, candidate: ReleaseCandidate) -> Path:
        return (self.state.path / LOCKS / f"{candidate.name}.txt").resolve()

    def _check_plan(self, prepared: Prepared, base: ReleaseCandidate, other: ReleaseCandidate) -> None:
        """Raise UnmeasurableError if the plan does not run the second candidate, RunnerError for the base."""
        planned = {cell.cell.environment: cell for cell in prepared.plan.cells}
        for candidate in (base, other):
            cell = planned.get(candidate.name)
            if cell is not None and cell.skip is not None and cell.skip.passing:
                raise outage(candidate.name, cell.skip.reason)
            reason = "it has no such test" if cell is None else cell.skip.reason if cell.skip else ""
            if reason:
                raise failure(candidate, base, reason)

    def _built(self, prepared: Prepared, base: ReleaseCandidate, other: ReleaseCandidate) -> Prepared:
        """Build both, one at a time, and return the plan with what is there now.

        What is built is noted before, so that a later search removes it.
        """
        for candidate in (base, other):
            if candidate.source == "index" and candidate.name not in prepared.survey.cached:
                self.state.built = list(dict.fromkeys([*self.state.built, candidate.name]))
                self.state.save()
        _, failed = execution.build(prepared, self.context.backend, self.progress)
        for candidate in (base, other):
            if candidate.name in failed:
                raise _unprovisioned(candidate, base, failed[candidate.name])
        return replace(prepared, survey=self.context.backend.survey(prepared.specs))

    def _measured(self, prepared: Prepared, other: ReleaseCandidate) -> RunSession:
        """Measure a plan in a run below the search, which has a comparison with the base.

        Raises:
            OutageError: an environment that was built before is gone, and is not available now.
            UnmeasurableError: the cell fails in the second candidate.
            RunnerError: it fails in the base.
        """
        context = self.context.step_of("runner bisect", self.state.path)
        settings = replace(context.settings, metrics=(self.state.question.metric,))
        work = PlannedRun(replace(context, settings=settings), prepared)
        measured = flow.measure_planned(work, self.progress, without=(flow.remember, flow.answer, flow.propose))
        if comparison_of(measured.analysis, other):
            return measured
        failures = [record for record in measured.run.records() if record.status != "ok"]
        failed = {record.cell.environment: record.reason or record.failure or "failed" for record in failures}
        for record in failures:
            if record.failure == OUTAGE:
                raise outage(record.cell.environment, failed[record.cell.environment])
        reason = next((why for name, why in failed.items() if not is_control(name)), "neither release has a record")
        if other.name in failed:
            raise UnmeasurableError(f"the test fails: {failed[other.name]}")
        raise RunnerError(Problem(f"nothing can be compared in run {measured.run.path}: {reason}"))

    def remove(self, candidates: Mapping[str, ReleaseCandidate], kept: set[str]) -> None:
        """Remove what this search has built, without what is kept; a candidate that cannot be removed stays noted.

        A noted name that is no candidate's, as in a state that somebody changed, is only forgotten.
        """
        for name in [name for name in self.state.built if name not in kept]:
            if name not in candidates or self._removed(candidates[name]):
                self.state.built.remove(name)
                self.state.save()

    def _removed(self, candidate: ReleaseCandidate) -> bool:
        """Remove the environment of a candidate; return whether it is gone."""
        lock = self._lock_of(candidate)
        return removed(self.context, candidate.name, candidate.environment, lock, BUILT, self.progress.note)


def outage(name: str, reason: str) -> OutageError:
    """Return the error that stops a search: something is not available now, and nothing is known of a release."""
    hint = "give the same command again when that has passed: the search goes on"
    return OutageError(Problem(f"{name} is not available now: {reason}", hint=hint))


def _unprovisioned(candidate: ReleaseCandidate, base: ReleaseCandidate, error: ProvisionError) -> RunnerError:
    """Return the error of a candidate that cannot be locked or built; an outage is no fact about it."""
    reason = error.problems[0].message
    return outage(candidate.name, reason) if error.passing else failure(candidate, base, reason)
