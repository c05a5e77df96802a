"""Quality issues: what makes the numbers of a run doubtful.

``quality_issues`` checks a run, and ``annotate`` adds the issues of both cells to the rows of a comparison. The checks
are pure functions on the tables of a run, one for each code: those of a cell in ``cell_checks``, those of the machine
and the budget in ``run``. ``docs/doubts.md`` explains each code. In JSON the issues are called ``doubts``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.comparison_model import Comparison
from runner.analysis.controls import control_issues
from runner.analysis.model import Dataset, QualityIssue
from runner.analysis.plain_control import DIFFERS, plain_issues
from runner.analysis.process_states import state_issues
from runner.analysis.quality.cell_checks import CELL_CHECKS, cell_samples, few_rounds, rounds_in_clusters
from runner.analysis.quality.memory_growth import memory_grows
from runner.analysis.quality.page_faults import plain_differs, rounds_differ, sides_differ
from runner.analysis.quality.repeating_calls import calls_differ
from runner.analysis.quality.run import busy_issues, machine_issues, serial_correlation_issues, short_budget
from runner.core.grouping import grouped
from runner.core.model.cells import is_plain

__all__ = ["CODES", "annotate", "quality_issues"]

CODES = (
    "unchecked",
    "no-update",
    "steps-change",
    "differs-from-plain",
    "two-states",
    "set-too-late",
    "conduct",
    "few-rounds",
    "serial-correlation",
    "busy",
    "a-a-differs",
    "host-drift",
    "calls-differ",
    "memory-grows",
    "two-modes",
    "page-faults",
    "trend",
    "throttled",
    "clock-moved",
    "swapping",
    "stolen",
    "host-bound",
    "interference",
    "unsteady",
    "short-budget",
    "spread",
    "other-types",
    "partly-compared",
    "load",
    "governor",
    "unpinned",
)
"""The codes of quality issues, the most important first."""


def quality_issues(run: Dataset | MeasuredRun) -> tuple[QualityIssue, ...]:
    """Return the quality issues of a run, serious ones first, and the worst of each code first.

    Args:
        run: its samples are in the order of its rounds, as ``load_dataset`` returns them. Facts are
            checked where ``rounds`` has a column for them; a value that is None or not a number is skipped.
    """
    measured = MeasuredRun.of(run)
    dataset = measured.dataset
    compared = _compared_cells(dataset)
    measured_cells = tuple(cell_samples(dataset))
    cells = tuple(cell for cell in measured_cells if not is_plain(cell.environment))
    with_states = {cell.id for cell in measured.states}
    issues = [*machine_issues(dataset), *busy_issues(dataset), *serial_correlation_issues(measured.inflation)]
    issues += [*control_issues(dataset, measured.aa_pairs), *short_budget(cells)]
    issues += [*plain_issues(measured.plain_pairs.values()), *state_issues(measured.states)]
    issues += [*sides_differ(cells), *plain_differs(measured_cells)]
    for cell in cells:
        for check in (*CELL_CHECKS, rounds_differ, calls_differ, memory_grows):
            issues += check(cell)
        if cell.cell not in with_states:
            issues += rounds_in_clusters(cell)
        if cell.cell in compared:
            issues += few_rounds(cell)
    return tuple(
        sorted(issues, key=lambda issue: (not issue.serious, CODES.index(issue.code), -issue.extent, issue.cell))
    )


def annotate(comparison: Comparison, issues_by_run: Mapping[str, Sequence[QualityIssue]]) -> Comparison:
    """Return a comparison whose rows have the quality issues of both of their cells, serious ones first.

    Args:
        comparison: as ``compare`` returns it.
        issues_by_run: run -> its issues, as ``quality_issues`` returns them.
    """
    by_cell = {
        run: grouped((issue.cell, issue) for issue in issues if issue.cell) for run, issues in issues_by_run.items()
    }
    if not any(by_cell.values()):
        return comparison
    rows = []
    for row in comparison.rows:
        sides = zip((row.runs[0], row.runs[-1]), row.cell_ids, strict=True) if row.runs else ()
        of_cells = [issue for run, cell_id in sides for issue in by_cell.get(run, {}).get(cell_id, ())]
        if row.in_plain_processes:
            of_cells = [issue for issue in of_cells if issue.code != DIFFERS]  # the row's own says more
        issues = [*row.quality_issues, *of_cells]
        issues.sort(key=lambda issue: not issue.serious)
        rows.append(replace(row, quality_issues=tuple(issues)) if issues else row)
    return replace(comparison, rows=tuple(rows))


def _compared_cells(dataset: Dataset) -> set[str]:
    """Return the ids of cells whose case and phase were planned for several environments."""
    planned_cells = (planned.cell for planned in dataset.plan if planned.verdict == "run")
    running = [cell for cell in planned_cells if not is_plain(cell.environment)]
    by_work = grouped(((cell.case_id, cell.phase, cell.precision), cell) for cell in running)
    return {cell.id for cells in by_work.values() if len({each.environment for each in cells}) > 1 for cell in cells}
