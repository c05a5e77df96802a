"""Records as tables: a row for each, a column for each fact, and words as categories."""

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from runner.analysis.model import COMPARABLE, Turns
from runner.analysis.quality import FACTS as DOUBTFUL
from runner.core.model import Record
from runner.store import samples as frames

FACTS = (*COMPARABLE, "device_uuid", "digest", "server")
ROUND_COLUMNS = (
    *frames.WORDS,
    *(name for name in FACTS if name not in frames.WORDS),
    "kind",
    "round",
    "attempt",
    "compile_seconds",
    "loss_error",
    "gradient_error",
    "forward_error",
)
_WORDS = {*frames.WORDS, *FACTS, "kind"}
_OWN = (
    *("run", "cell", "environment", "framework", "release", "implementation", "workload", "case", "phase", "precision"),
    *("effective_precision", "device", "device_name", "round", "attempt", "compile_seconds"),
)
"""Columns that are no plain facts of a record, in the order of ``_own``."""
SEEN = (*DOUBTFUL, "dispatch_seconds", "device_seconds", "peak_bytes")
"""Further columns of the rounds, of whatever type the fact has; None where a record lacks it."""
_PLAIN = tuple(dict.fromkeys(name for name in (*ROUND_COLUMNS, *SEEN) if name not in _OWN))


class Tables(NamedTuple):
    """What records say, see ``comparison.Results``."""

    samples: pd.DataFrame
    rounds: pd.DataFrame
    failures: pd.DataFrame


class TableBuilder:
    """The records of a run, taken one by one and kept as little as can be; then the tables of them."""

    def __init__(
        self, machine: Mapping[str, Any] | None = None, environments: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Begin with no record.

        Args:
            machine: what the run says of its machine: a fact for records that lack it.
            environments: environment id -> likewise.
        """
        self.machine = machine or {}
        self.environments = environments or {}
        self.good: list[Any] = []  # row after row, each with all of ``_OWN`` and ``_PLAIN``
        self.times, self.counts, self.medians = array("d"), list[int](), list[float]()
        self.turns: list[Turns | None] = []
        self.bad: list[Any] = []
        self.ends: list[tuple[str | None, str | None]] = []

    def add(self, record: Record) -> None:
        """Take a record."""
        row = (*self._own(record), *map(record.facts.get, _PLAIN))
        if record.status == "ok":
            self.good += row
            self.times.extend(record.seconds)
            self.counts.append(len(record.seconds))
            self.medians.append(median(record.seconds))  # numpy.median takes ten times as long for 34 values
            self.turns.append(turns_of(record))
        else:
            self.bad += row
            self.ends.append((record.failure, record.reason))

    def tables(self) -> Tables:
        """Return the tables of all records that were taken."""
        columns = _columns(self.good)
        rounds = _table(columns)
        samples = self._samples(rounds)
        facts = {name: pd.Series(columns[name], dtype=object) for name in SEEN}
        medians, counts = np.array(self.medians, dtype=np.float64), np.array(self.counts, dtype=np.int64)
        kinds = _categories([failure for failure, _ in self.ends])
        return Tables(
            samples=samples,
            rounds=rounds.assign(
                seconds=medians, iterations=counts, turns=pd.Series(self.turns, dtype=object), **facts
            ),
            failures=_table(_columns(self.bad)).assign(failure=kinds, reason=[reason or "" for _, reason in self.ends]),
        )

    def _own(self, record: Record) -> tuple[Any, ...]:
        """Return the columns ``_OWN``; a fact that it lacks is what the run says of the environment or the machine."""
        fact, cell = record.facts.get, record.cell
        environment, device = self.environments.get(cell.environment, {}), fact("device", "")
        return (
            record.run,
            cell.id,
            cell.environment,
            fact("framework") or environment.get("framework", ""),
            fact("release") or environment.get("release") or fact("version", ""),
            cell.implementation,
            cell.workload,
            cell.case,
            cell.phase,
            cell.precision,
            fact("precision", cell.precision),
            device,
            fact("device_name") or (self.machine.get("cpu") if device == "cpu" else device),
            record.round,
            record.attempt,
            record.compile_seconds,
        )

    def _samples(self, rounds: pd.DataFrame) -> pd.DataFrame:
        """Return the good records with a row for each of their times."""
        counts = np.array(self.counts, dtype=np.int64)
        rows = np.repeat(np.arange(len(counts)), counts)
        columns: dict[str, Any] = {name: rounds[name].array.take(rows) for name in frames.WORDS}
        columns["round"] = rounds["round"].to_numpy()[rows]
        columns["iteration"] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        columns["seconds"] = np.array(self.times, dtype=np.float64)
        return pd.DataFrame(columns)


def turns_of(record: Record) -> Turns | None:
    """Return the turns of a good record; None where it took none, or does not say how many samples each had."""
    counts, name = record.facts.get("turns"), record.facts.get("turns_with")
    if not isinstance(counts, list) or not counts or not name or {type(one) for one in counts} != {int}:
        return None
    if min(counts) < 1 or sum(counts) != len(record.seconds):
        return None
    return Turns(f"{name}/{record.attempt}", turn_medians(record.seconds, counts))


def turn_medians(seconds: Sequence[float], counts: Iterable[int]) -> tuple[float, ...]:
    """Return the median of each turn, given all samples in order and how many of them each turn had."""
    ends = accumulate(counts, initial=0)
    return tuple(median(seconds[start:end]) for start, end in pairwise(ends))


def _columns(rows: list[Any]) -> Mapping[str, list[Any]]:
    """Return name -> the values of all rows, which stand one after the other."""
    names = (*_OWN, *_PLAIN)
    return {name: rows[place :: len(names)] for place, name in enumerate(names)}


def _table(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return columns as ``ROUND_COLUMNS``."""
    made: dict[str, Any] = {}
    for name in ROUND_COLUMNS:
        if name in _WORDS:
            made[name] = _categories(columns[name])
        else:
            made[name] = np.array(columns[name], dtype=np.int64 if name in {"round", "attempt"} else np.float64)
    return pd.DataFrame(made)


def _categories(values: Sequence[object]) -> "pd.Categorical[Any]":
    """Return facts as text, the categories sorted."""
    words = [value if type(value) is str else _word(value) for value in values]
    known = sorted(set(words))
    places = {word: place for place, word in enumerate(known)}
    codes = np.fromiter(map(places.__getitem__, words), dtype=np.int64, count=len(words))
    return pd.Categorical.from_codes(codes, categories=pd.Index(known))


def _word(value: object) -> str:
    """Return a fact as text; a missing one is empty."""
    return "" if value is None else str(value) if isinstance(value, (str, int)) else json.dumps(value, sort_keys=True)
