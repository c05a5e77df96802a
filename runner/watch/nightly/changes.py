"""What a night compared, as its file has it: rows of an analysis become ratios, and comparisons become pairs."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from runner.analysis.comparison_model import Comparison, Row
from runner.core.model import Cell
from runner.nights.night import NightChange, NightDifference, NightPair, NightRatio, RatioInTurns


def night_change(cell: Cell, row: Row, *, again: Row | None = None, reason: str = "", **fields: Any) -> NightChange:  # noqa: ANN401
    """Return a cell that may have changed.

    Args:
        cell: in tonight's environment.
        row: tonight against the earlier run; their rounds were not measured in turns.
        again: the row in turns.
        reason: why there is no verdict, or why it does not fail the night; without it, that of ``row``.
        fields: the other fields of a ``NightChange``.
    """
    return NightChange(
        cell=cell.id,
        **asdict(cell),
        **_numbers(row, reason),
        again=None if again is None else RatioInTurns(**_numbers(again), run=" and ".join(again.runs)),
        **fields,
    )


def night_pair(environment: str, folder: Path, comparison: Comparison) -> NightPair:
    """Return an environment as it was and as it is, with what differs between the two."""
    different = comparison.differences.get(environment, ())
    return NightPair(
        environment=environment,
        base=comparison.base,
        folder=str(folder),
        differences=tuple(
            NightDifference(name=each.name, base=each.base, other=each.other, kind=each.kind) for each in different
        ),
    )


def _numbers(row: Row, reason: str = "") -> dict[str, Any]:
    numbers = {name: getattr(row, name) for name in NightRatio.__dataclass_fields__}
    return {**numbers, "reason": reason or row.reason}
