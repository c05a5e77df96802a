"""What is doubtful about the numbers of a run; pure functions on its tables. ``docs/doubts.md`` explains each code."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from runner.analysis.controls import control_issues
from runner.analysis.model import Comparison, Dataset, QualityIssue
from runner.analysis.quality.cells import FACTS, LOOKS, MIN_ROUNDS, few_rounds, measured
from runner.analysis.quality.run import machine, short_budget

__all__ = ["CODES", "FACTS", "MIN_ROUNDS", "annotate", "quality_issues"]

CODES = (
    "few-rounds",
    "a-a-differs",
    "host-drift",
    "two-modes",
    "trend",
    "throttled",
    "clock-moved",
    "swapping",
    "stolen",
    "interference",
    "unsteady",
    "short-budget",
    "spread",
    "load",
    "governor",
    "unpinned",
)
"""What may be doubtful, what weighs most first."""


def quality_issues(results: Dataset) -> tuple[QualityIssue, ...]:
    """Return what is doubtful about a run, the serious first and of each code the worst first.

    Args:
        results: the run; its samples stand in the order of its rounds, as ``merge.results`` gives them. ``FACTS`` are
            looked at where ``rounds`` has columns of their names; a value that is None or not a number says nothing.
    """
    compared = _compared(results)
    cells = tuple(measured(results))
    found = [*machine(results), *(QualityIssue(**one) for one in control_issues(results.rounds, results.canary))]
    found += short_budget(cells)
    for one in cells:
        for look in LOOKS:
            found += look(one)
        if one.cell in compared:
            found += few_rounds(one)
    return tuple(sorted(found, key=lambda one: (not one.serious, CODES.index(one.code), -one.extent, one.cell)))


def annotate(comparison: Comparison, known: Mapping[str, Sequence[QualityIssue]]) -> Comparison:
    """Return a comparison whose rows have the doubts about both of their cells, the serious first.

    Args:
        comparison: as ``compare`` gives it.
        known: run -> what is doubtful about it, as ``doubts`` gives it.
    """
    about = {run: _by_cell(found) for run, found in known.items()}
    if not any(about.values()):
        return comparison
    rows = []
    for row in comparison.rows:
        sides = zip((row.runs[0], row.runs[-1]), row.cell_ids, strict=True) if row.runs else ()
        found = [doubt for run, cell in sides for doubt in about.get(run, {}).get(cell, ())]
        found.sort(key=lambda doubt: not doubt.serious)
        rows.append(replace(row, quality_issues=tuple(found)) if found else row)
    return replace(comparison, rows=tuple(rows))


def _by_cell(found: Iterable[QualityIssue]) -> dict[str, list[QualityIssue]]:
    cells: dict[str, list[QualityIssue]] = {}
    for doubt in found:
        if doubt.cell:
            cells.setdefault(doubt.cell, []).append(doubt)
    return cells


def _compared(results: Dataset) -> set[str]:
    """Return the cells whose case and phase were to be measured in several environments."""
    sides: dict[tuple[str, ...], set[str]] = {}
    cells: dict[tuple[str, ...], set[str]] = {}
    for one in results.plan:
        if one.verdict == "run":
            key = (one.cell.case_id, one.cell.phase, one.cell.precision)
            sides.setdefault(key, set()).add(one.cell.environment)
            cells.setdefault(key, set()).add(one.cell.id)
    return {cell for key, environments in sides.items() if len(environments) > 1 for cell in cells[key]}
