"""Which pair a bisect measures next, and the changes that its verdicts name: a function of the verdicts alone.

Positions 0 to n - 1 are releases, oldest first. ``bisection`` is a generator: it yields a pair, and is sent how the
comparison of the two ended. The same answers give the same pairs, so a search goes on from stored verdicts.

The search for a change between two releases that differ halves the range: a release in the middle is compared with the
base, the first release of the level. Then the two neighbours are compared with each other, in a run of their own. What
is named has therefore passed two independent tests at ``intervals.FALSE_ALARM_LEVEL`` (0.007): with no change between
two neighbours, a false name takes a false verdict in the search and another of these two, 0.007 * 0.007 for each step
of the search. ``benchmarks`` are not needed for that number: ``tests/unit/stats/test_bisection.py`` simulates it.

Releases differ from each other by a little that no interval of two of them contains. ``release_scatter`` compares a
change with that, and where it is not sure, ``neighbours`` says which releases around the change are measured besides.

After a change, the search goes on between its second release and the end, as long as these two differ. A slow-down that
a later release takes back is not visible from the ends; ``every_neighbour`` compares all neighbours instead. Gradual
changes and noise can take more comparisons than that, so a search by halving stops at ``comparison_limit``.
"""

import math
from collections import Counter
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

Outcome = Literal["same", "changed", "open", "missing"]
"""How a comparison ended; ``open`` without a verdict, ``missing`` where the second release could not be measured."""

Kind = Literal["confirmed", "unconfirmed", "gradual", "scatter", "stopped"]

ENDS, CONFIRMATION, REST = 1, 1, 1
"""Comparisons beside the halving: of the two ends, of the two neighbours, and of what follows the change."""
SPARE = 10
"""Comparisons more than a single change takes, before a search among few releases stops."""
AROUND = 2
"""Further releases on either side of a change that are measured at most, where its standing is not sure."""


class PositionPair(NamedTuple):
    """A comparison in turns.

    Attributes:
        base: the position of the first release; ``other`` of the second.
        repeats: how often the two were compared before.
        is_rebuilt: whether the second side is a second build of its release.
        confirms: whether it confirms a change between the two that the search has narrowed down.
    """

    base: int
    other: int
    repeats: int = 0
    is_rebuilt: bool = False
    confirms: bool = False


class LocatedChange(NamedTuple):
    """Where a change came in.

    Attributes:
        before: the last position without it.
        after: the first with it.
        missing: positions between the two of which nothing is known.
        kind: ``confirmed`` by a comparison of these two in a run of their own; ``unconfirmed`` where that comparison
            had no verdict; ``gradual`` where no pair of neighbours differs, though the two positions do; ``scatter``
            where the change does not stand out from how much releases differ anyway; ``stopped`` where the search ended
            before it had compared enough.
    """

    before: int
    after: int
    missing: tuple[int, ...] = ()
    kind: Kind = "confirmed"

    @property
    def is_named(self) -> bool:
        """True if a single release is named."""
        return self.kind == "confirmed" and not self.missing


class FoundChanges(NamedTuple):
    """The result of a search.

    Attributes:
        changes: oldest first.
        undecided: two positions whose comparison stayed open; None without.
        stopped: whether the search ended because of its limit of comparisons.
    """

    changes: tuple[LocatedChange, ...] = ()
    undecided: tuple[int, int] | None = None
    stopped: bool = False


Search = Generator[PositionPair, Outcome, FoundChanges]


class _LimitReachedError(Exception):
    """A search has as many comparisons as it may have."""


def bisection(size: int, limit: int | None = None) -> Search:
    """Search the changes between the first and the last of some releases.

    Args:
        size: the number of releases, at least 2.
        limit: comparisons at most; None for ``comparison_limit``.
    """
    verdicts, changes = _Verdicts(comparison_limit(size) if limit is None else limit), list[LocatedChange]()
    base, last = 0, size - 1
    try:
        while base < last:
            outcome = yield from verdicts.of(base, last)
            if outcome != "changed":
                return FoundChanges(tuple(changes), None if outcome == "same" else (base, last))
            change = yield from _first_change(verdicts, base, last)
            if change is None:  # the ends are the same after all
                break
            changes.append(change)
            base = change.after
    except _LimitReachedError:
        narrowed = verdicts.narrowed(base, last)
        return FoundChanges((*changes, *narrowed), None if narrowed else (base, last), stopped=True)
    return FoundChanges(tuple(changes))


