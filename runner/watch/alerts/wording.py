"""The words for the changes of an alert: by how much, from which value to which, of which cell and metric."""

from collections.abc import Iterable, Sequence

from runner.core.metrics import BY_NAME, TIME
from runner.core.model.cells import without_environment
from runner.core.row_ids import cell_and_metric
from runner.core.text import printable
from runner.nights.night import NightChange
from runner.report import formatting, metric_text, wording


def ratio_of(change: NightChange) -> float:
    """Return the ratio of a change: in turns if it was measured so; 1 if there is none."""
    return change.in_turns.ratio or 1.0


def change_text(change: NightChange) -> str:
    """Return how large a change is with its interval, how it was measured, and the values of a metric but time."""
    known, amount = values_of(change), wording.change_with_range(BY_NAME[change.metric], change.in_turns)
    values = f": {known}" if known else ""
    if change.again is None:
        return f"{amount} between the runs{values}"
    return f"{amount}, alternating, {formatting.counted(change.again.rounds, 'round')}{values}"


def values_of(change: NightChange) -> str:
    """Return the values of a metric other than time with their unit: ``46.0 MiB → 60.0 MiB``; empty without them."""
    before, now = change.in_turns.base_amount, change.in_turns.amount
    if before is None or now is None:
        return ""
    metric = BY_NAME[change.metric]
    return f"{metric_text.amount(metric, before)} \N{RIGHTWARDS ARROW} {metric_text.amount(metric, now)}"


def name_of(change: NightChange) -> str:
    """Return the name of a cell without its environment, with its metric unless that is time."""
    metric, cell = BY_NAME[change.metric], without_environment(change.cell)
    if metric.scope == "environment":
        return metric.title
    return printable(cell if metric.name == TIME else f"{cell}, {metric.title}", 200)


def phrase_of(changes: Sequence[NightChange], name: str) -> str:
    """Return what is worse in a metric: ``more memory in 3 tests``, ``slower to import``."""
    metric, count = BY_NAME[name], sum(change.metric == name for change in changes)
    return metric.phrase if metric.scope == "environment" else f"{metric.phrase} in {formatting.counted(count, 'test')}"


def words_of(rows: Iterable[str]) -> str:
    """Return in what some rows, by their ids, are worse: ``slower or worse in peak memory of the steps``."""
    metrics = dict.fromkeys(cell_and_metric(row)[1] for row in rows)
    return " or ".join("slower" if name == TIME else f"worse in {BY_NAME[name].title}" for name in metrics)
