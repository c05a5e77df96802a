"""What there is: stored runs, and the environments, cases and presets of the matrix file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from runner.catalog.cases import CASES
from runner.catalog.cases.description import describe
from runner.core.errors import RecordError
from runner.core.files import read_bounded
from runner.core.json import parse_object
from runner.matrix import load
from runner.report.formatting import date
from runner.report.run_summary import MAX_SUMMARY_BYTES, NAME
from runner.session.listed_environments import environment_rows
from runner.session.listed_presets import preset_rows
from runner.store.run import Run, runs

Topic = Literal["runs", "environments", "cases", "presets"]


def listing(topic: Topic, matrix: Path, reports: Path) -> Iterator[tuple[str, ...]]:
    """Yield the columns of each entry: an id first.

    Args:
        topic: what to list.
        matrix: the matrix file, for environments, presets, and the cases of networks.
        reports: the folder that holds the runs.

    Raises:
        UsageError: the matrix file cannot be read.
    """
    if topic == "runs":
        yield from map(_run, runs(reports))
    elif topic == "cases":
        cases = load(matrix).cases if matrix.exists() else CASES
        yield from ((name, describe(case)) for name, case in cases.items())
    elif topic == "environments":
        yield from environment_rows(matrix)
    else:
        yield from preset_rows(matrix)


def _run(run: Run) -> tuple[str, ...]:
    """Return id, date, grade and answer of a run; a run without a report has its state instead."""
    try:
        summary = parse_object(read_bounded(run.path / NAME, MAX_SUMMARY_BYTES), NAME, 1)
        return run.id, date(run.id), str(summary["grade"] or ""), str(summary["title"])
    except (OSError, RecordError, KeyError):
        return run.id, date(run.id), "", "no report yet: `runner report` writes it"
