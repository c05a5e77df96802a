"""Carries out a search: which comparisons come next, those that are stored first, and whether its changes stand out.

``stats.bisection`` chooses the comparisons, ``stats.release_scatter`` compares what it found with how much releases
differ from each other. Where that is not sure, further releases around the change are measured. All of it is a function
of the steps, so a search continues from stored ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from runner.search.bisect.rebuilt import rebuilt_name
from runner.search.bisect.state import SearchStep
from runner.stats.bisection import (
    AROUND,
    FoundChanges,
    LocatedChange,
    Outcome,
    PositionPair,
    Search,
    bisection,
    comparison_limit,
    every_neighbour,
    neighbours,
)
from runner.stats.release_scatter import SURE, ReleaseRatio, Standing, from_levels, from_neighbours

Take = Callable[[PositionPair], SearchStep]
"""Returns the step of a pair: measured, or stored by an earlier part of the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found.

    Attributes:
        answer: the changes by position.
        standings: last position of a change -> how it stands beside the scatter of releases; missing where too few
            releases were measured to tell.
    """

    answer: FoundChanges
    standings: Mapping[int, Standing] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Walk:
    """A search that goes on until it has its answer.

    Attributes:
        names: of the candidates, from the good end to the bad one.
        every: compare all neighbours.
        limit: comparisons at most; None for the default.
        rebuild: measure a second build of both ends, if there is a change.
        take: gives the step of a pair.
        steps: those that were taken.
    """

    names: Sequence[str]
    every: bool
    limit: int | None
    rebuild: bool = False
    take: Take
    steps: list[SearchStep] = field(default_factory=list)

    def result(self) -> SearchResult:
        """Take steps until the search has its answer."""
        size = len(self.names)
        search: Search = (every_neighbour if self.every else bisection)(size, self.limit)
        answer = self._answer(search)
        named = [change for change in answer.changes if change.is_named]
        for position in (0, size - 1) if self.rebuild and named else ():
            self._taken(PositionPair(position, position, is_rebuilt=True))
        for change in () if self.every else named:
            self._measure_around(answer, change)
        standings = {change: standing for change in named if (standing := self._standing(answer, change))}
        changes = {change: _as_it_stands(change, standings.get(change)) for change in answer.changes}
        return SearchResult(
            answer=answer._replace(changes=tuple(changes.values())),
            standings={changes[change].after: standing for change, standing in standings.items()},
        )

    def _answer(self, search: Search) -> FoundChanges:
        """Return the answer of a search."""
        try:
            pair = next(search)
            while True:
                pair = search.send(self._taken(pair))
        except StopIteration as end:
            answer: FoundChanges = end.value
            return answer

    def _taken(self, pair: PositionPair) -> Outcome:
        step = self.take(pair)
        self.steps.append(step)
        return step.outcome

    def _measure_around(self, answer: FoundChanges, change: LocatedChange) -> None:
        """Measure releases around a change as long as it is not sure that it stands out."""
        size = len(self.names)
        limit = comparison_limit(size) if self.limit is None else self.limit
        for _ in range(AROUND):
            standing = self._standing(answer, change)
            if standing is None or standing.p_value <= SURE:
                return
            for pair in neighbours(size, answer.changes, change, self._tried())[: max(limit - len(self.steps), 0)]:
                self._taken(pair)

    def _tried(self) -> set[int]:
        """Return the positions that were measured, or that cannot be."""
        positions = {name: position for position, name in enumerate(self.names)}
        return {0, *(positions[step.other] for step in self.steps if step.other in positions)}

    def _standing(self, answer: FoundChanges, change: LocatedChange) -> Standing | None:
        """Return how a change stands beside the releases that were measured."""
        positions = {name: position for position, name in enumerate(self.names)}
        rebuilt = {rebuilt_name(name): position for name, position in positions.items()}
        ratios = [
            ReleaseRatio(
                positions[step.base],
                rebuilt.get(step.other, positions.get(step.other, 0)),
                log(step.ratio),
                is_rebuilt=step.other in rebuilt,
            )
            for step in self.steps
            if step.ratio
        ]
        return from_neighbours(ratios, change) if self.every else from_levels(ratios, answer.changes, change)


def _as_it_stands(change: LocatedChange, standing: Standing | None) -> LocatedChange:
    """Return a change, as a range where it does not stand out from the scatter of releases."""
    if standing is None or standing.stands_out(change):
        return change
    before, after = standing.range
    return LocatedChange(before, after, tuple(range(before + 1, after)), "scatter")
