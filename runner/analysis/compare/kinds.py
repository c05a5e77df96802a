"""A comparison on several kinds of devices as one for each kind: ratios of different kinds have no common mean."""

from collections.abc import Iterable
from dataclasses import replace

from runner.analysis.boards import Board
from runner.analysis.comparison_model import Comparison, Row


def by_kind(comparison: Comparison) -> tuple[Comparison, ...]:
    """Return the comparison of each kind of device, the kind with most rows first; itself if there is only one kind.

    A row that was not measured belongs to the kind that measured other rows of its case, or else to the first kind.
    Notes about implementations and cases of one side only are those of the first.
    """
    kinds = [kind for kind in dict.fromkeys(row.device_name for row in comparison.rows) if kind]
    if len(kinds) < 2:
        return (comparison,)
    of_case = {row.case_id: row.device_name for row in comparison.rows if row.device_name}
    rows: dict[str, list[Row]] = {kind: [] for kind in kinds}
    for row in comparison.rows:
        rows[row.device_name or of_case.get(row.case_id, kinds[0])].append(row)
    kinds.sort(key=lambda kind: -len(rows[kind]))
    return tuple(
        replace(
            comparison,
            device_name=kind,
            rows=tuple(rows[kind]),
            metrics=tuple(row for row in comparison.metrics if row.device_name == kind),
            only=comparison.only if kind == kinds[0] else (),
            overall=tuple(mean for mean in comparison.overall if mean.device_name == kind),
            detectable_change=comparison.detectable_by_kind[kind].change,
            detectable_rounds=comparison.detectable_by_kind[kind].rounds,
            detectable_by_kind={},
        )
        for kind in kinds
    )


def boards_of_rows(rows: Iterable[Row]) -> tuple[Board, ...]:
    """Return the boards of some rows, each once, sorted."""
    return tuple(sorted({board for row in rows for board in row.boards}))
