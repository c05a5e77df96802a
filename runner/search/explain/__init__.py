"""`runner explain`: measure what takes a change between two releases back.

1. ``candidates`` lists what may: switches (``catalog.switches``), variables, packages and the Python of the release
   without the change, each as an environment made from the release with it.
2. ``measuring`` measures all of them in the same rounds of one run, then those that take something back together.
3. ``shares`` says which share of the change each takes back; ``result`` prints it.
4. ``state`` keeps what cannot be tried, so that the same command continues after an interruption.
"""

from datetime import UTC, datetime

from runner.core.locks import hold
from runner.core.progress import Progress
from runner.report.formatting import counted
from runner.search.explain.candidates import Candidate, together
from runner.search.explain.forecast import ExplainForecast, forecast
from runner.search.explain.measuring import CandidateMeasuring
from runner.search.explain.operators import operator_changes
from runner.search.explain.question import ExplainCase, TypedReleases, requested
from runner.search.explain.result import Explanation, Tried, by_environment
from runner.search.explain.shares import CandidateEffect, run_effects
from runner.search.explain.state import EXPLANATIONS
from runner.session.options import Options

__all__ = ["TypedReleases", "dry_run", "explain"]

LOCK = ".lock"


def explain(options: Options, typed: TypedReleases, progress: Progress) -> Explanation:
    """Measure what takes a change back; an unfinished explanation with the same question continues.

    Args:
        options: those of ``runner run``; the one selector is the test.
        typed: the two releases and the metric.
        progress: shows the work.

    Raises:
        UsageError: the test or a release does not exist, or an option does not fit.
        RunnerError: a release cannot be measured; or whatever ``session.execution.run`` raises.
    """
    case = requested(options, typed)
    for note in case.context.notes:
        progress.note(note)
    state = EXPLANATIONS.unfinished(options.reports, case.question)
    if state is not None:
        progress.note(f"continuing explain {state.id}")
    state = state or EXPLANATIONS.new(options.reports, case.question, datetime.now(UTC))
    state.path.mkdir(parents=True, exist_ok=True)
    with hold(state.path / LOCK, f"explain {state.id}"):
        state.save()
        progress.note(f"explain {state.id}: {counted(len(case.candidates), 'candidate')}")
        measuring = CandidateMeasuring(case=case, state=state, progress=progress)
        result = _measured(case, measuring)
        if not typed.keep:
            every = (*case.candidates, *([result.together.candidate] if result.together else []))
            measuring.remove_built({measuring.name(each): each for each in every})
        state.ended = True
        state.save()
    return result


def dry_run(options: Options, typed: TypedReleases) -> ExplainForecast:
    """Return the candidates of an explanation and what it takes; nothing is locked, built or measured."""
    case = requested(options, typed)
    state = EXPLANATIONS.new(options.reports, case.question, datetime.now(UTC))
    return forecast(case, CandidateMeasuring(case=case, state=state, progress=Progress(lambda _: None)))


def _measured(case: ExplainCase, measuring: CandidateMeasuring) -> Explanation:
    """Measure the candidates one at a time, then together those that take something back."""
    state, by_name = measuring.state, {measuring.name(each): each for each in case.candidates}
    analysis = measuring.run(case.candidates)
    question, ends = state.question, (case.good.name, case.bad.name)
    tried = [name for name in by_name if name not in state.untried]
    of_run = run_effects(analysis, question.metric, question.cell, ends, tried)
    analyses, combined = [analysis], None
    back = by_environment(by_name, of_run.candidates)
    if len(back) > 1 and of_run.change.verdict_on_median == "faster":
        strongest = sorted(back, key=lambda name: -_estimate(of_run.candidates[name]))
        candidate = together([back[name] for name in strongest])
        analyses.append(measuring.run([candidate]))
        name = measuring.name(candidate)
        of_both = [] if name in state.untried else [name]
        again = run_effects(analyses[-1], question.metric, question.cell, ends, of_both)
        combined = _tried(measuring, candidate, again.candidates.get(name))
    return Explanation(
        id=state.id,
        folder=state.path,
        question=question,
        change=of_run.change,
        tried=tuple(_tried(measuring, each, of_run.candidates.get(name)) for name, each in by_name.items()),
        together=combined,
        analyses=tuple(analyses),
        operators=operator_changes(measuring.folder_of(analysis), *(f"{name}/{question.cell}" for name in ends)),
        notes=case.notes,
    )


def _estimate(measured: CandidateEffect) -> float:
    return measured.share.estimate if measured.share else 0.0


def _tried(measuring: CandidateMeasuring, candidate: Candidate, measured: CandidateEffect | None) -> Tried:
    name = measuring.name(candidate)
    return Tried(
        candidate=candidate,
        environment=name,
        measured=measured,
        reason=measuring.state.untried.get(name, ""),
        also=measuring.also_changed(candidate),
    )
