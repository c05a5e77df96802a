"""`runner accept`: make what a run measured the baseline and the anchor of cells."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.model.cells import is_twin
from runner.store.run import runs
from runner.workflows.nightly.pins import Pin, device_of, read_pins, write_pins
from runner.workflows.results import find_run


def accept(reports: Path, patterns: Sequence[str], name: str | None) -> tuple[str, tuple[str, ...]]:
    """Accept the times of cells in a run; return its id and the ids of the cells.

    Later nights compare them with this run, and no longer report what they confirmed against earlier ones.

    Args:
        reports: the folder that holds the runs.
        patterns: ids of environments, or globs over ids of cells.
        name: a run's id or folder; None for the newest.

    Raises:
        UsageError: there is no such run, or it did not end.
        NothingSelectedError: no pattern matches a cell with a good record in it.
        RecordError: the run cannot be read.
    """
    run = find_run(reports, name)
    journal = run.journal()
    if journal.ended != "done" or run.id not in {stored.id for stored in runs(reports)}:
        hint = "name a run of `runner run` or `runner nightly` that ended"
        raise UsageError(Problem(f"run {run.id} is unfinished, or not in {reports}: it is no baseline", hint=hint))
    good = {entry.cell for entry in journal.counting() if entry.status == "ok"}
    cells = sorted(cell for cell in good if not is_twin(cell.partition("/")[0]))
    accepted = tuple(cell for cell in cells if any(_matches(cell, pattern) for pattern in patterns))
    if not accepted:
        example = f"as in {cells[0]}" if cells else "the run has no good record"
        hint = f"write an environment or a glob over ids of cells: {example}"
        raise NothingSelectedError(Problem(f"run {run.id} has no good record of {' '.join(patterns)}", hint=hint))
    device = device_of(journal.header)
    pins = read_pins(reports, device)
    write_pins(reports, device, {**pins, **dict.fromkeys(accepted, Pin(run.id, accepted=True))})
    return run.id, accepted


def _matches(cell: str, pattern: str) -> bool:
    return cell.partition("/")[0] == pattern or fnmatchcase(cell, pattern)
