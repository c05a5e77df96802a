"""What a run of two candidates shows of the second: the step of a search."""

from collections.abc import Mapping

from runner.analysis.analyse import Analysis
from runner.analysis.compare.metric_rounds import subject_cell
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.plain_control import plain_change
from runner.core.errors import Problem, RunnerError
from runner.core.metrics import BY_NAME, CHANGES
from runner.core.model import Cell
from runner.releases.candidates import ReleaseCandidate
from runner.report import differences
from runner.search.bisect.source_changes import revisions_of
from runner.search.bisect.state import PlainProcesses, Question, SearchStep
from runner.session.flow import RunSession
from runner.stats.bisection import Outcome

OUTCOMES: Mapping[str, Outcome] = {"same": "same", **dict.fromkeys(CHANGES, "changed")}
"""Verdict -> what it says to the search; a pair without one stays open, and one without a record is missing."""


class UnmeasurableError(RunnerError):
    """A candidate cannot be locked, built or measured; the search goes on without it."""


def failure(candidate: ReleaseCandidate, base: ReleaseCandidate, reason: str) -> RunnerError:
    """Return the error of a candidate that cannot be measured; without its base, no step can be."""
    if candidate is not base:
        return UnmeasurableError(reason)
    return RunnerError(Problem(f"{candidate.name} cannot be measured: {reason}", hint="choose another end"))


def comparison_of(analysis: Analysis, other: ReleaseCandidate) -> Comparison | None:
    """Return the comparison of a release with the base of its run; None without one."""
    return next((each for each in analysis.comparisons if each.others == (other.name,)), None)


def row_of(analysis: Analysis, question: Question, base: ReleaseCandidate, other: ReleaseCandidate) -> Row:
    """Return the row about the metric of a search, in a run that has a comparison of two candidates.

    Raises:
        UnmeasurableError: the second candidate has no value of the metric.
        RunnerError: the base has none.
    """
    metric = BY_NAME[question.metric]
    before, after = (subject_cell(Cell.parse(f"{each.name}/{question.cell}"), metric) for each in (base, other))
    comparison = comparison_of(analysis, other)
    row = comparison.rows_by_cell(metric.name).get(after) if comparison else None
    if row is None:
        without = other if before in analysis.measured_as(metric.name).cells else base
        raise failure(without, base, f"it has no {metric.title}: {metric.absent}")
    return row


def step_of(base: ReleaseCandidate, other: ReleaseCandidate, measured: RunSession, question: Question) -> SearchStep:
    """Return the step of a search; raises what ``row_of`` does."""
    comparison = comparison_of(measured.analysis, other)
    assert comparison is not None
    row = row_of(measured.analysis, question, base, other)
    grade = measured.analysis.grade
    facts, cells = measured.analysis.dataset.environments, (row.base, row.other)
    in_plain = plain_change(measured.analysis.measured_as(question.metric).cells, *cells)
    outcome = OUTCOMES.get(row.verdict_on_median, "missing" if row.verdict == "not-measured" else "open")
    return SearchStep(
        base=base.name,
        other=other.name,
        outcome=outcome,
        verdict=row.verdict,
        ratio=row.ratio,
        ratio_low=row.ratio_low,
        ratio_high=row.ratio_high,
        base_value=row.values[0],
        value=row.values[1],
        rounds=row.rounds,
        run=measured.run.id,
        reason="" if outcome in ("same", "changed") else row.reason,
        differences=tuple(differences.sentences(comparison)),
        grade=grade.level if grade else "",
        issues=tuple(f"{issue.code}: {issue.sentence}" for issue in measured.analysis.issues if issue.serious),
        base_revisions=revisions_of(base, question.axis, facts.get(base.name, {})),
        revisions=revisions_of(other, question.axis, facts.get(other.name, {})),
        plain=in_plain and PlainProcesses(**in_plain._asdict()),
    )
