"""What a night found, as text, as JSON and as a file: a history of nights is read from these files."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.analysis.model import Comparison, Row
from runner.core.files import write_whole
from runner.core.model import Cell
from runner.report import differences, formatting

FOLDER = "nights"
VERSION = 1

State = Literal["measured-again", "same-environment", "environment-gone", "no-time", "interrupted"]
"""How a change ended: confirmed in turns (``measured-again``), or why it was not."""

OPEN = frozenset({"no-time", "interrupted", "environment-gone"})
"""States of changes without a verdict in turns. Later nights compare with the same baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A cell that looks changed.

    Attributes:
        before: the run of its baseline.
        row: tonight against that run; their rounds were not measured in turns.
        again: the environment as it is against the environment as it was, in turns; None where that was not measured.
        reason: why there is no verdict, as a sentence; empty where there is one.
        confirmed_in: the night that confirmed this regression against the same baseline, where tonight could not
            measure it in turns again; else empty.
    """

    cell: Cell
    before: str
    row: Row
    state: State
    again: Row | None = None
    reason: str = ""
    confirmed_in: str = ""

    @property
    def is_regression(self) -> bool:
        """True where the cell was confirmed to be slower, tonight or by the night in ``confirmed_in``."""
        return self.again.verdict == "slower" if self.again else bool(self.confirmed_in)


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
        state: ``done``, or ``interrupted`` where candidates were left unconfirmed.
        good: how many cells have a good record; ``bad`` the ids of those without one.
        compared: how many cells were compared with their baselines.
        notes: other findings, as sentences.
    """

    run: str
    at: str
    device: str
    device_name: str
    backend: str
    state: Literal["done", "interrupted"] = "interrupted"
    good: int
    bad: tuple[str, ...] = ()
    compared: int = 0
    changes: tuple[Change, ...] = ()
    pairs: tuple[Pair, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def slower(self) -> tuple[Change, ...]:
        """The confirmed regressions."""
        return tuple(change for change in self.changes if change.is_regression)

    @property
    def exit_code(self) -> int:
        """1 where a regression was confirmed or nothing could be measured, else 0."""
        return 1 if self.slower or not self.good else 0

    def json(self) -> dict[str, Any]:
        """Return the night as docs/how-to/nightly.md describes it."""
        return {
            "version": VERSION,
            **{name: getattr(self, name) for name in ("run", "at", "device", "device_name", "backend", "state")},
            "exit_code": self.exit_code,
            "measured": self.good,
            "failed": list(self.bad),
            "compared": self.compared,
            "changes": [_change(change) for change in self.changes],
            "pairs": [_pair(pair) for pair in self.pairs],
            "notes": list(self.notes),
        }

    def text(self) -> str:
        """Return the night as text for a terminal or a mail."""
        counts = (
            f"{self.good} cells measured, {len(self.bad)} failed; {self.compared} compared with their last good run"
        )
        lines = [
            f"night of {formatting.date(self.run) or self.at}, run {self.run}, on {self.device_name}, {self.backend}"
        ]
        lines.append(counts)
        for environment, before in dict.fromkeys((change.cell.environment, change.before) for change in self.changes):
            lines += ["", *self._environment_lines(environment, before)]
        lines += ["", *(f"note: {note}" for note in self.notes)] if self.notes else []
        return "\n".join([*lines, "", _summary(self)])

    def _environment_lines(self, environment: str, before: str) -> list[str]:
        """Return the lines about the changes of one environment since one run."""
        changes = [
            change for change in self.changes if (change.cell.environment, change.before) == (environment, before)
        ]
        lines = [f"{environment} against run {before}, {formatting.date(before)}"]
        lines += [
            f"  {_line(change)}"
            for change in changes
            if change.again or change.confirmed_in or change.row.verdict != "inconclusive"
        ]
        reasons = Counter(change.reason for change in changes if change.reason)
        lines += [f"  {count} cell{'s' * (count > 1)}: {reason}" for reason, count in reasons.items()]
        name = f"{environment}@{before}"
        return lines + [f"  {_pair_line(pair)}" for pair in self.pairs if pair.comparison.base == name]


def _summary(night: Night) -> str:
    confirmed = len(night.slower)
    unconfirmed = sum(change.again is None for change in night.changes)
    text = f"{confirmed or 'no'} regression{'s' * (confirmed > 1)} confirmed"
    if unconfirmed:
        text += f"; {unconfirmed} of {len(night.changes)} candidates were not re-measured"
    return text if night.state == "done" else f"{text}; the night was interrupted"


def _line(change: Change) -> str:
    """Return a change as one line: its verdict in turns, then the ratio of the two runs."""
    cell, row, again = change.cell, change.row, change.again
    name = f"{cell.implementation} {cell.case_id} {cell.phase} {cell.precision}"
    first = f"{formatting.ratio(row.ratio)} ({formatting.interval(row.ratio_low, row.ratio_high)}) between the runs"
    if again is None and change.confirmed_in:
        return f"slower: {name}: confirmed by night {change.confirmed_in}; {first}"
    if again is None:
        return f"looks {row.verdict}: {name}: {first}"
    ends = formatting.interval(again.ratio_low, again.ratio_high)
    second = f"{formatting.ratio(again.ratio)} ({ends}) in turns, {again.rounds} rounds"
    return f"{again.verdict}: {name}: {second}; {first}"


def _pair_line(pair: Pair) -> str:
    return "; ".join([*differences.sentences(pair.comparison), f"measured in turns in {pair.folder}"])


def _row(row: Row) -> dict[str, Any]:
    names = ("base_seconds", "seconds", "ratio", "ratio_low", "ratio_high", "rounds", "verdict", "code", "reason")
    return {name: getattr(row, name) for name in names}


def _change(change: Change) -> dict[str, Any]:
    cell = change.cell
    names = ("environment", "implementation", "workload", "case", "phase", "precision")
    return {
        "cell": cell.id,
        **{name: getattr(cell, name) for name in names},
        "before": change.before,
        "state": change.state,
        **_row(change.row),
        "reason": change.reason or change.row.reason,
        "confirmed_in": change.confirmed_in,
        "again": None if change.again is None else {**_row(change.again), "run": " and ".join(change.again.runs)},
    }


def _pair(pair: Pair) -> dict[str, Any]:
    different = pair.comparison.differences.get(pair.environment, ())
    return {
        "environment": pair.environment,
        "base": pair.comparison.base,
        "folder": str(pair.folder),
        "differences": [{"name": fact.name, "base": fact.base, "other": fact.other} for fact in different],
    }


def store(night: Night, reports: Path) -> Path:
    """Write a night to ``nights/<run>.json`` below the reports, replacing the file as a whole; return its path."""
    path = reports / FOLDER / f"{night.run}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(night.json(), indent=1, allow_nan=False) + "\n")
    return path


def open_cells(reports: Path) -> Mapping[str, frozenset[str]]:
    """Return run -> ids of the cells that its night neither found ``same`` nor ``faster``; they are no baselines."""
    return {
        run: frozenset(change["cell"] for change in changes if _is_open(change))
        for run, changes in _stored_changes(reports).items()
    }


def confirmed_regressions(reports: Path) -> Mapping[tuple[str, str], str]:
    """Return (id of a cell, run of its baseline) -> the newest night that found it slower in turns.

    A later night that found it ``same`` or ``faster`` against the same baseline ends the regression.
    """
    nights: dict[tuple[str, str], str] = {}
    for run, changes in sorted(_stored_changes(reports).items()):
        for change in changes:
            verdict = change["again"]["verdict"] if change["again"] else ""
            if verdict == "slower":
                nights[change["cell"], change["before"]] = run
            elif verdict in ("same", "faster"):
                nights.pop((change["cell"], change["before"]), None)
    return nights


def _stored_changes(reports: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return run -> the changes of its night; a file that this program did not write is ignored."""
    changes_by_run = {}
    for path in (reports / FOLDER).glob("[!.]*.json"):
        try:
            changes = json.loads(path.read_text("utf-8"))["changes"]
            if all({"cell", "before", "state", "again"} <= change.keys() for change in changes):
                changes_by_run[path.stem] = changes
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return changes_by_run


def _is_open(change: Mapping[str, Any]) -> bool:
    again = change["again"]
    return change["state"] in OPEN if again is None else again["verdict"] not in ("same", "faster")
