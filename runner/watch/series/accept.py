"""`runner history accept`: make what a run measured the baseline and the anchor of cells, and keep the reason."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from runner.core.errors import HistoryError, NothingSelectedError, Problem, UsageError
from runner.core.model.cells import environment_of, is_control
from runner.history.entries import Acceptance
from runner.history.location import url_name
from runner.nights.anchors_file import accept_anchors, device_of
from runner.session.results import find_run
from runner.store.run import Run, runs

MAX_REASON = 2000
"""Letters of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRequest:
    """What a person accepts.

    Attributes:
        patterns: ids of environments, or globs over ids of cells.
        run: a run's id or folder; None for the newest.
        reason: why, in the person's words.
        person: the login name.
        at: the time, ISO 8601 with an offset.
    """

    patterns: tuple[str, ...]
    run: str | None
    reason: str
    person: str
    at: str


def accept(reports: Path, request: AcceptanceRequest) -> Acceptance:
    """Accept the times of cells in a run, in ``reports/anchors.json``.

    Later nights compare the cells with this run, and no longer report what they confirmed against earlier ones.

    Args:
        reports: the folder that holds the runs.
        request: what is accepted, by whom and why.

    Raises:
        UsageError: there is no such run, it did not end, or the reason is empty or very long.
        NothingSelectedError: no pattern matches a cell with a good record in it.
        RecordError: the run cannot be read.
    """
    reason = " ".join(request.reason.split())
    if not 0 < len(reason) <= MAX_REASON:
        hint = "say why these times are good from now on: --reason 'oneDNN 3.8 chose another kernel'"
        raise UsageError(Problem(f"a reason has 1 to {MAX_REASON} letters, and this one has {len(reason)}", hint=hint))
    run = find_run(reports, request.run)
    accepted = _accepted_cells(reports, run, request.patterns)
    device = device_of(run.journal().header)
    acceptance = Acceptance(
        device=device, run=run.id, cells=accepted, at=request.at, reason=reason, person=request.person
    )
    accept_anchors(reports, acceptance)
    return acceptance


def add_levels(acceptance: Acceptance, url: str, note: Callable[[str], object]) -> None:
    """Add accepted levels to the history; a history that cannot be written is a note, for the reports have them."""
    from runner.history.database import History

    try:
        with History.open(url) as history:
            history.accept(acceptance)
    except HistoryError as error:
        reason = error.problems[0].message
        note(f"the history {url_name(url)} has no note of it: {reason}; `runner history rebuild` adds it later")


def _accepted_cells(reports: Path, run: Run, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the cells with a good record in a run that match, sorted."""
    journal = run.journal()
    if journal.ended != "done" or run.id not in {stored.id for stored in runs(reports)}:
        hint = "name a run of `runner run` or `runner nightly` that ended"
        raise UsageError(Problem(f"run {run.id} is unfinished, or not in {reports}: it is no baseline", hint=hint))
    if journal.header.get("executor"):
        hint = "nights compare runs of one host: accept a run that this host measured"
        raise UsageError(Problem(f"run {run.id} was measured on several hosts: it is no baseline", hint=hint))
    good = {entry.cell for entry in journal.counting() if entry.status == "ok"}
    cells = sorted(cell for cell in good if not is_control(environment_of(cell)))
    accepted = tuple(cell for cell in cells if any(_matches(cell, pattern) for pattern in patterns))
    if not accepted:
        example = f"as in {cells[0]}" if cells else "the run has no good record"
        hint = f"write an environment or a glob over ids of tests: {example}"
        raise NothingSelectedError(Problem(f"run {run.id} has no good record of {' '.join(patterns)}", hint=hint))
    return accepted


def _matches(cell: str, pattern: str) -> bool:
    return environment_of(cell) == pattern or fnmatchcase(cell, pattern)
