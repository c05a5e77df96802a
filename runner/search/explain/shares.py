"""How much of a change each candidate takes back: ratios of logarithms, over rounds that all sides share.

With a, b and v the times of the release without the change, of that with it, and of the candidate, the share is
log(b/v) / log(b/a): 0 where the candidate is as slow as the changed release, 1 where it is as fast as the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from runner.analysis.analyse import Analysis
from runner.analysis.compare.drafts import Draft, variance_factor
from runner.analysis.compare.metric_rounds import subject_cell
from runner.analysis.compare.metric_rows import metric_side
from runner.analysis.compare.noise_floor import apply_noise_floors
from runner.analysis.compare.pairing import CellPair, Side
from runner.analysis.compare.verdicts import draft, with_verdicts
from runner.analysis.comparison_model import Row
from runner.core.metrics import BY_NAME, TIME
from runner.core.model import Cell
from runner.stats import intervals

Effect = Literal["takes back", "nothing", "makes worse", "undecided", "changes the result", "not measured"]
EFFECTS: Mapping[str, Effect] = {"faster": "takes back", "same": "nothing", "slower": "makes worse"}
"""Verdict of a candidate against the changed release -> its effect; others are undecided."""
WRONG_RESULT = "wrong-result"


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the change that a candidate takes back, with its 95 % interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateEffect:
    """What a candidate does.

    Attributes:
        row: the candidate against the changed release.
        effect: what that says, with false discoveries counted over all candidates.
        share: None where it was not measured, or where its result is another one.
        reason: why it is undecided or was not measured; empty otherwise.
    """

    row: Row
    effect: Effect
    share: Share | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEffects:
    """What a run shows: the change, and what each candidate takes back of it.

    Attributes:
        change: the release without the change against the one with it; ``faster`` where there is something to explain.
        candidates: environment -> what it does.
    """

    change: Row
    candidates: Mapping[str, CandidateEffect]


def run_effects(
    analysis: Analysis, metric_name: str, cell: str, ends: tuple[str, str], environments: Sequence[str]
) -> RunEffects:
    """Return what a run shows.

    Args:
        analysis: of the run.
        metric_name: what is explained.
        cell: without its environment.
        ends: the environments without and with the change.
        environments: those of the candidates that the run has measured.
    """
    metric, run = BY_NAME[metric_name], analysis.measured

    def side(name: str) -> Side:
        return run.side(name) if metric.name == TIME else metric_side(metric, run, name)

    def cell_of(name: str) -> Cell:
        return subject_cell(Cell.parse(f"{name}/{cell}"), metric)

    good, bad = ends
    drafts = {
        name: draft(side(bad), side(name), CellPair(cell_of(bad), cell_of(name))) for name in (good, *environments)
    }
    of_metric = analysis.measured_as(metric.name)
    inflations = {analysis.dataset.run: of_metric.inflation}
    margin = analysis.margin if metric.name == TIME else metric.margin

    def rows(names: Sequence[str]) -> dict[str, Row]:
        judged = with_verdicts([drafts[name] for name in names], margin, inflations=inflations)
        floored = apply_noise_floors(judged, {analysis.dataset.run: of_metric.floors})
        return dict(zip(names, floored, strict=True))

    change = rows([good])[good]
    factor = variance_factor(drafts[good], inflations)
    return RunEffects(
        change=change,
        candidates={
            name: _measured(row, drafts[name], drafts[good], run.side(name), cell, factor)
            for name, row in rows(environments).items()
        },
    )


def _measured(row: Row, drafted: Draft, change: Draft, side: Side, cell: str, factor: float) -> CandidateEffect:
    """Return what a candidate does, given its row and the rounds of both pairs."""
    failure, reason = side.ends.get(Cell.parse(f"{side.environment}/{cell}"), ("", ""))
    if failure == WRONG_RESULT:
        return CandidateEffect(row=row, effect="changes the result", reason=reason)
    if row.verdict == "not-measured":
        return CandidateEffect(row=row, effect="not measured", reason=reason or row.reason)
    if row.verdict == "not-comparable":
        return CandidateEffect(row=row, effect="not measured", reason=row.reason)
    effect = EFFECTS.get(row.verdict_on_median, "undecided")
    shared = share(change.ratios, drafted.ratios, factor)
    return CandidateEffect(row=row, effect=effect, share=shared, reason=row.reason if effect == "undecided" else "")


def share(change: Mapping[int, float], candidate: Mapping[int, float], factor: float = 1.0) -> Share | None:
    """Return the share of a change that a candidate takes back; None with fewer than two rounds in common.

    Its error is that of a ratio of two means over the same rounds, to the first order.

    Args:
        change: round -> logarithm of the time without the change over that with it.
        candidate: round -> the same of the candidate.
        factor: how many times larger squared errors are than rounds show.

    References:
        Cochran, Sampling Techniques, 1977, section 6.4: the error of a ratio estimate.

    >>> share({1: -2.0, 2: -2.0, 3: -2.0}, {1: -1.0, 2: -0.9, 3: -1.1}).estimate
    0.5
    """
    rounds = sorted(change.keys() & candidate.keys())
    if len(rounds) < 2:
        return None
    total, part = (np.array([of[number] for number in rounds]) for of in (change, candidate))
    if not total.mean():
        return None
    estimate = part.mean() / total.mean()
    evidence = intervals.paired((part - estimate * total) / total.mean())
    evidence = evidence._replace(mean=np.asarray(estimate), error=evidence.error * np.sqrt(factor))
    _, low, high = intervals.interval(evidence, 1 - intervals.CONFIDENCE)
    return Share(float(estimate), float(low), float(high))
