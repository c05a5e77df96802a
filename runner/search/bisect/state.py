"""What a bisect has measured: ``reports/bisect/<id>/state.json``, replaced as a whole after each step.

The runs in turns are below the same folder. A bisect with the same question continues from the steps of an unfinished
state, with the candidates that are in it.
"""

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.bounds import STRICT, Count, MetricName, Number, Ratio
from runner.core.errors import RecordError
from runner.core.metrics import TIME
from runner.stats.bisection import Outcome
from runner.store.documents import newest, read_value, save

FOLDER = "bisect"
FILE = "state.json"
KIND = "bisect"
"""The kind of the file, see ``documents.UPGRADES``."""
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
        environment: the environment of the cell, where CUDA or a package next to the framework varies; a release such
            as ``numpy==2.2.6`` stands for its own. Else empty.
        device: ``cpu``, or the UUIDs of the GPUs.
        backend: ``docker`` or ``venv``.
        metric: the name of the metric whose verdicts decide.
        settings: what decides its times besides, see ``question.settings_of``; empty in states of older programs.
    """

    __pydantic_config__ = STRICT

    cell: str
    good: str
    bad: str
    axis: str
    every: bool
    environment: str
    device: str
    backend: str
    metric: MetricName = TIME
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainProcesses:
    """What the plain processes of a comparison show, see ``analysis.plain_control.PlainChange``."""

    __pydantic_config__ = STRICT

    ratio: Ratio
    ratio_low: Ratio | None
    ratio_high: Ratio | None
    rounds: Count
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """A comparison of two candidates in turns.

    Attributes:
        base: the name of the first candidate; ``other`` of the second.
        outcome: what the search takes from it.
        verdict: of ``other`` against ``base``; empty where ``other`` could not be measured.
        ratio: time of ``other`` over that of ``base``, with its 95 % interval; None without.
        base_value: median of the base in the unit of the metric, ``value`` of the other; None without, and in states of
            older programs.
        rounds: in turns.
        run: the id of its run; empty without.
        seconds: how long it took, with building.
        reason: why there is no verdict, or why ``other`` cannot be measured.
        differences: what else differs between the two, as sentences.
        grade: of its run; empty without a run.
        issues: serious quality issues of its run, as sentences.
        base_revisions: package -> the commit that the base was made from, or its tag; ``revisions`` of the other.
        plain: what plain processes show; None without them.
    """

    __pydantic_config__ = STRICT

    base: str
    other: str
    outcome: Outcome
    verdict: str = ""
    ratio: Ratio | None = None
    ratio_low: Ratio | None = None
    ratio_high: Ratio | None = None
    base_value: Number | None = None
    value: Number | None = None
    rounds: Count = 0
    run: str = ""
    seconds: Number = 0.0
    reason: str = ""
    differences: tuple[str, ...] = ()
    grade: str = ""
    issues: tuple[str, ...] = ()
    base_revisions: Mapping[str, str] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)
    plain: PlainProcesses | None = None


class CandidateEntry(TypedDict):
    """A candidate, as ``result.entry`` gives it."""

    name: str
    release: str
    source: str
    template: str


@dataclass(slots=True, kw_only=True)
class SearchState:
    """A search: its folder, question, candidates, and steps so far.

    Attributes:
        candidates: name, release, source and template of each, from the good end to the bad one.
        built: names of candidates that this search has built and not removed.
        ended: nothing is left to measure.
    """

    __pydantic_config__ = STRICT

    path: Annotated[Path, Field(exclude=True)] = Path()
    question: Question
    candidates: tuple[CandidateEntry, ...] = ()
    steps: list[SearchStep] = field(default_factory=list)
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


STATE = TypeAdapter(SearchState)


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
    state = read_value(path, KIND, STATE, MAX_BYTES, "remove its folder to search anew")
    state.path = path.parent
    return state
