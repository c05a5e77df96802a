"""Records as tables: a row for each record, a column for each fact, text as categories."""

import json
from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from msgspec import UNSET, UnsetType

from runner.analysis.model import TurnCalls, TurnMedians
from runner.core.facts import TEXT_COLUMNS, VALUE_COLUMNS
from runner.core.model import Cell, Record
from runner.store.records import QuickRecord, StoredRecord, quick_of
from runner.store.samples import DISTURBED
from runner.store.samples import TEXT_COLUMNS as SAMPLE_TEXT_COLUMNS

if TYPE_CHECKING:
    import numpy.typing as npt

ROUND_COLUMNS = (
    *SAMPLE_TEXT_COLUMNS,
    *(name for name in TEXT_COLUMNS if name not in SAMPLE_TEXT_COLUMNS),
    "kind",
    "round",
    "attempt",
    "compile_seconds",
    "loss_error",
    "gradient_error",
    "forward_error",
)
CATEGORIES = {*SAMPLE_TEXT_COLUMNS, *TEXT_COLUMNS, "kind"}
DERIVED = (
    *("run", "cell", "environment", "framework", "release", "implementation", "workload", "case", "phase", "precision"),
    *("effective_precision", "device", "device_name", "host", "round", "attempt", "compile_seconds"),
)
"""Columns that are not simply a fact of the record, in the order of ``TableBuilder._derived_columns``."""
COPIED = tuple(dict.fromkeys(name for name in (*ROUND_COLUMNS, *VALUE_COLUMNS) if name not in DERIVED))
"""Columns that are facts of the record."""
FACTS_OF = attrgetter(*COPIED)
ONCE = {str, int, type(None), UnsetType}
"""Types whose values are equal only if their texts are: 1 equals 1.0 and True."""


class Tables(NamedTuple):
    """The tables of records, as ``runner.analysis.model.Dataset`` describes them."""

    samples: pd.DataFrame
    rounds: pd.DataFrame
    failures: pd.DataFrame


