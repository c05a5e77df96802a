"""The rows about metrics other than time, for a terminal."""

from collections.abc import Collection, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from runner.analysis.comparison_model import Comparison, Row
from runner.core.grouping import grouped
from runner.core.metrics import BY_NAME, TIME
from runner.report import metric_text

WIDE = 80
"""Columns of a terminal from which the interval fits."""
STYLES = {"slower": "bold red", "more": "bold red", "faster": "bold green", "less": "bold green", "fewer": "bold green"}


def tables(comparison: Comparison, metrics: Collection[str], width: int) -> Iterator[RenderableType]:
    """Yield a table for each of some metrics but time, with all of its rows, and why some have none."""
    rows_by_metric = grouped((row.metric, row) for row in comparison.metrics)
    for name in metrics:
        if name == TIME:
            continue
        metric = BY_NAME[name]
        yield Text(f"{metric.title}: {metric.method}", style="bold")
        if rows := rows_by_metric.get(name):
            yield _table(comparison, rows, width)
        if name in comparison.absent:
            yield Text(f"note: {comparison.absent[name]}", style="dim")
        yield Text(f"a change of up to {100 * metric.margin:g} % counts as none", style="dim")
        yield ""


def _table(comparison: Comparison, rows: Sequence[Row], width: int) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2 if width >= WIDE else 1, 0, 0))
    for _ in range(4 + (len(comparison.others) > 1)):
        table.add_column(overflow="fold")
    for row in rows:
        word = metric_text.word(row)
        table.add_row(
            *([row.environment] if len(comparison.others) > 1 else []),
            metric_text.test(row),
            metric_text.amounts(row),
            metric_text.change_with_range(row) if width >= WIDE else metric_text.change(row),
            Text(word, style=STYLES.get(word, "")),
        )
    return table
