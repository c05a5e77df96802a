"""Candidates of metrics other than time: tonight's values beside those of the last good runs.

Series and anchors are those of times. Values of two runs differ less than times do, as the state of a machine hardly
changes them, so what may have changed is a row with a verdict, or an open one beyond the margin for the worse.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.compare.metric_rounds import subject_cell
from runner.analysis.compare.metric_rows import in_words_of, metric_side
from runner.analysis.compare.pairing import CellPair, Side
from runner.analysis.compare.verdicts import draft, with_verdicts
from runner.analysis.comparison_model import Row
from runner.core.metrics import CHANGES, OTHERS, Metric
from runner.core.model import Cell
from runner.core.row_ids import row_id
from runner.nights.looks import EarlierNights
from runner.watch.nightly.baseline import Baseline
from runner.watch.nightly.requests import NightCandidate


class MetricSuspects(NamedTuple):
    """What may have changed of metrics other than time, and the ids of all rows that were compared."""

    candidates: list[NightCandidate]
    compared: frozenset[str]


def metric_suspects(
    tonight: MeasuredRun, baselines: Mapping[Cell, Baseline], nights: EarlierNights, digests: Mapping[str, str]
) -> MetricSuspects:
    """Return what may have changed tonight of metrics other than time.

    A cell whose environment is that of its baseline is no candidate: nothing could confirm it.

    Args:
        tonight: the results of the night's first run.
        baselines: of its cells.
        nights: the earlier nights.
        digests: environment -> what pins its content tonight.
    """
    candidates, ids = [], set()
    for metric in OTHERS:
        for cell, row in _rows(metric, tonight, baselines):
            baseline, digest = baselines[cell], digests.get(cell.environment, "")
            name = row_id(row.other.id, metric.name)
            ids.add(name)
            candidate = NightCandidate(cell, row, baseline, "baseline", digest, nights.of(name, baseline.run))
            if digest != baseline.digest and (_looks_changed(row, metric) or candidate.is_open):
                candidates.append(candidate)
    return MetricSuspects(candidates, frozenset(ids))


def _rows(metric: Metric, tonight: MeasuredRun, baselines: Mapping[Cell, Baseline]) -> Iterator[tuple[Cell, Row]]:
    """Yield (measured cell, row) of a metric against the baselines; a metric of environments has a cell of each."""
    sides: dict[str, Side] = {}
    earlier: dict[tuple[str, str], Side] = {}
    drafts, cells = [], dict[Cell, Cell]()
    for cell, baseline in baselines.items():
        if baseline.measured is None:
            continue
        name, key = cell.environment, (cell.environment, baseline.run)
        subject = subject_cell(cell, metric)
        sides[name] = sides.get(name) or metric_side(metric, tonight, name)
        earlier[key] = earlier.get(key) or metric_side(metric, baseline.measured, name)
        is_known = subject in sides[name].measured and subject in earlier[key].measured
        if is_known and subject not in cells:
            cells[subject] = cell
            drafts.append(draft(earlier[key], sides[name], CellPair(subject, subject)))
    rows = with_verdicts(drafts, metric.margin, across_runs=True) if drafts else []
    return zip(cells.values(), (in_words_of(metric, row) for row in rows), strict=True)


def _looks_changed(row: Row, metric: Metric) -> bool:
    return row.verdict in CHANGES or (row.verdict == "inconclusive" and (row.ratio or 1.0) > 1 + metric.margin)
