"""The rows about metrics other than time: the statistics of times, on other values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from runner.analysis.compare.drafts import Draft
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.compare.metric_rounds import environment_cell
from runner.analysis.compare.noise_floor import apply_noise_floors
from runner.analysis.compare.pairing import CellPair, Side
from runner.analysis.compare.run_sides import Match
from runner.analysis.compare.verdicts import draft, with_verdicts
from runner.analysis.comparison_model import Row, Verdict
from runner.core.metrics import BY_NAME, OTHERS, Metric, Scope
from runner.stats import intervals

EXACT_ERROR = 1e-9
"""The standard error of the log ratio of two exact values, which the statistics need above 0."""
NOUNS: Mapping[Scope, str] = {"cell": "test", "environment": "comparison"}
"""Scope -> what a row of such a metric is called in a sentence."""
KNOWN_FREEDOM = 1e6
"""Degrees of freedom of a standard error that is known, not estimated."""


def metric_rows(matches: Sequence[Match], runs: Mapping[str, MeasuredRun]) -> dict[str, list[Row]]:
    """Return metric -> its rows, for each metric that both sides of a pair have.

    The sides and the pairs are those whose times are compared. Each metric has its own margin. A change counts if it is
    one among the rows of its metric, and also among the rows of all metrics together.

    Args:
        matches: the sides, and the cells that are compared; those of a publication have no other metric.
        runs: run -> the run, of all sides.
    """
    measured = [match for match in matches if not (match.base.figures or match.other.figures)]
    rows_by_metric = {metric.name: list(_rows(metric, measured, runs)) for metric in OTHERS}
    every = [row for rows in rows_by_metric.values() for row in rows]
    counts = iter(_discovered(every))
    return {
        name: [in_words_of(BY_NAME[name], row if next(counts) else _undecided(row)) for row in rows]
        for name, rows in rows_by_metric.items()
        if rows
    }


def absences(matches: Sequence[Match], rows: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """Return metric -> how many measured pairs are without it, and why; without metrics that all of them have."""
    sizes = {"cell": sum(1 for match in matches for _ in _measured_pairs(match)), "environment": len(matches)}
    sentences = {}
    for metric in OTHERS:
        size, noun = sizes[metric.scope], NOUNS[metric.scope]
        missing = size - len(rows.get(metric.name, ()))
        if missing:
            who = f"no {noun} has" if missing == size else f"{missing} of {size} {noun}s have no"
            sentences[metric.name] = f"{who} {metric.title}: {metric.absent}"
    return sentences


def _measured_pairs(match: Match) -> Iterator[CellPair]:
    return (pair for pair in match.pairs if pair.base in match.base.measured and pair.other in match.other.measured)


def _rows(metric: Metric, matches: Sequence[Match], runs: Mapping[str, MeasuredRun]) -> Iterator[Row]:
    drafts = [draft for match in matches for draft in _drafts(metric, match, runs)]
    names = {name for draft in drafts for name in draft.row.runs}
    of_metric = {name: runs[name].of_metric(metric) for name in names}
    inflations = {name: run.inflation for name, run in of_metric.items()}
    judged = with_verdicts(drafts, metric.margin, inflations={} if metric.exact else inflations)
    return apply_noise_floors(judged, {name: run.floors for name, run in of_metric.items()})


def _drafts(metric: Metric, match: Match, runs: Mapping[str, MeasuredRun]) -> Iterator[Draft]:
    if any(runs[side.run].of_metric(metric).dataset.rounds.empty for side in (match.base, match.other)):
        return
    base, other = (metric_side(metric, runs[side.run], side.environment) for side in (match.base, match.other))
    if metric.scope == "environment":
        pairs: Iterable[CellPair] = [
            CellPair(environment_cell(base.environment, metric), environment_cell(other.environment, metric))
        ]
    else:
        pairs = match.pairs
    for pair in pairs:
        if pair.base in base.measured and pair.other in other.measured:
            drafted = replace(draft(base, other, pair), mean_ratios={})
            yield _exact(drafted) if metric.exact else drafted


def metric_side(metric: Metric, run: MeasuredRun, environment: str) -> Side:
    """Return an environment of a run with the values of a metric, of which none is finer than its resolution."""
    of_metric = run.of_metric(metric).side(environment)
    measured = {
        cell: replace(each, tick=max(each.tick, metric.resolution)) for cell, each in of_metric.measured.items()
    }
    return replace(of_metric, measured=measured)


def _exact(drafted: Draft) -> Draft:
    """Return a draft whose evidence has no error, if its sides can be compared."""
    if drafted.evidence is None:
        return drafted
    known = drafted.evidence._replace(error=np.asarray(EXACT_ERROR), freedom=np.asarray(KNOWN_FREEDOM))
    return replace(drafted, evidence=known, ratios={}, looks=())


def _discovered(rows: Sequence[Row]) -> list[bool]:
    """Return which rows are called different among all of them; one that is, without a p-value, has no error."""
    certain = {"slower": 0.0, "faster": 0.0}
    p_values = np.array([certain.get(row.verdict, 1.0) if row.p_value is None else row.p_value for row in rows])
    return intervals.significant(p_values).tolist() if rows else []


def _undecided(row: Row) -> Row:
    if row.verdict not in ("slower", "faster"):
        return row
    return replace(row, verdict="inconclusive", code="more-rounds", reason="too many metrics for so little evidence")


def in_words_of(metric: Metric, row: Row) -> Row:
    """Return a row with its values as those of its metric, and with the words of the metric."""
    words: Mapping[str, Verdict] = {"slower": metric.worse, "faster": metric.better}
    return replace(
        row,
        metric=metric.name,
        base_amount=row.base_seconds,
        amount=row.seconds,
        base_seconds=None,
        seconds=None,
        verdict=words.get(row.verdict, row.verdict),
    )
