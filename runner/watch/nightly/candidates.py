"""Which cells of tonight are to be measured in turns: those that look changed, those left open, those due."""

from collections.abc import Iterable, Iterator, Mapping

from runner.analysis.comparison_model import Row
from runner.core.model import Cell
from runner.nights.looks import EarlierNights, is_confirmed, last_in_turns
from runner.watch.nightly.anchors import is_due
from runner.watch.nightly.baseline import Baseline, looks_changed
from runner.watch.nightly.requests import NightCandidate


def against_baselines(
    rows: Mapping[Cell, Row], baselines: Mapping[Cell, Baseline], nights: EarlierNights, digests: Mapping[str, str]
) -> Iterator[NightCandidate]:
    """Yield the cells that look changed since their last good run, or that an earlier night left open.

    Args:
        rows: tonight against the baselines.
        baselines: of these cells.
        nights: the earlier nights.
        digests: environment -> what pins its content tonight.
    """
    for cell, row in rows.items():
        baseline, digest = baselines[cell], digests.get(cell.environment, "")
        candidate = NightCandidate(cell, row, baseline, "baseline", digest, nights.of(cell.id, baseline.run))
        same_environment = baseline.digest == digest
        if looks_changed(row, same_environment=same_environment) or (_is_open(candidate) and not same_environment):
            yield candidate


def _is_open(candidate: NightCandidate) -> bool:
    last = last_in_turns(candidate.looks)
    return bool(candidate.looks) and (last is None or last.verdict not in ("same", "faster"))


def anchors_to_compare(anchors: Mapping[Cell, Baseline], baselines: Mapping[Cell, Baseline]) -> dict[Cell, Baseline]:
    """Return the anchors of the cells whose baseline has another environment than the anchor.

    Where the two have the same environment, the comparison with the baseline is both.
    """
    return {
        cell: anchor
        for cell, anchor in anchors.items()
        if cell not in baselines or not _same_environment(baselines[cell], anchor)
    }


def against_anchors(
    rows: Mapping[Cell, Row],
    anchors: Mapping[Cell, Baseline],
    suspects: Iterable[NightCandidate],
    nights: EarlierNights,
    digests: Mapping[str, str],
    margin: float,
) -> Iterator[NightCandidate]:
    """Yield the cells that are to be compared with their anchors tonight.

    A cell that is a confirmed regression against its baseline is left out: it is reported anyway.

    Args:
        rows: tonight against the anchors.
        anchors: of these cells.
        suspects: the candidates against baselines; what looks slower than its baseline, too, is no suspicion of creep.
        nights: the earlier nights.
        digests: environment -> what pins its content tonight.
        margin: the relative change that counts as none.
    """
    by_cell = {candidate.cell: candidate for candidate in suspects}
    for cell, row in rows.items():
        anchor, digest = anchors[cell], digests.get(cell.environment, "")
        looks = nights.of(cell.id, anchor.run)
        suspect = by_cell.get(cell)
        if suspect and is_confirmed(suspect.looks):
            continue
        crept = (row.ratio or 1.0) / (suspect.suspicion if suspect else 1.0)
        if is_due(cell, digest, anchor, looks, nights, crept=row.verdict == "slower" and crept > 1 + margin):
            yield NightCandidate(cell, row, anchor, "anchor", digest, looks)


def _same_environment(baseline: Baseline, anchor: Baseline) -> bool:
    return baseline.run == anchor.run or bool(anchor.digest and baseline.digest == anchor.digest)
