"""A night as a value, which is also the shape of its file: what it measured, what changed, and what it did about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from runner.core.bounds import CellId, Count, MetricName, Number
from runner.core.metrics import BY_NAME, NOT_WORSE, TIME, WORSE
from runner.core.model.cells import environment_of
from runner.core.row_ids import cell_and_metric, row_id
from runner.history.entries import series_device
from runner.nights.alert_entry import AlertEntry
from runner.store.documents import newest

KIND = "nights"
"""The kind of the file of a night, see ``documents.UPGRADES``."""
NEWER_FIELDS_IGNORED = ConfigDict(strict=True, extra="ignore")

Stage = Literal["resolve", "measure", "compare", "confirm", "alert"]
"""What a night does, in this order: it looks for releases, measures, compares, confirms in turns, and sends alerts."""
End = Literal["running", "done", "interrupted", "failed", "killed"]
"""How a night ended: ``failed`` by an error, ``killed`` without a word, as the next night finds out."""
State = Literal["measured-again", "same-environment", "environment-gone", "no-time", "interrupted"]
"""How a change ended: measured in turns (``measured-again``), or why it was not."""
Against = Literal["baseline", "anchor", "series"]
"""What a cell is compared with: its last good run, its pinned one, or the run before its series changed its level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRatio:
    """Tonight's time, or value of another metric, over that of an earlier run.

    The fields are those of ``analysis.comparison_model.Row``.
    """

    __pydantic_config__ = NEWER_FIELDS_IGNORED

    base_seconds: Number | None = None
    seconds: Number | None = None
    base_amount: Number | None = None
    amount: Number | None = None
    ratio: Number | None = None
    ratio_low: Number | None = None
    ratio_high: Number | None = None
    rounds: Count = 0
    more_rounds: Count = 0
    p_value: Number | None = None
    verdict: str = ""
    code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioInTurns(NightRatio):
    """The same, measured in turns; ``run`` is the run that did so."""

    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightChange(NightRatio):
    """A cell that may have changed: its ratio is that of two runs, which did not take turns.

    Attributes:
        cell: its id; the next six are its parts. For a metric of environments it stands for all cells of one.
        metric: the name of what changed.
        before: the run that it is compared with, and ``against`` what that is for the cell.
        state: how the change ended.
        again: the environment as it is against the environment as it was, in turns; None where that was not measured.
        reason: why there is no verdict, or why the verdict does not fail the night; else why the ratio of the two runs
            has its verdict.
        confirmed_in: the night that confirmed a regression that still stands, which may be tonight; else empty.
        digest: what pinned the content of tonight's environment; empty if unknown.
    """

    cell: CellId
    environment: str = ""
    implementation: str = ""
    workload: str = ""
    case: str = ""
    phase: str = ""
    precision: str = ""
    before: str
    against: Against = "baseline"
    state: State
    confirmed_in: str = ""
    digest: str = ""
    again: RatioInTurns | None = None
    metric: MetricName = TIME

    @property
    def row(self) -> str:
        """The id of its row, see ``core.row_ids``: that of the cell where its time changed."""
        return row_id(self.cell, self.metric)

    @property
    def is_regression(self) -> bool:
        """True where the row was confirmed to be worse, tonight or by an earlier night, and that still stands."""
        return bool(self.confirmed_in)

    @property
    def is_decided(self) -> bool:
        """True where what was measured in turns needs no reason: an equal or better row, or a confirmed regression."""
        verdict = self.again.verdict if self.again else ""
        return verdict in NOT_WORSE or (verdict in WORSE and self.is_regression)

    @property
    def in_turns(self) -> NightRatio:
        """The ratio in turns; where that was not measured, the one of the two runs."""
        return self.again or self


@dataclass(frozen=True, slots=True, kw_only=True)
class NightDifference:
    """A fact that differs between an environment as it was and as it is; ``analysis.comparison_model.Difference``."""

    __pydantic_config__ = NEWER_FIELDS_IGNORED

    name: str
    base: str | None
    other: str | None
    kind: str = "speed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NightPair:
    """An environment as it was and as it is, measured in turns.

    Attributes:
        environment: as it is; ``base`` is the name of it as it was, ``torch-2.x@20261120-023005-50a1``.
        folder: of the run that measured both.
        differences: between the two; none if a side has no record.
    """

    __pydantic_config__ = NEWER_FIELDS_IGNORED

    environment: str
    base: str
    folder: str
    differences: tuple[NightDifference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One night.

    Attributes:
        run: the id of its first run, and ``at`` when that started.
        state: how it ended; candidates were left unconfirmed unless that is ``done``.
        stage: what it did then.
        measured: how many cells have a good record; ``failed`` the ids of those without one.
        compared: how many cells were compared with their baselines.
        seconds: id of a cell -> median seconds of its first run.
        notes: other findings, as sentences.
        alerts: what was done about alerts.
    """

    __pydantic_config__ = NEWER_FIELDS_IGNORED

    run: str
    at: str = ""
    device: str = ""
    device_name: str = ""
    backend: str = ""
    state: End = "interrupted"
    stage: Stage = "compare"
    measured: Count = 0
    failed: tuple[str, ...] = ()
    compared: Count = 0
    changes: tuple[NightChange, ...]
    pairs: tuple[NightPair, ...] = ()
    seconds: Mapping[str, Number] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    alerts: tuple[AlertEntry, ...] = ()

    @property
    def series_device(self) -> str:
        """The device as series, anchors and alerts name it."""
        return series_device(self.backend, self.device_name)

    @property
    def slower(self) -> tuple[NightChange, ...]:
        """The regressions that stand, confirmed tonight or earlier, against baselines, anchors and series."""
        return tuple(change for change in self.changes if change.is_regression)

    @property
    def exit_code(self) -> int:
        """1 where a regression stands or nothing could be measured, else 0."""
        return 1 if self.slower or not self.measured else 0

    def has_measured(self, row: str) -> bool:
        """Return whether its first run has a good record of the cell of a row, or of the environment."""
        cell, metric = cell_and_metric(row)
        if BY_NAME[metric].scope == "environment":
            return any(environment_of(name) == environment_of(cell) for name in self.seconds)
        return cell in self.seconds

    def json(self) -> dict[str, Any]:
        """Return the night as docs/how-to/nightly.md describes it."""
        document: dict[str, Any] = NIGHT.dump_python(self, mode="json")
        document["changes"] = [{**_CELL_FIRST, **change} for change in document["changes"]]
        return {"version": newest(KIND), "exit_code": self.exit_code, **document}


NIGHT = TypeAdapter(Night)
_CELL_FIRST = dict.fromkeys(name for name in NightChange.__annotations__ if name != "again")
"""For people who read the file: a change begins with its cell."""
