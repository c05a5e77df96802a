"""What happens while cells are measured, and the record that one cell leaves behind in one round."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, GetPydanticSchema
from pydantic_core.core_schema import no_info_after_validator_function as after

from runner.core.bounds import STRICT, CellId, Number, Positive, RoundNumber, Seconds
from runner.core.fact_types import FACTS_SHAPE
from runner.core.model.cells import Cell
from runner.core.model.provisioning import Provisioned

FAILURE_CLASSES = (
    "image-build",
    "image-pull",
    "outage",
    "import",
    "arch",
    "oom",
    "nan",
    "wrong-result",
    "timeout",
    "crash",
    "engine",
    "device",
)


StoredCaseId = Annotated[str, Field(alias="case")]
"""A case, as the journal has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the server answered for one cell in one round, with its facts, and those of the device meanwhile."""

    cell: Cell
    round: int
    attempt: int = 1
    reply: Mapping[str, Any]
    facts: Mapping[str, Any]
    device: Mapping[str, Any] = field(default_factory=dict)
    ready: Provisioned


@dataclass(frozen=True, slots=True)
class GroupsFormed:
    """Groups of environments that are alive together; each holds the base."""

    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class CaseFinished:
    """All cells of a case were measured in a round."""

    __pydantic_config__ = STRICT

    case_id: StoredCaseId
    round: RoundNumber


@dataclass(frozen=True, slots=True)
class CaseSkipped:
    """A case is left out, because the budget has no time for it; ``reason`` has the measured numbers."""

    case_id: str
    cells: tuple[Cell, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class ExtraRound:
    """A round beyond the planned ones, for cells whose verdicts are open."""

    round: int
    cells: frozenset[Cell]


CANARY_SIZE = 512
"""Rows and columns of the two matrices that the canary multiplies."""


@dataclass(frozen=True, slots=True)
class Canary:
    """The seconds of a fixed matrix product, measured before the cells of a case in a round."""

    __pydantic_config__ = STRICT

    case_id: StoredCaseId
    round: RoundNumber
    seconds: Seconds


Activity = Literal[
    "start",
    "import",
    "compile",
    "reference",
    "canary",
    "build",
    "check",
    "warm-up",
    "turns",
    "samples",
    "other",
]
ACTIVITIES: tuple[Activity, ...] = get_args(Activity)
"""What the time of a run is spent on.

``start`` and ``import``: servers start, and import their frameworks; ``compile``: ahead of the first round, first
contexts included where the driver compiles in them;
``reference``: the float64 results; ``canary``; ``build`` and ``check``: programs are built and verified; ``warm-up``;
``samples``: the calls that count; ``turns``: the calls that lead a turn, and the hand-over of turns; ``other``: what
remains, such as verdicts and rests of a hot GPU.
"""


StoredTimes = Annotated[Mapping[Activity, float], GetPydanticSchema(lambda _, handler: handler(dict[str, Number]))]
"""Seconds by activity; a newer program may know further activities."""


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """Where the time of a round went, in seconds by activity, which add up to the time that passed."""

    __pydantic_config__ = STRICT

    round: RoundNumber
    seconds: StoredTimes


@dataclass(frozen=True, slots=True)
class ProfileTaken:
    """Where the time of a cell's step goes, by its framework's profiler; or its ``reason`` why there is no table.

    Attributes:
        cell: the cell.
        profile: what ``harness.profiling.facts`` returns, and ``framework_version``.
    """

    cell: Cell
    profile: Mapping[str, Any]


StoredCell = Annotated[Cell, GetPydanticSchema(lambda _, handler: after(Cell.parse, handler(CellId)))]
"""A cell, as its id in a file."""


@dataclass(frozen=True, slots=True)
class RoundDisturbed:
    """Other programs disturbed some cells of a case in a round, which are measured again if there is time.

    Of several attempts, an undisturbed one counts, and else the one that was disturbed least.

    Attributes:
        case_id: the case.
        round: the stored number of the round.
        attempt: of the records that were disturbed.
        cells: the cells of these records.
        extent: how many times as much as is allowed, above 1; see ``measure.disturbances``.
    """

    __pydantic_config__ = STRICT

    case_id: StoredCaseId
    round: RoundNumber
    attempt: Positive
    cells: tuple[StoredCell, ...]
    extent: Seconds

    def event(self) -> dict[str, Any]:
        """Return the fields of its ``disturbed`` event."""
        cells = [cell.id for cell in self.cells]
        values = {"round": self.round, "attempt": self.attempt, "cells": cells, "extent": round(self.extent, 3)}
        return {"case": self.case_id, **values}


Event = Outcome | GroupsFormed | CaseFinished | CaseSkipped | ExtraRound | Canary | RoundTimes | RoundDisturbed
"""What happens while cells are measured."""

RecordFacts = Annotated[Mapping[str, Any], GetPydanticSchema(lambda _, handler: handler(FACTS_SHAPE))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one cell left behind in one round, however it ended; a file in ``records/``, see ``store.records``.

    Attributes:
        seconds: one value per measured iteration, in order; never empty when ``status`` is ``ok``.
        warmup: the iterations before them, in order.
        compile_seconds: from before the model was built to the end of the first step; None where it was not reached.
        loss: the loss before each of the three checked training steps, and ``reference_loss`` the same in float64.
        facts: versions, device, threads, backend, digest, errors against the reference, harness version.
    """

    __pydantic_config__ = STRICT

    cell: StoredCell
    run: str
    round: RoundNumber
    attempt: Positive
    status: Literal["ok", "failed"]
    failure: Annotated[str | None, Field(alias="class")]
    reason: str | None
    seconds: tuple[Seconds, ...]
    warmup: tuple[Number | None, ...]
    compile_seconds: Number | None
    loss: tuple[Number | None, ...]
    reference_loss: tuple[Number | None, ...]
    facts: RecordFacts
