"""What a bisect has measured, see ``stored_search``. A search continues with the candidates that are in its state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.bounds import STRICT, Count, MetricName, Number, Ratio
from runner.core.metrics import TIME
from runner.search.stored_search import SearchStore, StoredSearch
from runner.stats.bisection import Outcome


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
class SearchState(StoredSearch):
    """A search: its folder, question, candidates, and steps so far.

    Attributes:
        candidates: name, release, source and template of each, from the good end to the bad one.
    """

    __pydantic_config__ = STRICT

    question: Question
    candidates: tuple[CandidateEntry, ...] = ()
    steps: list[SearchStep] = field(default_factory=list)

    def save(self) -> None:
        """Replace the file; raises RecordError if it cannot be written."""
        SEARCHES.save(self)


SEARCHES = SearchStore("bisect", SearchState)
