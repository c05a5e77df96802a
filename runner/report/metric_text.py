"""The words for rows about metrics other than time; those for times, and for changes, are in ``wording``."""

import math
from collections.abc import Iterable

from runner.analysis.comparison_model import LEANING, Row
from runner.core import units
from runner.core.grouping import grouped
from runner.core.metrics import BY_NAME, CHANGES, Metric
from runner.report import comparison_notes, wording
from runner.report.formatting import DASH, counted

SHOWN_COMMANDS = 2
"""Bases whose command is printed, those with the most changes; the others are counted."""


def metric_of(row: Row) -> Metric:
    """Return the metric of a row."""
    return BY_NAME[row.metric]


def changed(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that changed, the largest change first."""
    return sorted((row for row in rows if row.verdict in CHANGES), key=lambda row: -abs(math.log(row.ratio or 1.0)))


def word(row: Row) -> str:
    """Return the verdict of a row: ``more``, ``same``, ``can't tell``."""
    if row.verdict == "inconclusive" and row.code == LEANING and row.ratio:
        return f"probably {metric_of(row).change(row.ratio)}"
    return wording.verdict_word(row.verdict)


def change(row: Row) -> str:
    """Return the change of a row with its direction and its noun: ``1.30x more memory``; a dash if there is none."""
    return wording.change(metric_of(row), row.ratio)


def ends(row: Row) -> str:
    """Return the 95 % interval of the change, the smaller change first; empty if there is none."""
    return wording.change_range(metric_of(row), row.ratio_low, row.ratio_high, direction=False)


def change_with_range(row: Row) -> str:
    """Return the change of a row with its 95 % interval: ``1.30x more memory (1.25x to 1.35x)``."""
    return wording.change_with_range(metric_of(row), row)


def amount(metric: Metric, value: float | None) -> str:
    """Return a value of a metric with its unit, or a dash."""
    return DASH if value is None else units.amount(value, metric.unit, on_disk=metric.on_disk)


def amounts(row: Row) -> str:
    """Return the values of both sides: ``2.10 s → 900 ms``."""
    return " → ".join(amount(metric_of(row), value) for value in row.values)


def test(row: Row) -> str:
    """Return what was measured, ``case train, API``; the title of a metric of environments."""
    if metric_of(row).scope == "environment":
        return metric_of(row).title
    phase = row.phase if row.precision == "fp32" else f"{row.phase} {row.precision}"
    return f"{row.case_id} {phase}, {comparison_notes.implementations(row)}"


def line(row: Row, base: str, other: str) -> str:
    """Return a row in a line: its change, its values, and what was measured of which releases."""
    return f"{change_with_range(row)}, {amounts(row)}: {test(row)}, {base} → {other}"


def all_commands(changes: Iterable[tuple[Row, str, str]], mark: str = "") -> str:
    """Return the commands that print the rows of all metrics of some changed rows: one for each base, up to two.

    Args:
        changes: the rows.
        mark: what stands before and after a command.
    """
    others_by_base = grouped((row.base.environment, row.environment) for row, _, _ in changes)
    bases = sorted(others_by_base, key=lambda base: -len(others_by_base[base]))
    commands = [
        f"{mark}{' '.join(['runner compare', base, *dict.fromkeys(others_by_base[base]), '--metric all'])}{mark}"
        for base in bases[:SHOWN_COMMANDS]
    ]
    rest = len(bases) - SHOWN_COMMANDS
    return "; ".join([*commands, *([f"and so for {counted(rest, 'other base')}"] if rest > 0 else [])])
