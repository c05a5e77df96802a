"""Why planned cells of a run have no good record."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from runner.analysis.model import Dataset
from runner.core.model import Cell


class Missing(NamedTuple):
    """Cells of an environment without a good record, for one reason.

    Attributes:
        outcome: ``failed`` or ``skipped``.
        code: a failure class, or a skip code.
        reason: a sentence.
        cells: the ids of the cells without their environment.
    """

    environment: str
    outcome: str
    code: str
    reason: str
    cells: list[str]


def missing_cells(dataset: Dataset) -> Iterator[Missing]:
    """Yield the failures, then the skips, each reason once with its cells."""
    columns = (dataset.failures[name].tolist() for name in ("cell", "failure", "reason"))
    failed = ((Cell.parse(cell), failure, reason) for cell, failure, reason in zip(*columns, strict=True))
    skipped = ((planned.cell, planned.code, planned.reason) for planned in dataset.plan if planned.verdict == "skip")
    yield from _grouped("failed", failed)
    yield from _grouped("skipped", skipped)


def _grouped(outcome: str, cells: Iterable[tuple[Cell, str, str]]) -> Iterator[Missing]:
    ids: dict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    for cell, code, reason in cells:
        ids[cell.environment, code, reason][cell.id.removeprefix(f"{cell.environment}/")] = None
    for (environment, code, reason), names in ids.items():
        yield Missing(environment, outcome, code, reason, list(names))
