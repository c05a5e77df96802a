"""What ``--fail-on`` says of the rows that break it: a line for each."""

from collections.abc import Mapping, Sequence

from runner.analysis.comparison_model import Row
from runner.analysis.gate import Condition, GateResult
from runner.analysis.releases import EnvironmentRelease
from runner.core.errors import GateError, Problem
from runner.core.grouping import grouped
from runner.core.metrics import BY_NAME, TIME
from runner.report import metric_text, wording
from runner.report.answer import base_name, name
from runner.report.compared_rows import changed_test
from runner.report.formatting import counted

SHOWN_ROWS = 20
"""Rows of a condition that are named; more are counted."""


def problems(result: GateResult, names: Mapping[str, EnvironmentRelease]) -> list[Problem]:
    """Return a problem for each condition that is broken, with its rows; empty if the gate passes.

    Args:
        result: what the gate makes of the comparisons.
        names: environment -> its release.
    """
    if not result.compared and any(each.metric in ("", TIME) for each in result.conditions):
        message = "--fail-on: no test was measured in two releases, so the gate does not pass"
        return [Problem(message, hint="`runner check` shows what is missing")]
    rows_by_condition = grouped((each.condition.text, each.row) for each in result.broken)
    broken = [
        Problem(_message(condition, rows, result.compared, names)) for condition, rows in rows_by_condition.items()
    ]
    return [*broken, *(Problem(_without_rows(each)) for each in result.without_rows)]


def _without_rows(condition: Condition) -> str:
    """Return that nothing was compared for a condition, and why."""
    metric = BY_NAME[condition.metric]
    return f"--fail-on {condition.text}: no test has {metric.title} in two releases: {metric.absent}"


def _message(condition: str, rows: Sequence[Row], compared: int, names: Mapping[str, EnvironmentRelease]) -> str:
    """Return how many rows break a condition, and a line for each."""
    breaks = "breaks" if len(rows) == 1 else "break"
    lines = [f"{len(rows)} of {counted(compared, 'comparison')} {breaks} --fail-on {condition}:"]
    for row in rows[:SHOWN_ROWS]:
        base = row.base.environment
        sides = name(base, names), base_name(row.environment, base, names)
        of_time = row.metric == TIME
        lines.append(f"{wording.word(row)}: {changed_test(row, *sides)}" if of_time else metric_text.line(row, *sides))
    more = len(rows) - SHOWN_ROWS
    return "\n  ".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def require(result: GateResult, names: Mapping[str, EnvironmentRelease]) -> None:
    """Raise GateError unless the gate passes; it names the rows that break a condition."""
    if not result.passed:
        raise GateError(*problems(result, names))
