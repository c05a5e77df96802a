"""`runner bisect`: search the release in which a cell became slower or faster.

1. ``axes`` finds the candidates between the two ends: environments of the matrix, and releases of the package index
   that are made from the nearest of them (``releases.candidates``, ``releases.index``).
2. ``stats.bisection`` says which two are compared next; ``measuring`` locks, builds and measures them in turns.
3. ``state`` keeps each step, so that the same command continues after an interruption. An outage ends the search before
   there is a step (``measuring.outage``), so nothing of it is kept.
4. ``result`` names the releases.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from runner.analysis.releases import framework_name
from runner.core.errors import Problem, RunnerError, UsageError
from runner.core.locks import hold
from runner.core.progress import Progress
from runner.matrix import load
from runner.releases import index
from runner.releases.candidates import ReleaseCandidate
from runner.releases.index import Lister
from runner.report.formatting import counted
from runner.search.bisect.axes import Axes
from runner.search.bisect.forecast import Forecast, forecast
from runner.search.bisect.measuring import Measuring
from runner.search.bisect.question import LABELS, Ends, requested, with_other_settings
from runner.search.bisect.result import Bisection, entry, step_line
from runner.search.bisect.state import SearchState, SearchStep, new_state, unfinished
from runner.session.context import Context
from runner.session.options import Options
from runner.stats.bisection import (
    FoundChanges,
    Outcome,
    PositionPair,
    Search,
    bisection,
    every_neighbour,
    expected_comparisons,
)

__all__ = ["Ends", "bisect", "dry_run"]

LOCK = ".lock"


def bisect(options: Options, ends: Ends, progress: Progress, versions: Lister = index.versions) -> Bisection:
    """Search the changes of a cell between two ends; an unfinished search with the same question continues.

    Args:
        options: those of ``runner run``; the one selector is the cell.
        ends: what to search.
        progress: shows the work.
        versions: lists the versions of a package.

    Raises:
        UsageError: the cell, an end or the axis does not exist.
        RunnerError: an end cannot be measured; or whatever ``session.execution.run`` raises.
    """
    context, question = requested(options, ends)
    for note in context.notes:
        progress.note(note)
    state = unfinished(options.reports, question)
    if state is None and (other := with_other_settings(options.reports, question)):
        progress.note(other)
    state = state or new_state(options.reports, question, datetime.now(UTC))
    state.path.mkdir(parents=True, exist_ok=True)
    with hold(state.path / LOCK, f"bisect {state.id}"):
        axes = _axes(options, context, versions)
        candidates = _candidates(axes, state, progress)
        measuring = Measuring(context=context, state=state, cell=question.cell, progress=progress)
        answer = _searched(candidates, measuring, keep=ends.keep)
        state.ended = True
        state.save()
    return Bisection(
        id=state.id,
        folder=state.path,
        question=question,
        label=LABELS.get(question.axis, framework_name(candidates[0].environment.framework)),
        candidates=candidates,
        steps=tuple(state.steps),
        answer=answer,
        notes=tuple(axes.notes),
    )


def dry_run(options: Options, ends: Ends, versions: Lister = index.versions) -> Forecast:
    """Return the candidates of a search and what it takes; nothing is locked, built or measured."""
    context, question = requested(options, ends)
    axes = _axes(options, context, versions)
    candidates = axes.candidates(question)
    state = new_state(options.reports, question, datetime.now(UTC))
    measuring = Measuring(context=context, state=state, cell=question.cell, progress=Progress(lambda _: None))
    return forecast(candidates, measuring, axes.notes, every=question.every)


def _axes(options: Options, context: Context, versions: Lister) -> Axes:
    device, matrix = context.request.device, load(options.matrix).with_networks(context.matrix.networks)
    return Axes(matrix=matrix, folder=options.matrix.parent, device=device, versions=versions, notes=[])


def _candidates(axes: Axes, state: SearchState, progress: Progress) -> tuple[ReleaseCandidate, ...]:
    """Return the candidates of a search: those of its earlier part, else those that exist now."""
    if state.candidates:
        progress.note(f"continuing bisect {state.id}: {counted(len(state.steps), 'step')} stored")
        try:
            return axes.stored(state.question, state.candidates)
        except UsageError as error:
            hint = f"restore the matrix to continue the search, or remove {state.path} to search anew"
            raise UsageError(Problem(error.problems[0].message, hint=hint)) from error
    candidates = axes.candidates(state.question)
    state.candidates = tuple(entry(candidate) for candidate in candidates)
    state.save()
    for note in axes.notes:
        progress.note(note)
    steps = expected_comparisons(len(candidates), every=state.question.every)
    progress.note(f"bisect {state.id}: {counted(len(candidates), 'candidate')}, about {counted(steps, 'step')}")
    return candidates


def _searched(candidates: Sequence[ReleaseCandidate], measuring: Measuring, *, keep: bool) -> FoundChanges:
    """Measure until the search has its answer; what was built for it is removed at the end, whatever happens."""
    state, by_name = measuring.state, {candidate.name: candidate for candidate in candidates}
    search: Search = (every_neighbour if state.question.every else bisection)(len(candidates))
    answer = FoundChanges()
    try:
        pair = next(search)
        for step in tuple(state.steps):  # measured before an interruption
            pair = search.send(step.outcome)
        while True:
            if not keep:
                measuring.remove(by_name, _needed(candidates, state.steps, pair))
            pair = search.send(_measured(candidates, measuring, pair))
    except StopIteration as end:
        answer = cast("FoundChanges", end.value)
    if not keep:
        measuring.remove(by_name, set())
    return answer


def _measured(candidates: Sequence[ReleaseCandidate], measuring: Measuring, pair: PositionPair) -> Outcome:
    """Measure a pair, store the step, and return its outcome.

    Raises:
        RunnerError: the last release cannot be measured, so that there is nothing to search.
    """
    state, base, other = measuring.state, candidates[pair.base], candidates[pair.other]
    step: SearchStep = measuring.step(base, other)
    if step.outcome == "missing" and other is candidates[-1] and not state.question.every:
        raise RunnerError(Problem(f"{other.name} cannot be measured: {step.reason}", hint="choose another end"))
    state.steps.append(step)
    state.save()
    measuring.progress.note(step_line(len(state.steps), step))
    return step.outcome


def _needed(candidates: Sequence[ReleaseCandidate], steps: Sequence[SearchStep], pair: PositionPair) -> set[str]:
    """Return the names that the search still needs: the pair, both ends, and the neighbours that it narrows down to."""
    names = [candidate.name for candidate in candidates]
    positions = {pair.base, pair.other, 0, len(names) - 1}
    of_base = [step for step in steps if step.base == names[pair.base]]
    same = [names.index(step.other) for step in of_base if step.outcome == "same"]
    changed = [names.index(step.other) for step in of_base if step.outcome == "changed"]
    positions |= {*([max(same)] if same else []), *([min(changed)] if changed else [])}
    return {names[position] for position in positions}
