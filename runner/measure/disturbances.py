"""Which rounds other programs disturbed, by what the harness measures beside the times, and which are measured again.

A round of a case is disturbed in a phase and precision if

- other programs kept more CPUs busy beside one of the cells than is allowed, or
- the calls of all cells that took turns with each other take more than LOST_TIME times as long as in their best round:
  others use the processor, or a hypervisor takes it away.

Neither looks at the ratio of two cells, so leaving a disturbed round out does not choose among ratios. A single cell
whose calls are slow may be a program with a slow state, which is a result: only all cells of a set are a disturbance.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from runner.core.model import Cell, Measurement, Outcome, Past, RoundDisturbed, Signs

LOST_TIME = 2.0
MAX_IN_VAIN = 2
"""Repeats in a row that are disturbed again; then none follows until a round has been undisturbed."""


class ComparedCells(NamedTuple):
    """The cells of a case in a round that are compared with each other: those of a phase and precision."""

    case_id: str
    round: int
    phase: str
    precision: str


class Repeat(NamedTuple):
    """A round of a case, by its stored number, whose disturbed cells are measured again as a further attempt."""

    case_id: str
    round: int
    cells: frozenset[Cell]
    attempt: int


def signs_of(facts: Mapping[str, Any], samples: Sequence[float]) -> Signs:
    """Return how far a cell was disturbed in a round.

    Args:
        facts: of its record, or the harness's answer.
        samples: the seconds of a call in each of its samples.
    """
    name = (facts.get("turns") and facts.get("turns_with")) or ""
    seconds = sum(samples) / len(samples) if name and samples else 0.0
    return Signs(facts.get("others_busy"), name, seconds)


class Disturbances:
    """Collects the signs of all rounds of a device, those of a resumed run included."""

    def __init__(self, measurement: Measurement, past: Past, allowed: float | None) -> None:
        """Start with what was measured before.

        Args:
            measurement: the rounds that are planned.
            past: of a resumed run.
            allowed: CPUs that other programs may keep busy beside a cell; None if no round counts as disturbed.
        """
        self.measurement = measurement
        self.allowed = allowed
        self.in_vain = 0
        self.repeats: Counter[str] = Counter()
        self._attempts: dict[tuple[str, int], int] = dict(past.attempts)
        self._signs: dict[ComparedCells, dict[Cell, Signs]] = defaultdict(dict)  # of the attempt that follows
        self._attempt_of: dict[ComparedCells, int] = {}
        self._shortest: dict[Cell, float] = {}  # seconds of a call
        self._noted: set[ComparedCells] = set()  # in this step
        self._changed: set[ComparedCells] = set()  # since their extents were calculated
        self._extents: dict[ComparedCells, float] = {}  # of the parts that are disturbed
        self._marked = {(_part(cell, number), attempt) for cell, number, attempt in past.disturbed}
        if allowed is not None:
            for (cell, number), (attempt, signs) in past.signs.items():
                self._note(cell, number, attempt, signs)
        first: dict[tuple[str, int], int] = {}
        for part, attempt in self._marked:
            key = part.case_id, part.round
            first[key] = min(attempt, first.get(key, attempt))
        for key, attempt in first.items():
            self.repeats[key[0]] += max(0, past.attempts.get(key, attempt) - attempt)

    @property
    def is_in_vain(self) -> bool:
        """Whether the last repeats were disturbed as well, and no round since then was undisturbed."""
        return self.in_vain >= MAX_IN_VAIN

    def note(self, outcome: Outcome) -> None:
        """Note what was measured; a failed outcome shows nothing."""
        if self.allowed is not None and outcome.reply.get("status") == "ok":
            signs = signs_of(outcome.reply, outcome.reply.get("seconds") or ())
            self._attempts[outcome.cell.case_id, outcome.round] = outcome.attempt
            self._note(outcome.cell, outcome.round, outcome.attempt, signs)

    def _note(self, cell: Cell, number: int, attempt: int, signs: Signs) -> None:
        part = _part(cell, number)
        self._signs[part][cell], self._attempt_of[part] = signs, attempt
        self._noted.add(part)
        self._changed.add(part)
        if signs.call_seconds and signs.call_seconds < self._shortest.get(cell, float("inf")):
            self._shortest[cell] = signs.call_seconds
            self._changed.update(self._signs)  # seldom: a record of so many rounds

    def marks(self, *, is_repeat: bool = False) -> Iterator[RoundDisturbed]:
        """Yield the parts that turned out to be disturbed since the last call; called at the end of each step.

        A later, better round may show that an earlier one was disturbed.

        Args:
            is_repeat: the step repeated one. If that is disturbed again, it was in vain.
        """
        for part in self._changed:
            self._extents.pop(part, None)
            extent = self._extent(part)
            if extent > 1:
                self._extents[part] = extent
        if self._noted & self._extents.keys():
            self.in_vain += is_repeat
        elif self._noted:
            self.in_vain = 0
        self._noted.clear()
        self._changed.clear()
        for part, extent in self._extents.items():
            marked = part, self._attempt_of[part]
            if marked not in self._marked:
                self._marked.add(marked)
                yield RoundDisturbed(part.case_id, part.round, marked[1], tuple(self._signs[part]), extent)

    def _extent(self, part: ComparedCells) -> float:
        """Return how far a part was disturbed, in units of what is allowed; more than 1 is too much."""
        cells = self._signs[part]
        extents = [(signs.others_busy or 0.0) / (self.allowed or 1.0) for signs in cells.values()]
        sets: dict[str, list[float]] = defaultdict(list)
        for cell, signs in cells.items():
            if signs.call_seconds:
                sets[signs.turns_with].append(signs.call_seconds / self._shortest[cell] / LOST_TIME)
        return max([*extents, *(min(lost) for lost in sets.values() if len(lost) > 1)], default=0.0)

    def to_repeat(
        self, group: int, left_out: Collection[Cell] = (), just_repeated: Collection[tuple[str, int]] = ()
    ) -> list[Repeat]:
        """Return what to measure again now: of each case, the first of the disturbed rounds with the fewest attempts.

        A case is repeated at most as often as it has planned rounds, and nothing is while repeats are in vain.

        Args:
            group: the memory group whose environments are alive.
            left_out: cells that are not measured again.
            just_repeated: (case id, stored number) of rounds that were repeated a moment ago.
        """
        if self.is_in_vain:
            return []
        by_round: dict[tuple[str, int], set[Cell]] = defaultdict(set)
        for part in self._extents:
            of_group = self.measurement.round_of(part.round).group == group
            if of_group and (part.case_id, part.round) not in just_repeated:
                by_round[part.case_id, part.round] |= self._signs[part].keys() - set(left_out)
        chosen: dict[str, Repeat] = {}
        for case_id, number in sorted(by_round, key=lambda key: (self._attempts[key], key[1])):
            cells = by_round[case_id, number]
            if cells and case_id not in chosen and self.repeats[case_id] < self.measurement.rounds:
                attempt = self._attempts[case_id, number] + 1
                chosen[case_id] = Repeat(case_id, number, frozenset(cells), attempt)
        return list(chosen.values())

    def begin(self, repeat: Repeat) -> None:
        """Forget what a round of a case showed, because it is measured again."""
        self.repeats[repeat.case_id] += 1
        self._attempts[repeat.case_id, repeat.round] = repeat.attempt
        for part in {_part(cell, repeat.round) for cell in repeat.cells}:
            del self._signs[part]
            self._extents.pop(part, None)


def _part(cell: Cell, number: int) -> ComparedCells:
    return ComparedCells(cell.case_id, number, cell.phase, cell.precision)
