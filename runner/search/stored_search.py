"""The states of searches: ``reports/<kind>/<id>/state.json``, each replaced as a whole after each step.

The runs of a search are below the same folder. A search with the same question continues the newest one that has not
ended.
"""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field, TypeAdapter

from runner.core.bounds import STRICT
from runner.core.errors import RecordError
from runner.store.documents import newest, read_value, save

FILE = "state.json"
MAX_BYTES = 16 << 20
"""The largest state that is read; a step of a bisect has about 500 bytes."""


@dataclass(slots=True, kw_only=True)
class StoredSearch:
    """What is common to the states of all searches.

    Attributes:
        path: the folder.
        question: what is searched; searches with equal questions are the same.
        built: names of the environments that were built for the search, and not removed.
        ended: nothing is left to measure.
    """

    __pydantic_config__ = STRICT

    path: Annotated[Path, Field(exclude=True)] = Path()
    question: Any
    built: list[str] = field(default_factory=list)
    ended: bool = False

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.path.name


State = TypeVar("State", bound=StoredSearch)


class SearchStore(Generic[State]):
    """Reads and writes the states of one kind of search."""

    def __init__(self, kind: str, state: type[State]) -> None:
        """Take the class of the states, and their kind: it names the folder, see ``documents.UPGRADES``."""
        self.kind, self.state, self.adapter = kind, state, TypeAdapter(state)

    def new(self, reports: Path, question: object, now: datetime) -> State:
        """Return the state of a new search; nothing is written yet.

        Args:
            reports: the folder of all results.
            question: what is searched.
            now: the time in UTC, which names the folder.
        """
        folder = reports / self.kind / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        return self.state(path=folder, question=question)

    def save(self, state: State) -> None:
        """Replace the file of a state; raises RecordError if it cannot be written."""
        document = {"version": newest(self.kind), **self.adapter.dump_python(state, mode="json")}
        save(state.path / FILE, json.dumps(document, indent=1, allow_nan=False) + "\n")

    def unfinished(self, reports: Path, question: object) -> State | None:
        """Return the newest search with this question that has not ended; None without one."""
        return next((state for state in self.states(reports) if state.question == question and not state.ended), None)

    def states(self, reports: Path) -> Iterator[State]:
        """Yield the stored searches, newest first; a file that this program did not write is ignored."""
        folder = reports / self.kind
        for path in sorted(folder.glob(f"*/{FILE}"), reverse=True) if folder.is_dir() else ():
            try:
                yield self.read(path)
            except RecordError:
                continue

    def read(self, path: Path) -> State:
        """Return a stored search.

        Raises:
            RecordError: the file cannot be read, or was not written by this program.
        """
        state = read_value(path, self.kind, self.adapter, MAX_BYTES, "remove its folder to begin anew")
        state.path = path.parent
        return state