class TableBuilder:
    """Takes the records of a run one by one, keeps only what the tables need, and builds them."""

    def __init__(
        self, machine: Mapping[str, Any] | None = None, environments: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Start with no records.

        Args:
            machine: facts about the machine, for records that lack them.
            environments: environment id -> facts about it, likewise.
        """
        self.machine = machine or {}
        self.environments = environments or {}
        self.good: list[Any] = []  # row after row, each with all of ``DERIVED`` and ``COPIED``
        self.times, self.counts = array("d"), array("q")
        self.turns: list[_Turns | None] = []
        self.leads = array("d")  # of each turn; NaN where a turn has none
        self.bad: list[Any] = []
        self.failures: list[tuple[str | None, str | None]] = []

    def add(self, record: StoredRecord) -> None:
        """Add a record."""
        quick = quick_of(record)
        row = (*self._derived_columns(quick), *FACTS_OF(quick.facts))
        if quick.status == "ok":
            self.good += row
            self.times.extend(quick.seconds)
            self.counts.append(len(quick.seconds))
            turns = _turns_of(quick)
            self.turns.append(turns)
            self.leads.extend(_leads_of(quick, turns))
        else:
            self.bad += row
            self.failures.append((quick.failure, quick.reason))

    def tables(self) -> Tables:
        """Return the tables of all records that were added."""
        columns = _columns(self.good)
        rounds = _table(columns)
        facts = {name: pd.Series(columns[name], dtype=object) for name in VALUE_COLUMNS}
        times, counts = np.array(self.times, dtype=np.float64), np.array(self.counts, dtype=np.int64)
        failures = _categories([failure for failure, _ in self.failures])
        reasons = [reason or "" for _, reason in self.failures]
        bad = _columns(self.bad)
        checks = pd.Series(bad["model_check"], dtype=object)
        return Tables(
            samples=samples_of(rounds, times, counts, self._turn_columns(counts)),
            rounds=rounds.assign(
                seconds=segment_medians(times, counts),
                iterations=counts,
                turns=pd.Series(self._turns(times), dtype=object),
                times=pd.Series(np.split(times, np.cumsum(counts)[:-1]) if len(counts) else [], dtype=object),
                **facts,
            ),
            failures=_table(bad).assign(failure=failures, reason=reasons, model_check=checks),
        )

    def _turn_columns(self, counts: "npt.NDArray[np.int64]") -> Mapping[str, Any]:
        """Return the columns of samples that tell which of them share a turn; ``counts`` are those of the records."""
        sizes = [turns.sizes if turns else [count] for turns, count in zip(self.turns, counts.tolist(), strict=True)]
        segments = np.fromiter(chain.from_iterable(sizes), dtype=np.int64)
        numbers = np.fromiter(chain.from_iterable(range(len(of_record)) for of_record in sizes), dtype=np.int64)
        leads = np.full(int(counts.sum()), np.nan)
        leads[np.cumsum(segments) - segments] = np.array(self.leads, dtype=np.float64)
        names = _categories([turns.name if turns else "" for turns in self.turns])
        return {
            "turn": np.repeat(numbers, segments),
            "turns_with": names.take(np.repeat(np.arange(len(counts)), counts)),
            "lead": leads,
        }

    def _turns(self, times: "npt.NDArray[np.float64]") -> list[TurnMedians | None]:
        """Return the turns of each good record; of a record without turns, all samples are one segment."""
        sizes = (turns.sizes if turns else (count,) for turns, count in zip(self.turns, self.counts, strict=True))
        medians = segment_medians(times, np.fromiter(chain.from_iterable(sizes), dtype=np.int64)).tolist()
        of_records, end, first = list[TurnMedians | None](), 0, 0
        for turns, count in zip(self.turns, self.counts, strict=True):
            begin, end = end, end + (len(turns.sizes) if turns else 1)
            samples = times[first : first + count]
            of_records.append(turns.of(medians[begin:end], samples) if turns else None)
            first += count
        return of_records

    def _derived_columns(self, quick: QuickRecord) -> tuple[Any, ...]:
        """Return the columns ``DERIVED``; a missing fact is taken from the run's environment or machine."""
        facts, cell = quick.facts, Cell.parse(quick.cell)
        environment = self.environments.get(cell.environment, {})
        device = "" if facts.device is UNSET else facts.device
        return (
            quick.run,
            quick.cell,
            cell.environment,
            facts.framework or environment.get("framework", ""),
            facts.release or environment.get("release") or ("" if facts.version is UNSET else facts.version),
            cell.implementation,
            cell.workload,
            cell.case,
            cell.phase,
            cell.precision,
            cell.precision if facts.precision is UNSET else facts.precision,
            device,
            facts.device_name or (self.machine.get("cpu") if device == "cpu" else device),
            facts.host or self.machine.get("host"),
            quick.round,
            quick.attempt,
            quick.compile_seconds,
        )


def samples_of(
    rounds: pd.DataFrame,
    times: "npt.NDArray[np.float64]",
    counts: "npt.NDArray[np.int64]",
    turn_columns: Mapping[str, Any],
) -> pd.DataFrame:
    """Return good records with one row for each of their times, which are in the order of the records.

    Args:
        rounds: a row for each record.
        times: in seconds, (N,).
        counts: how many of the times are of each record.
        turn_columns: of each time, in which turn it was taken.
    """
    rows = np.repeat(np.arange(len(counts)), counts)
    columns: dict[str, Any] = {name: rounds[name].array.take(rows) for name in SAMPLE_TEXT_COLUMNS}
    columns["round"] = rounds["round"].to_numpy()[rows]
    columns["iteration"] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns["seconds"] = times if times.flags.writeable else times.copy()
    columns.update(turn_columns)
    columns[DISTURBED] = np.zeros(len(rows), dtype=np.bool_)
    return pd.DataFrame(columns, copy=False)  # nothing else refers to these arrays, which may have millions of rows


def turns_of(record: Record) -> TurnMedians | None:
    """Return the turns of a good record; None if it took none, or lacks the number of samples of each."""
    turns = _turns_of(quick_of(record))
    if turns is None:
        return None
    return turns.of(turn_medians(record.seconds, turns.sizes), np.array(record.seconds, dtype=np.float64))


class _Turns(NamedTuple):
    """The turns of a good record: their name, the number of samples in each, and ``TurnCalls.plan`` if it is known."""

    name: str
    sizes: list[int]
    plan: tuple[int, int, int, int] | None

    def of(self, medians: Sequence[float], seconds: "npt.NDArray[np.float64]") -> TurnMedians:
        """Return the turns, given the median of each, and all samples."""
        return TurnMedians(self.name, tuple(medians), TurnCalls(seconds, self.plan) if self.plan else None)


def _turns_of(quick: QuickRecord) -> _Turns | None:
    """Return the turns of a good record; None if it took none, or lacks the number of samples of each."""
    counts, name = quick.facts.turns, quick.facts.turns_with
    if not isinstance(counts, list) or not counts or not name or {*map(type, counts)} != {int}:
        return None
    if min(counts) < 1 or sum(counts) != len(quick.seconds):
        return None
    return _Turns(f"{name}/{quick.attempt}", counts, _plan_of(quick, counts))


def _plan_of(quick: QuickRecord, counts: Sequence[int]) -> tuple[int, int, int, int] | None:
    """Return ``TurnCalls.plan``; None in records of older programs, which do not say which calls they timed."""
    first_call, batch, leads = quick.facts.first_call, quick.facts.batch, quick.facts.leads
    if type(first_call) is not int or type(batch) is not int or len(set(counts)) > 1:
        return None
    return batch, counts[0], len(leads) // len(counts) if isinstance(leads, list) else 0, first_call


def _leads_of(quick: QuickRecord, turns: _Turns | None) -> list[float]:
    """Return the seconds of the first call of each turn of a good record, if it leads; NaN where that is not known."""
    count, leads = len(turns.sizes) if turns else 1, quick.facts.leads
    if not turns or not isinstance(leads, list) or not leads or len(leads) % count:
        return [np.nan] * count
    return [np.nan if lead is None else float(lead) for lead in leads[:: len(leads) // count]]


def turn_medians(seconds: Sequence[float], counts: Sequence[int]) -> tuple[float, ...]:
    """Return the median of each turn, given all samples in order and the number of samples in each turn."""
    return tuple(segment_medians(np.array(seconds, dtype=np.float64), np.array(counts, dtype=np.int64)).tolist())


def segment_medians(values: "npt.NDArray[np.float64]", counts: "npt.NDArray[np.int64]") -> "npt.NDArray[np.float64]":
    """Return the medians (S,) of S consecutive segments, given all values (N,) and the sizes (S,), each at least 1."""
    starts = np.cumsum(counts) - counts
    medians = np.empty(len(counts), dtype=np.float64)
    for size in np.unique(counts).tolist():  # segments of one size are the rows of a matrix
        rows = np.flatnonzero(counts == size)
        ordered = np.sort(values[starts[rows][:, np.newaxis] + np.arange(size)], axis=1)
        medians[rows] = (ordered[:, (size - 1) // 2] + ordered[:, size // 2]) / 2
    return medians


def _columns(values: list[Any]) -> Mapping[str, list[Any]]:
    """Return name -> values, given the values row after row; a missing fact is UNSET in ``CATEGORIES``, else None."""
    names = (*DERIVED, *COPIED)
    columns = {name: values[index :: len(names)] for index, name in enumerate(names)}
    for name in columns.keys() - CATEGORIES:
        columns[name] = [None if value is UNSET else value for value in columns[name]]
    return columns


def _table(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return a table with ``ROUND_COLUMNS``."""
    typed: dict[str, Any] = {}
    for name in ROUND_COLUMNS:
        if name in CATEGORIES:
            typed[name] = _categories(columns[name])
        else:
            typed[name] = np.array(columns[name], dtype=np.int64 if name in {"round", "attempt"} else np.float64)
    return pd.DataFrame(typed)


def _categories(values: Sequence[object]) -> "pd.Categorical[Any]":
    """Return facts as text, with sorted categories."""
    if {*map(type, values)} <= ONCE:  # each distinct value is converted once
        text_of: dict[Any, str] = {value: _text(value) for value in set(values)}
    else:
        texts = [_text(value) for value in values]
        values, text_of = texts, {text: text for text in set(texts)}
    categories = sorted(set(text_of.values()))
    code_of_text = {text: code for code, text in enumerate(categories)}
    code_of = {value: code_of_text[text] for value, text in text_of.items()}
    if len(categories) == 1:  # most facts of most runs
        codes = np.zeros(len(values), dtype=np.int64)
    else:
        codes = np.fromiter(map(code_of.__getitem__, values), dtype=np.int64, count=len(values))
    return pd.Categorical.from_codes(codes, categories=pd.Index(categories))


def _text(value: object) -> str:
    """Return a fact as text; a missing one is empty."""
    if value is None or value is UNSET:
        return ""
    return str(value) if isinstance(value, (str, int)) else json.dumps(value, sort_keys=True)
