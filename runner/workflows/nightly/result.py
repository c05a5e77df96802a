"""What a night found, as text, as JSON and as a file: the place that a history of nights is read from."""

import json
from collections import Counter
from collections.abc import Mapping
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
"""What became of a change: it was measured again in turns, or why it was not."""


LEFT = frozenset({"no-time", "interrupted"})
"""States of what a later night looks at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A cell that looks changed.

    Attributes:
        before: the last good run that has it.
        row: tonight over that run; their rounds were not measured in turns.
        again: what is here now over what was there then, measured in turns; None where that could not be.
        reason: why not, as a sentence; empty where it was.
    """

    cell: Cell
    before: str
    row: Row
    state: State
    again: Row | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An environment beside what it was, measured in turns: the run's folder, and the comparison."""

    environment: str
    folder: Path
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One night.

    Attributes:
        run: the id of its run, and ``at`` when that began.
        state: ``done``, or ``interrupted`` where not all that looked changed was measured again.
        good: cells with a good record; ``bad`` the ids of those that have none.
        compared: how many cells were laid beside their last good run.
        notes: what else is to be known, as sentences.
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
        """The slow-downs that were borne out."""
        return tuple(one for one in self.changes if one.again is not None and one.again.verdict == "slower")

    @property
    def exit_code(self) -> int:
        """1 where a slow-down was borne out, or nothing could be measured; else 0."""
        return 1 if self.slower or not self.good else 0

    def json(self) -> dict[str, Any]:
        """Return it with ``version`` 1; see docs/how-to/nightly.md."""
        return {
            "version": VERSION,
            **{name: getattr(self, name) for name in ("run", "at", "device", "device_name", "backend", "state")},
            "exit_code": self.exit_code,
            "measured": self.good,
            "failed": list(self.bad),
            "compared": self.compared,
            "changes": [_change(one) for one in self.changes],
            "pairs": [_pair(one) for one in self.pairs],
            "notes": list(self.notes),
        }

    def text(self) -> str:
        """Return it for people."""
        counts = (
            f"{self.good} cells measured, {len(self.bad)} failed; {self.compared} compared with their last good run"
        )
        lines = [
            f"night of {formatting.date(self.run) or self.at}, run {self.run}, on {self.device_name}, {self.backend}"
        ]
        lines.append(counts)
        for environment, before in dict.fromkeys((one.cell.environment, one.before) for one in self.changes):
            mine = [one for one in self.changes if (one.cell.environment, one.before) == (environment, before)]
            lines += ["", f"{environment} against run {before}, {formatting.date(before)}"]
            lines += [f"  {_line(one)}" for one in mine if one.again or one.row.verdict != "inconclusive"]
            reasons = Counter(one.reason for one in mine if one.reason)
            lines += [f"  {count} cell{'s' * (count > 1)}: {reason}" for reason, count in reasons.items()]
            lines += [f"  {_said(pair)}" for pair in self.pairs if pair.comparison.base == f"{environment}@{before}"]
        lines += ["", *(f"note: {note}" for note in self.notes)] if self.notes else []
        return "\n".join([*lines, "", _summary(self)])


def _summary(night: Night) -> str:
    count = len(night.slower)
    rest = sum(one.again is None for one in night.changes)
    found = f"{count or 'no'} slow-down{'s are' if count > 1 else ' is'} borne out"
    found += f"; of {len(night.changes)} that may have changed {rest} were not measured again" if rest else ""
    return found if night.state == "done" else f"{found}; the night was interrupted"


def _line(change: Change) -> str:
    """Return a change in a line: what it is, then what the two runs said."""
    cell, row, again = change.cell, change.row, change.again
    name = f"{cell.implementation} {cell.case_id} {cell.phase} {cell.precision}"
    first = f"{formatting.ratio(row.ratio)} ({formatting.interval(row.ratio_low, row.ratio_high)}) between the runs"
    if again is None:
        return f"looks {row.verdict}: {name}: {first}"
    ends = formatting.interval(again.ratio_low, again.ratio_high)
    second = f"{formatting.ratio(again.ratio)} ({ends}) in turns, {again.rounds} rounds"
    return f"{again.verdict}: {name}: {second}; {first}"


def _said(pair: Pair) -> str:
    found = differences.sentences(pair.comparison)
    return "; ".join([*found, f"measured in turns in {pair.folder}"])


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
        "again": None if change.again is None else {**_row(change.again), "run": " and ".join(change.again.runs)},
    }


def _pair(pair: Pair) -> dict[str, Any]:
    found = pair.comparison.differences.get(pair.environment, ())
    return {
        "environment": pair.environment,
        "base": pair.comparison.base,
        "folder": str(pair.folder),
        "differences": [{"name": one.name, "base": one.base, "other": one.other} for one in found],
    }


def keep(night: Night, reports: Path) -> Path:
    """Write a night down, whole, as ``nights/<run>.json`` below the reports; return the file."""
    path = reports / FOLDER / f"{night.run}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(night.json(), indent=1, allow_nan=False) + "\n")
    return path


def open_cells(reports: Path) -> Mapping[str, frozenset[str]]:
    """Return run -> ids of the cells that its night found slower, or had no time for: they are nothing to go by.

    A file that this program did not write says nothing.
    """
    found = {}
    for path in (reports / FOLDER).glob("[!.]*.json"):
        try:
            told = json.loads(path.read_text("utf-8"))
            found[path.stem] = frozenset(one["cell"] for one in told["changes"] if _open(one))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _open(change: Mapping[str, Any]) -> bool:
    again = change["again"]
    return change["state"] in LEFT if again is None else again["verdict"] == "slower"
