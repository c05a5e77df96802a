"""Why cells of a run have no good record."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from runner.analysis.model import Dataset


class Ending(NamedTuple):
    """Why some cells of an environment have no record: a failure class or a skip code, and a sentence."""

    environment: str
    what: str
    code: str
    reason: str
    cells: list[str]


def endings(results: Dataset) -> Iterable[Ending]:
    """Give the failures, then the skips, each reason once with its cells."""
    names = ("environment", "failure", "reason", "cell")
    failed = zip(*(results.failures[name].tolist() for name in names), strict=True)
    skipped = (
        (one.cell.environment, one.code, one.reason, one.cell.id) for one in results.plan if one.verdict == "skip"
    )
    for what, found in (("failed", failed), ("skipped", skipped)):
        cells: dict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
        for environment, code, reason, cell in found:
            cells[environment, code, reason][cell.partition("/")[2]] = None
        for (environment, code, reason), those in cells.items():
            yield Ending(environment, what, code, reason, list(those))
