"""What a bisect has measured: ``reports/bisect/<id>/state.json``, replaced as a whole after each step.

The runs in turns are below the same folder. A bisect with the same question continues from the steps of an unfinished
state, with the candidates that are in it.
"""

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.errors import Problem, RecordError
from runner.stats.bisection import Outcome
from runner.store.documents import read_shaped, save
from runner.store.shapes import CONFIG, Count, Number

FOLDER = "bisect"
FILE = "state.json"
VERSION = 1
MAX_BYTES = 16 << 20
"""The largest state that is read; a step has about 500 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a bisect searches: two searches with equal questions are the same.

    Attributes:
        cell: the cell without its environment.
        good: the environment or version without the change; ``bad`` with it.
        axis: what varies.
        every: measure all neighbours.
        environment: the environment of the cell, where ``cuda`` or ``cudnn`` varies; else empty.
        device: ``cpu``, or the UUIDs of the GPUs.
        backend: ``docker`` or ``venv``.
    """

    cell: str
    good: str
    bad: str
    axis: str
    every: bool
    environment: str
    device: str
    backend: str


@with_config(CONFIG)
class StoredCandidate(TypedDict):
    """A candidate, as stored."""

    name: str
    release: str
    source: str
    template: str


@with_config(CONFIG)
class StoredStep(TypedDict):
    """A comparison, as stored; without a run where the second release could not be measured."""

    base: str
    other: str
    outcome: Outcome
    verdict: str
    ratio: Number | None
    ratio_low: Number | None
    ratio_high: Number | None
    rounds: Count
    run: str
    seconds: Number
    reason: str
    differences: list[str]


@with_config(CONFIG)
class StoredState(TypedDict):
    """``state.json``."""

    version: int
    question: dict[str, Any]
    candidates: list[StoredCandidate]
    steps: list[StoredStep]
    built: list[str]
    ended: bool


STATE = TypeAdapter[Any](StoredState)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """A comparison of two candidates in turns.

    Attributes:
        base: the name of the first candidate; ``other`` of the second.
        outcome: what the search takes from it.
        verdict: of ``other`` against ``base``; empty where ``other`` could not be measured.
        ratio: time of ``other`` over that of ``base``, with its 95 % interval; None without.
        rounds: in turns.
        run: the id of its run; empty without.
        seconds: how long it took, with building.
        reason: why there is no verdict, or why ``other`` cannot be measured.
        differences: what else differs between the two, as sentences.
    """

    base: str
    other: str
    outcome: Outcome
    verdict: str = ""
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    rounds: int = 0
    run: str = ""
    seconds: float = 0.0
    reason: str = ""
    differences: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class SearchState:
    """A search: its folder, question, candidates, and steps so far.

    Attributes:
        candidates: name, release, source and template of each, from the good end to the bad one.
        built: names of candidates that this search has built and not removed.
        ended: nothing is left to measure.
    """

    path: Path
    question: Question
    candidates: tuple[Mapping[str, str], ...] = ()
    steps: list[SearchStep] = field(default_factory=list)
    built: list[str] = field(default_factory=list)
    ended: bool = False

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.path.name

    def save(self) -> None:
        """Replace the file; raises RecordError if it cannot be written."""
        document = {
            "version": VERSION,
            "question": asdict(self.question),
            "candidates": [dict(candidate) for candidate in self.candidates],
            "steps": [asdict(step) for step in self.steps],
            "built": self.built,
            "ended": self.ended,
        }
        save(self.path / FILE, json.dumps(document, indent=1, allow_nan=False) + "\n")


def new_state(reports: Path, question: Question, now: datetime) -> SearchState:
    """Return the state of a new search; nothing is written yet.

    Args:
        reports: the folder of all results.
        question: what is searched.
        now: the time in UTC, which names the folder.
    """
    return SearchState(path=reports / FOLDER / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}", question=question)


def unfinished(reports: Path, question: Question) -> SearchState | None:
    """Return the newest search with this question that has not ended; None without one."""
    return next((state for state in states(reports) if state.question == question and not state.ended), None)


def states(reports: Path) -> Iterator[SearchState]:
    """Yield the stored searches, newest first; a file that this program did not write is ignored."""
    folder = reports / FOLDER
    for path in sorted(folder.glob(f"*/{FILE}"), reverse=True) if folder.is_dir() else ():
        try:
            yield read_state(path)
        except RecordError:
            continue


def read_state(path: Path) -> SearchState:
    """Return a stored search.

    Raises:
        RecordError: the file cannot be read, or was not written by this program.
    """
    hint = "remove its folder to search anew"
    document = read_shaped(path, STATE, MAX_BYTES, hint)
    try:
        question = Question(**document["question"])
        steps = [SearchStep(**{**step, "differences": tuple(step["differences"])}) for step in document["steps"]]
    except (ValueError, TypeError) as error:
        raise RecordError(Problem(f"{path} is damaged: {error}", hint=hint)) from error
    return SearchState(
        path=path.parent,
        question=question,
        candidates=tuple(document["candidates"]),
        steps=steps,
        built=list(document["built"]),
        ended=document["ended"],
    )