def every_neighbour(size: int, limit: int | None = None) -> Search:
    """Compare each release with the one before it; without a limit, all of them. See ``bisection``."""
    verdicts, changes = _Verdicts(limit), list[LocatedChange]()
    before, missing = 0, list[int]()
    for position in range(1, size):
        try:
            outcome = yield from verdicts.of(before, position)
            if outcome == "changed":
                outcome = yield from verdicts.of(before, position, times=2, confirms=True)
        except _LimitReachedError:
            return FoundChanges(tuple(changes), (before, size - 1), stopped=True)
        if outcome in ("missing", "open"):
            missing.append(position)
            continue
        if outcome == "changed":
            changes.append(LocatedChange(before, position, tuple(missing), verdicts.confirmation(before, position)))
        before, missing = position, []
    return FoundChanges(tuple(changes), (before, size - 1) if missing else None)


def expected_comparisons(size: int, *, every: bool = False) -> int:
    """Return how many comparisons name a single change among so many releases, at most if all can be measured.

    >>> expected_comparisons(2), expected_comparisons(9), expected_comparisons(9, every=True)
    (2, 6, 9)
    """
    if every:
        return size - 1 + CONFIRMATION
    halvings = math.ceil(math.log2(size - 1))
    return ENDS + halvings + CONFIRMATION + REST * (size > 2)


def comparison_limit(size: int) -> int:
    """Return how many comparisons a search by halving may have: as many as all neighbours, or SPARE more than expected.

    >>> comparison_limit(33), comparison_limit(3)
    (33, 14)
    """
    return max(size, expected_comparisons(size) + SPARE)


def neighbours(
    size: int, changes: Sequence[LocatedChange], change: LocatedChange, tried: Collection[int]
) -> tuple[PositionPair, ...]:
    """Return comparisons with the nearest release on either side of a change that was not tried; none if all were.

    Args:
        size: the number of releases.
        changes: all that a search found, oldest first; releases beyond the next change say nothing about this one.
        change: one of them.
        tried: positions that were measured, or that cannot be.
    """
    number = list(changes).index(change)
    first = changes[number - 1].after if number else 0
    last = changes[number + 1].before if number + 1 < len(changes) else size - 1
    below = (position for position in range(change.before - 1, first - 1, -1) if position not in tried)
    above = (position for position in range(change.after + 1, last + 1) if position not in tried)
    return tuple(PositionPair(0, position) for side in (below, above) for position in islice(side, 1))


def _first_change(
    verdicts: "_Verdicts", base: int, last: int
) -> Generator[PositionPair, Outcome, LocatedChange | None]:
    """Return a change between two positions that differ; None if further comparisons find them the same."""
    measured_again = set[int]()
    while True:
        if (yield from verdicts.of(base, last)) != "changed":
            return None
        same, changed = yield from _halved(verdicts, base, last)
        before, after = yield from _past_open(verdicts, base, same, changed)
        missing = tuple(range(before + 1, after))
        needed = 1 if before == same > base and after == changed else 2  # one more where the search rests on this pair
        outcome = yield from verdicts.of(before, after, times=needed, confirms=True)
        if outcome == "changed":
            return LocatedChange(before, after, missing, verdicts.confirmation(before, after, needed=needed))
        if outcome == "open" or (before, after) != (same, changed):
            return LocatedChange(same, changed, tuple(range(same + 1, changed)), "unconfirmed")
        if before > base:  # the neighbours are the same, and differ as seen from the base
            if after in measured_again:
                return LocatedChange(base, after, tuple(range(base + 1, after)), "gradual")
            measured_again.add(after)
            yield from verdicts.of(base, after, times=2)
            yield from verdicts.of(base, before, times=2)


