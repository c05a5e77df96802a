"""What an explanation has decided: ``reports/explain/<id>/state.json``; its runs are below the same folder.

An explanation with the same question continues the newest one that has not ended: from its runs and its locks.
"""

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from runner.core.bounds import STRICT, MetricName
from runner.core.errors import RecordError
from runner.store.documents import newest, read_value, save

FOLDER = "explain"
FILE = "state.json"
KIND = "explain"
"""The kind of the file, see ``documents.UPGRADES``."""
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainQuestion:
    """What is explained: two explanations with equal questions are the same.

    Attributes:
        cell: the test without its environment.
        good: the release without the change, as it was typed; ``bad`` with it.
        device: ``cpu``, or the UUIDs of the GPUs.
        backend: ``docker`` or ``venv``.
        metric: the name of the metric that changed.
        settings: what decides its times besides, see ``bisect.question.settings_of``.
    """

    __pydantic_config__ = STRICT

    cell: str
    good: str
    bad: str
    device: str
    backend: str
    metric: MetricName
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class ExplainState:
    """An explanation: its folder and question.

    Attributes:
        untried: environment of a candidate -> why it cannot be locked, built or measured.
        built: the environments that were built for the explanation, and not removed.
        ended: nothing is left to measure.
    """

    __pydantic_config__ = STRICT

    path: Annotated[Path, Field(exclude=True)] = Path()
    question: ExplainQuestion
    untried: dict[str, str] = field(default_factory=dict)
    built: list[str] = field(default_factory=list)
    ended: bool = False

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.path.name

    def save(self) -> None:
        """Replace the file; raises RecordError if it cannot be written."""
        document = {"version": newest(KIND), **STATE.dump_python(self, mode="json")}
        save(self.path / FILE, json.dumps(document, indent=1, allow_nan=False) + "\n")


STATE = TypeAdapter(ExplainState)


def new_state(reports: Path, question: ExplainQuestion, now: datetime) -> ExplainState:
    """Return the state of a new explanation; nothing is written yet. ``now`` is in UTC and names the folder."""
    return ExplainState(path=reports / FOLDER / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}", question=question)


def unfinished(reports: Path, question: ExplainQuestion) -> ExplainState | None:
    """Return the newest explanation with this question that has not ended; None without one."""
    return next((state for state in states(reports) if state.question == question and not state.ended), None)


def states(reports: Path) -> Iterator[ExplainState]:
    """Yield the stored explanations, newest first; a file that this program did not write is ignored."""
    folder = reports / FOLDER
    for path in sorted(folder.glob(f"*/{FILE}"), reverse=True) if folder.is_dir() else ():
        try:
            state = read_value(path, KIND, STATE, MAX_BYTES, "remove its folder to explain anew")
        except RecordError:
            continue
        state.path = path.parent
        yield state
