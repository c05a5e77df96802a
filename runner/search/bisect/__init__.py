"""`runner bisect`: search the release in which a cell became slower or faster.

1. ``axes`` finds the candidates between the two ends: environments of the matrix, and releases of the package index
   that are made from the nearest of them (``releases.candidates``, ``releases.index``).
2. ``walk`` says which two are compared next; ``measuring`` locks, builds and measures them in turns.
3. ``state`` keeps each step, so that the same command continues after an interruption. An outage ends the search before
   there is a step (``measuring.outage``), so nothing of it is kept.
4. ``result`` names the releases.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from runner.core.errors import Problem, RunnerError, UsageError
from runner.core.locks import hold
from runner.core.progress import Progress
from runner.matrix import load
from runner.releases import index
from runner.releases.candidates import ReleaseCandidate
from runner.releases.index import Lister
from runner.report.formatting import counted
from runner.search.bisect.axes import Axes
from runner.search.bisect.forecast import Forecast, comparisons, forecast
from runner.search.bisect.measuring import Measuring
from runner.search.bisect.question import Ends, label_of, requested, with_other_settings
from runner.search.bisect.rebuilt import rebuilt, rebuilt_name
from runner.search.bisect.result import Bisection, entry, step_line
from runner.search.bisect.state import SEARCHES, SearchState, SearchStep
from runner.search.bisect.walk import SearchResult, Walk
from runner.session.context import Context
from runner.session.options import Options
from runner.stats.bisection import PositionPair

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
    state = SEARCHES.unfinished(options.reports, question)
    if state is None and (other := with_other_settings(options.reports, question)):
        progress.note(other)
    state = state or SEARCHES.new(options.reports, question, datetime.now(UTC))
    state.path.mkdir(parents=True, exist_ok=True)
    with hold(state.path / LOCK, f"bisect {state.id}"), _says_what_continues(state, progress):
        axes = _axes(options, context, versions)
        candidates = _candidates(axes, state, progress, ends.max_comparisons)
        measuring = Measuring(context=context, state=state, cell=question.cell, progress=progress)
        searched = _searched(
            candidates, measuring, keep=ends.keep, limit=ends.max_comparisons, rebuild=ends.rebuild_ends
        )
        state.ended = not searched.answer.stopped  # with a larger limit it goes on
        state.save()
    return Bisection(
        id=state.id,
        folder=state.path,
        question=question,
        label=label_of(question.axis, candidates[0].environment.framework),
        candidates=candidates,
        steps=tuple(state.steps),
        searched=searched,
        notes=tuple(axes.notes),
    )


@contextmanager
def _says_what_continues(state: SearchState, progress: Progress) -> Iterator[None]:
    """Note what an interrupted search has on disk, and that the same command continues it."""
    try:
        yield
    except KeyboardInterrupt:
        steps = next((len(each.steps) for each in SEARCHES.states(state.path.parents[1]) if each.id == state.id), 0)
        progress.note(f"the same command continues bisect {state.id}: {counted(steps, 'step')} stored")
        raise


def dry_run(options: Options, ends: Ends, versions: Lister = index.versions) -> Forecast:
    """Return the candidates of a search and what it takes; nothing is locked, built or measured."""
    context, question = requested(options, ends)
    axes = _axes(options, context, versions)
    candidates = axes.candidates(question)
    state = SEARCHES.new(options.reports, question, datetime.now(UTC))
    measuring = Measuring(context=context, state=state, cell=question.cell, progress=Progress(lambda _: None))
    every, limit, rebuild = question.every, ends.max_comparisons, ends.rebuild_ends
    return forecast(candidates, measuring, axes.notes, every=every, limit=limit, rebuild=rebuild)


def _axes(options: Options, context: Context, versions: Lister) -> Axes:
    device, matrix = context.request.device, load(options.matrix_file).with_networks(context.matrix.networks)
    folder, locks = options.matrix_file.parent, context.settings.locks
    return Axes(matrix=matrix, folder=folder, device=device, versions=versions, notes=[], locks=locks)


def _candidates(axes: Axes, state: SearchState, progress: Progress, limit: int | None) -> tuple[ReleaseCandidate, ...]:
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
    steps = comparisons(len(candidates), every=state.question.every, limit=limit)
    progress.note(f"bisect {state.id}: {counted(len(candidates), 'candidate')}; {steps.sentence}")
    return candidates


def _searched(
    candidates: Sequence[ReleaseCandidate],
    measuring: Measuring,
    *,
    keep: bool,
    limit: int | None = None,
    rebuild: bool = False,
) -> SearchResult:
    """Measure until the search has its answer; what was built for it is removed at the end, whatever happens."""
    state, names = measuring.state, [candidate.name for candidate in candidates]
    by_name = {candidate.name: candidate for each in candidates for candidate in (each, rebuilt(each))}
    stored = list(state.steps)  # measured before an interruption, or with a smaller limit

    def take(pair: PositionPair) -> SearchStep:
        sides = names[pair.base], rebuilt_name(names[pair.other]) if pair.is_rebuilt else names[pair.other]
        step = next((each for each in stored if (each.base, each.other) == sides), None)
        if step is not None:
            stored.remove(step)
            return step
        if not keep:
            measuring.remove(by_name, _needed(candidates, state.steps, pair))
        return _measured(candidates, measuring, pair)

    result = Walk(names=names, every=state.question.every, limit=limit, rebuild=rebuild, take=take).result()
    if not keep:
        measuring.remove(by_name, set())
    return result


def _measured(candidates: Sequence[ReleaseCandidate], measuring: Measuring, pair: PositionPair) -> SearchStep:
    """Measure a pair, store the step, and return it.

    Raises:
        RunnerError: the last release cannot be measured, so that there is nothing to search.
    """
    state, base, other = measuring.state, candidates[pair.base], candidates[pair.other]
    other = rebuilt(other) if pair.is_rebuilt else other
    step = measuring.step(base, other, confirms=pair.confirms)
    if step.outcome == "missing" and other is candidates[-1] and not state.question.every:
        raise RunnerError(Problem(f"{other.name} cannot be measured: {step.reason}", hint="choose another end"))
    state.steps.append(step)
    state.save()
    measuring.progress.note(step_line(len(state.steps), step, state.question))
    return step


def _needed(candidates: Sequence[ReleaseCandidate], steps: Sequence[SearchStep], pair: PositionPair) -> set[str]:
    """Return the names that the search still needs: the pair, both ends, and the neighbours that it narrows down to."""
    names = [candidate.name for candidate in candidates]
    positions = {pair.base, pair.other, 0, len(names) - 1}
    of_base = [step for step in steps if step.base == names[pair.base] and step.other in names]
    same = [names.index(step.other) for step in of_base if step.outcome == "same"]
    changed = [names.index(step.other) for step in of_base if step.outcome == "changed"]
    positions |= {*([max(same)] if same else []), *([min(changed)] if changed else [])}
    return {names[position] for position in positions}
