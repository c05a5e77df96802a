"""What a night found, as JSON and as a file: later nights read these files (``history``)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from runner.analysis.comparison_model import Comparison, Row
from runner.core.model import Cell
from runner.nights.alert_entry import AlertEntry
from runner.nights.looks import FOLDER
from runner.store.documents import save
from runner.watch.nightly.confirmed import Against

VERSION = 2

Stage = Literal["resolve", "measure", "compare", "confirm", "alert"]
"""What a night does, in this order: it looks for releases, measures, compares, confirms in turns, and sends alerts."""
End = Literal["running", "done", "interrupted", "failed", "killed"]
"""How a night ended: ``failed`` by an error, ``killed`` without a word, as the next night finds out."""
State = Literal["measured-again", "same-environment", "environment-gone", "no-time", "interrupted"]
"""How a change ended: measured in turns (``measured-again``), or why it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A cell that may have changed.

    Attributes:
        before: the run that it is compared with.
        against: whether that is its baseline or its anchor.
        row: tonight against that run; their rounds were not measured in turns.
        again: the environment as it is against the environment as it was, in turns; None where that was not measured.
        digest: what pinned the content of tonight's environment; empty if unknown.
        reason: why there is no verdict, or why the verdict does not fail the night; empty otherwise.
        confirmed_in: the night that confirmed a regression that still stands, which may be tonight; else empty.
    """

    cell: Cell
    before: str
    against: Against = "baseline"
    row: Row
    state: State
    again: Row | None = None
    digest: str = ""
    reason: str = ""
    confirmed_in: str = ""

    @property
    def is_regression(self) -> bool:
        """True where the cell was confirmed to be slower, tonight or by an earlier night, and that still stands."""
        return bool(self.confirmed_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An environment as it was and as it is, measured in turns: the folder of that run, and its comparison."""

    environment: str
    folder: Path
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One night.

    Attributes:
        run: the id of its first run, and ``at`` when that started.
        state: how it ended; candidates were left unconfirmed unless that is ``done``.
        stage: what it did then.
        good: how many cells have a good record; ``bad`` the ids of those without one.
        compared: how many cells were compared with their baselines.
        seconds: id of a cell -> median seconds of its first run.
        notes: other findings, as sentences.
        alerts: what was done about alerts.
    """

    run: str
    at: str
    device: str
    device_name: str
    backend: str
    state: End = "interrupted"
    stage: Stage = "compare"
    good: int = 0
    bad: tuple[str, ...] = ()
    compared: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    pairs: tuple[Pair, ...] = ()
    notes: tuple[str, ...] = ()
    alerts: tuple[AlertEntry, ...] = ()

    @property
    def slower(self) -> tuple[Change, ...]:
        """The confirmed regressions against baselines and anchors."""
        return tuple(change for change in self.changes if change.is_regression)

    @property
    def exit_code(self) -> int:
        """1 where a regression was confirmed or nothing could be measured, else 0."""
        return 1 if self.slower or not self.good else 0

    def json(self) -> dict[str, Any]:
        """Return the night as docs/how-to/nightly.md describes it."""
        return {
            "version": VERSION,
            **{
                name: getattr(self, name)
                for name in ("run", "at", "device", "device_name", "backend", "state", "stage")
            },
            "exit_code": self.exit_code,
            "measured": self.good,
            "failed": list(self.bad),
            "compared": self.compared,
            "changes": [_change(change) for change in self.changes],
            "pairs": [_pair(pair) for pair in self.pairs],
            "seconds": dict(self.seconds),
            "notes": list(self.notes),
            "alerts": [entry.json() for entry in self.alerts],
        }

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  its lines are not laid out
        """Return the night as text for a terminal or a mail."""
        from runner.watch.nightly.text import night_text

        return night_text(self)


def _row(row: Row) -> dict[str, Any]:
    names = ("base_seconds", "seconds", "ratio", "ratio_low", "ratio_high", "rounds", "more_rounds", "p_value")
    return {name: getattr(row, name) for name in (*names, "verdict", "code", "reason")}


def _change(change: Change) -> dict[str, Any]:
    cell = change.cell
    names = ("environment", "implementation", "workload", "case", "phase", "precision")
    return {
        "cell": cell.id,
        **{name: getattr(cell, name) for name in names},
        "before": change.before,
        "against": change.against,
        "state": change.state,
        **_row(change.row),
        "reason": change.reason or change.row.reason,
        "confirmed_in": change.confirmed_in,
        "digest": change.digest,
        "again": None if change.again is None else {**_row(change.again), "run": " and ".join(change.again.runs)},
    }


def _pair(pair: Pair) -> dict[str, Any]:
    different = pair.comparison.differences.get(pair.environment, ())
    return {
        "environment": pair.environment,
        "base": pair.comparison.base,
        "folder": str(pair.folder),
        "differences": [
            {"name": fact.name, "base": fact.base, "other": fact.other, "kind": fact.kind} for fact in different
        ],
    }


def store(night: Night, reports: Path) -> Path:
    """Write a night to ``nights/<run>.json`` below the reports, replacing the file as a whole; return its path."""
    path = reports / FOLDER / f"{night.run}.json"
    save(path, json.dumps(night.json(), indent=1, allow_nan=False) + "\n")
    return path