def _halved(verdicts: "_Verdicts", base: int, last: int) -> Generator[PositionPair, Outcome, tuple[int, int]]:
    """Return the last position that is the same as the base, and the first that is not; between them none is known."""
    same, changed = base, last
    while True:
        inner = [position for position in range(same + 1, changed) if verdicts.is_known(base, position)]
        if not inner:
            return same, changed
        middle = inner[len(inner) // 2]
        outcome = yield from verdicts.of(base, middle)
        if outcome == "same":
            same = middle
        elif outcome == "changed":
            changed = middle


def _past_open(
    verdicts: "_Verdicts", base: int, same: int, changed: int
) -> Generator[PositionPair, Outcome, tuple[int, int]]:
    """Return two positions, narrower if those between, whose comparison with the base stayed open, tell them apart.

    What noise hides against the base may be clear against the changed release: a large change, and times that are about
    those of the base.
    """
    for position in range(changed - 1, same, -1):
        if position in verdicts.missing or (base, position) not in verdicts.outcomes:
            continue
        outcome = yield from verdicts.of(position, changed)
        if outcome == "changed":
            return position, changed
        if outcome == "same":
            changed = position
    return same, changed


@dataclass(slots=True)
class _Verdicts:
    """What is known of pairs.

    Attributes:
        limit: comparisons at most; None without a limit.
        outcomes: (base, other) -> the outcomes of its comparisons.
        missing: the positions that cannot be measured.
        comparisons: how many there were.
    """

    limit: int | None = None
    outcomes: dict[tuple[int, int], list[Outcome]] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)
    comparisons: int = 0

    def of(
        self, base: int, other: int, times: int = 1, *, confirms: bool = False
    ) -> Search | Generator[PositionPair, Outcome, Outcome]:
        """Return the outcome of a pair after at least so many comparisons; where two contradict each other, of three.

        Args:
            base: a position.
            other: another.
            times: 1 or 2.
            confirms: its comparisons confirm a change between the two.
        """
        known = self.outcomes.setdefault((base, other), [])
        while other not in self.missing and (len(known) < times or sorted(known) == ["changed", "same"]):
            if self.comparisons == self.limit:
                raise _LimitReachedError
            self.comparisons += 1
            outcome = yield PositionPair(base, other, len(known), confirms=confirms)
            if outcome == "missing":
                self.missing.add(other)
            else:
                known.append(outcome)
        return "missing" if other in self.missing else _majority(known)

    def is_known(self, base: int, other: int) -> bool:
        """Return False for a position that cannot be measured, or whose comparison with the base stayed open."""
        known = self.outcomes.get((base, other), ())
        return other not in self.missing and not (known and _majority(known) == "open")

    def narrowed(self, base: int, last: int) -> tuple[LocatedChange, ...]:
        """Return the range of a change between two positions, as far as it is known; none if they may be the same."""
        seen = {other: _majority(known) for (first, other), known in self.outcomes.items() if first == base and known}
        if seen.get(last) != "changed":
            return ()
        after = min(position for position, outcome in seen.items() if outcome == "changed")
        before = max(
            (position for position, outcome in seen.items() if outcome == "same" and position < after), default=base
        )
        return (LocatedChange(before, after, tuple(range(before + 1, after)), "stopped"),)

    def confirmation(self, before: int, after: int, needed: int = 2) -> Kind:
        """Return whether at least so many comparisons of a pair found a change."""
        return "confirmed" if self.outcomes[before, after].count("changed") >= needed else "unconfirmed"


def _majority(outcomes: "list[Outcome] | tuple[Outcome, ...]") -> Outcome:
    """Return the verdict that most comparisons ended with; ``open`` if there is none, or as many of each."""
    counts = Counter(outcomes)
    if counts["same"] == counts["changed"]:
        return "open"
    return "same" if counts["same"] > counts["changed"] else "changed"
