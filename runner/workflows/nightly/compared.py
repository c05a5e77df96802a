"""Compare the cells of a night with their baselines and anchors, and choose what is confirmed in turns."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from runner.analysis.model import Dataset
from runner.core.model import Cell
from runner.workflows.context import Context
from runner.workflows.nightly.anchors import find_anchors
from runner.workflows.nightly.baseline import Baselines, compare_with_baselines, find_baselines, measured_cells
from runner.workflows.nightly.candidates import against_anchors, against_baselines, anchors_to_compare
from runner.workflows.nightly.history import History
from runner.workflows.nightly.pins import device_of, write_pins
from runner.workflows.nightly.requests import Candidate, in_order
from runner.workflows.nightly.result import Change, Night
from runner.workflows.run.recorder import Totals

SAME_ENVIRONMENT = "{} is the same as in run {}: the machine has changed, or is noisy"


def compare(
    night: Night, totals: Totals, results: Dataset, history: History, context: Context
) -> tuple[Night, list[Candidate], frozenset[str]]:
    """Compare the cells with their baselines and anchors.

    Returns:
        The night, the candidates to be confirmed, and the ids of the cells that were compared with their baselines.
    """
    reports, margin = context.settings.reports, context.settings.margin
    cells, header = measured_cells(results), totals.run.journal().header
    anchors = find_anchors(reports, totals.run, cells, history)
    write_pins(reports, device_of(header), anchors.pins)
    accepted = {name: pin.run for name, pin in anchors.pins.items() if pin.accepted}
    baselines = find_baselines(reports, totals.run, results, totals.bad, history.open_cells, accepted)
    digests = header["digests"]
    rows = dict(compare_with_baselines(results, baselines.by_cell, margin))
    changed = [*against_baselines(rows, baselines.by_cell, history, digests)]
    unchanged = [candidate for candidate in changed if candidate.baseline.digest == candidate.digest]
    candidates = [candidate for candidate in changed if candidate.baseline.digest != candidate.digest]
    other_anchors = anchors_to_compare(anchors.by_cell, baselines.by_cell)
    anchor_rows = dict(compare_with_baselines(results, other_anchors, margin))
    candidates += against_anchors(anchor_rows, other_anchors, changed, history, digests, margin)
    changes = tuple(_unchanged(candidate) for candidate in in_order(unchanged, margin))
    notes = (*night.notes, *baselines.notes, *anchors.notes, *_notes(cells, baselines))
    compared = frozenset(cell.id for cell in rows)
    return replace(night, compared=len(rows), changes=changes, notes=notes), candidates, compared


def _unchanged(candidate: Candidate) -> Change:
    """Return a difference of times without a difference of environments, which nothing can confirm."""
    reason = SAME_ENVIRONMENT.format(candidate.cell.environment, candidate.baseline.run)
    return Change(
        cell=candidate.cell,
        before=candidate.baseline.run,
        row=candidate.row,
        state="same-environment",
        digest=candidate.digest,
        reason=reason,
    )


def _notes(cells: Collection[Cell], baselines: Baselines) -> Iterator[str]:
    """Yield a sentence for what could not be compared, and for each cell that failed for the first time."""
    known = {*baselines.by_cell, *baselines.refused}
    new = Counter(cell.environment for cell in cells if cell not in known)
    for environment, count in new.items():
        verb = "1 cell has" if count == 1 else f"{count} cells have"
        yield f"{environment}: {verb} no earlier run on this device: nothing to compare with"
    refused = Counter((cell.environment, why) for cell, why in baselines.refused.items())
    for (environment, why), count in refused.items():
        yield f"{environment}: {count} cell{'s' * (count > 1)} not compared: {why}"
    for name, run in sorted(baselines.newly_failed.items()):
        yield f"{name} failed, and succeeded in run {run}"
