"""What a reproduction shows, as text and as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.analysis.compare.differences import SideFacts, differences
from runner.analysis.comparison_model import Row
from runner.analysis.model import Dataset
from runner.core.units import step_time
from runner.report import formatting, rich_text, wording

VERSION = 1
NOT_IN_TURNS = (
    "the two runs did not alternate: the interval covers the noise within each of them, and not what else the machine "
    "did between them"
)

State = Literal["reproduced", "differs", "undecided", "not-comparable"]
STATES: Mapping[str, State] = {
    "same": "reproduced",
    "slower": "differs",
    "faster": "differs",
    "not-comparable": "not-comparable",
}
"""Verdict -> what it says of two runs of the same environment; any other is ``undecided``."""
HEADER_FACTS = ("device_name", "driver", "harness", "program", "backend", "pin", "clocks")
MACHINE_FACTS = ("host", "system", "governor", "boost", "smt", "memory_bytes", "cores")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """Cells that were measured again.

    Attributes:
        run: the stored run.
        folder: of the new run.
        rows: the new side against the stored one, a row for each cell.
        facts: what differs between the two, as sentences.
        against: the present environment that the stored one took turns with; empty without.
    """

    run: str
    folder: Path
    rows: tuple[Row, ...]
    facts: tuple[str, ...] = ()
    against: str = ""

    @property
    def exit_code(self) -> int:
        """0 where each cell is as fast as stored, 1 where one differs, is undecided or cannot be compared."""
        return 0 if self.rows and all(row.verdict_on_median == "same" for row in self.rows) else 1

    def json(self) -> Mapping[str, Any]:
        """Return it as docs/how-to/reproduce.md describes it."""
        names = ("base_seconds", "seconds", "ratio", "ratio_low", "ratio_high", "rounds", "verdict", "reason")
        return {
            "version": VERSION,
            "run": self.run,
            "folder": str(self.folder),
            "in_turns": bool(self.against),
            "against": self.against,
            "exit_code": self.exit_code,
            "cells": [
                {"cell": row.other.id, **({} if self.against else {"state": state(row)})}
                | {name: getattr(row, name) for name in names}
                for row in self.rows
            ],
            "differences": list(self.facts),
        }

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  a plain table
        """Return the cells as a table, then what differs."""
        sides = ("stored", self.against) if self.against else ("stored", "again")
        head = ("test", *sides, "change", "95 %", "rounds", "verdict" if self.against else "")
        rows: list[tuple[str, ...]] = [head]
        rows += [self._row(row) for row in self.rows]
        reasons = dict.fromkeys(row.reason for row in self.rows if row.verdict == "not-comparable")
        lines = [rich_text.columns(rows, width).rstrip(), "", *reasons, *self.facts]
        lines += [] if self.facts else ["machine, driver, harness and environment are those of the stored run"]
        if self.against:
            lines.append(f"measured alternately in {self.folder}")
        else:
            lines += [NOT_IN_TURNS, f"run {self.run} against {self.folder}"]
        return "\n".join(lines)

    def _row(self, row: Row) -> tuple[str, ...]:
        times = step_time(row.base_seconds) if row.base_seconds else formatting.DASH
        again = step_time(row.seconds) if row.seconds else formatting.DASH
        ends = wording.speedup_range(row.ratio_low, row.ratio_high, direction=False) or formatting.DASH
        word = wording.word(row) if self.against else wording.verdict_word(state(row))
        return row.other.id, times, again, wording.speedup(row.ratio), ends, str(row.rounds or formatting.DASH), word


def state(row: Row) -> State:
    """Return what a row of two runs of the same environment says."""
    return STATES.get(row.verdict_on_median, "undecided")


def fact_sentences(before: Dataset, after: Dataset, environments: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each fact that differs between the stored run and the new one.

    Args:
        before: the stored run.
        after: the new one.
        environments: environment of the stored run -> what the new run calls it.
    """
    for name in HEADER_FACTS:
        yield from _difference(name, before.provenance.get(name), after.provenance.get(name))
    for name in MACHINE_FACTS:
        yield from _difference(name, before.machine.get(name), after.machine.get(name))
    for old, new in environments.items():
        facts = before.environments.get(old, {}), after.environments.get(new, {})
        for difference in differences(*(SideFacts(facts=side) for side in facts)):
            text = _values(difference.base, difference.other)
            yield f"{old}: {difference.name} was {text}"


def _difference(name: str, before: object, after: object) -> Iterator[str]:
    if before != after and before is not None and after is not None:
        yield f"{name.replace('_', ' ')} was {_values(before, after)}"


def _values(before: object, after: object) -> str:
    return f"{before if before is not None else 'not known'}, and is {after if after is not None else 'not known'} now"
