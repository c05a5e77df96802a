"""The values that analysis and report share: a run as tables, and reasons to doubt its numbers."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar

from runner.core.model import Cell
from runner.store.journal import Journal

if TYPE_CHECKING:
    import pandas as pd

P = ParamSpec("P")
T = TypeVar("T")

MIN_ROUNDS = 3
"""Rounds that it takes to estimate the noise: with two, a 95 % interval reaches nine standard deviations each way."""


class Turns(NamedTuple):
    """The medians of a cell's turns in a round, in seconds, and a name that the cells that took turns share."""

    name: str
    medians: tuple[float, ...]


Round = tuple[float, Turns | None]
"""A cell's time in a round, in seconds: the median of all its samples, and of each turn if it took turns."""


def log_ratio(base: Round, other: Round) -> float:
    """Return the datum of a round: the logarithm of other over base.

    If both took turns with each other, it is the median over the ratios of adjacent turns: a disturbance that lasts for
    some turns then affects both sides, or few of the ratios. Otherwise it is the ratio of the medians.

    >>> round(math.exp(log_ratio((1.0, Turns("a", (1.0, 3.0, 1.0))), (2.0, Turns("a", (2.0, 6.0))))), 9)
    2.0
    """
    if base[1] and other[1] and base[1].name == other[1].name:
        turns = zip(base[1].medians, other[1].medians, strict=False)  # one may have been precise before the other
        ratios = sorted([other_seconds / base_seconds for base_seconds, other_seconds in turns])
        low, high = ratios[(len(ratios) - 1) // 2], ratios[len(ratios) // 2]  # the logarithm keeps the order
        return math.log(low) if low == high else (math.log(low) + math.log(high)) / 2
    return math.log(other[0] / base[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A cell of a run's plan; ``code`` and ``reason`` say why it was skipped, and are empty if it was not."""

    cell: Cell
    kind: str
    framework: str
    device: str
    verdict: Literal["run", "skip"]
    code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One run as tables.

    Attributes:
        samples: a row for each measured iteration, with the columns of ``runner.store.samples.COLUMNS``.
        rounds: a row for each good record: the cell, its facts, ``seconds`` (the median), ``iterations``
            and ``turns``, a ``Turns`` or None.
        failures: a row for each failed record: the cell, its facts, ``failure``, ``reason`` and ``model_check``.
        plan: every requested cell.
        machine: facts about the machine.
        environments: environment id -> facts about it, with ``framework`` and ``release`` if they are known.
        canary: (case id, round, seconds) of a fixed product, in the order measured.
        looks: the numbers of rounds at which its verdicts were, or could have been, taken.
        warnings: sentences about files of the run that are damaged and left out.
        provenance: what it takes to repeat the run: the journal's ``begun`` event and the plan's settings.
        journal: the events of the run.
        settings: the plan without its cells: device, backend, rounds and further options of the run.
        memo: results that several analyses of this run share, by their function; see ``once``.
    """

    run: str
    samples: "pd.DataFrame"
    rounds: "pd.DataFrame"
    failures: "pd.DataFrame"
    plan: tuple[Planned, ...]
    machine: Mapping[str, Any] = field(default_factory=dict)
    environments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    canary: tuple[tuple[str, int, float], ...] = ()
    looks: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    journal: Journal = field(default_factory=Journal)
    settings: Mapping[str, Any] = field(default_factory=dict)
    memo: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)


def once(analysis: Callable[Concatenate[Dataset, P], T]) -> Callable[Concatenate[Dataset, P], T]:
    """Return an analysis of a run that keeps its results: comparison, quality and grade ask for the same ones."""

    @wraps(analysis)
    def kept(dataset: Dataset, /, *arguments: P.args, **options: P.kwargs) -> T:
        key = analysis, arguments, tuple(options.items())
        if key not in dataset.memo:
            dataset.memo[key] = analysis(dataset, *arguments, **options)
        result: T = dataset.memo[key]
        return result

    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityIssue:
    """A reason to doubt the numbers of a run.

    Attributes:
        code: one of ``runner.analysis.quality.CODES``.
        sentence: what was observed.
        serious: it puts a verdict into question; otherwise it only makes one harder to reach.
        environment: the environment it concerns; empty for the run as a whole, as is ``cell``.
        cell: the id of the cell.
        extent: how severe it is among issues of the same code; larger is worse.
    """

    code: str
    sentence: str
    serious: bool
    environment: str = ""
    cell: str = ""
    extent: float = 0.0
