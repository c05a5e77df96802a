"""The sides of a comparison in each stored run, and the choice of the runs that are compared."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from runner.analysis.compare.differences import RunFacts
from runner.analysis.compare.drafts import Draft
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.compare.noise_floor import Floor, MeanKey, Work
from runner.analysis.compare.pairing import CellPair, Side, pairs
from runner.analysis.compare.published_side import published_side
from runner.analysis.compare.verdicts import draft
from runner.analysis.comparison_model import PassedOver
from runner.analysis.error_inflation import Inflation
from runner.analysis.model import Dataset
from runner.analysis.of_run import split
from runner.analysis.process_states import ProcessStates
from runner.catalog.published import Figure, is_published
from runner.core.grouping import grouped
from runner.core.model import Cell


@dataclass(frozen=True, slots=True)
class Match:
    """Two sides, and the cells that are compared."""

    base: Side
    other: Side
    pairs: Sequence[CellPair]

    @property
    def usable(self) -> bool:
        """True if both cells of a pair were measured."""
        return any(pair.base in self.base.measured and pair.other in self.other.measured for pair in self.pairs)

    def without(self, cells: Collection[Cell]) -> "Match":
        """Return the match without the pairs whose other cell is one of some."""
        return replace(self, pairs=[pair for pair in self.pairs if pair.other not in cells])

    def figures(self) -> Iterator[Figure]:
        """Yield the published figures of the pairs."""
        for pair in self.pairs:
            for figures, cell in zip((self.base.figures, self.other.figures), pair, strict=True):
                if cell in figures:
                    yield figures[cell]

    def drafts(self) -> Iterator[Draft]:
        """Yield the row of each pair, without its verdict."""
        return (draft(self.base, self.other, pair) for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class RunSides:
    """One run, as a comparison needs it.

    Attributes:
        run: its id; empty if all sides were published.
        sides: environment -> its side.
    """

    run: str
    sides: Mapping[str, Side]


class RunReader:
    """Iterates over the sides of each run, newest first; a run is read when it is first needed, and then kept.

    A published side belongs to every run, or to an empty one if there is none.
    """

    def __init__(
        self,
        runs: Iterable[Dataset | MeasuredRun],
        names: Sequence[str],
        words: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Take the runs, newest first, and the names of the sides; nothing is read yet.

        Args:
            runs: newest first.
            names: of the sides.
            words: environment id -> the word that a command names it by, where that is not the id.
        """
        self.words = words
        self.environments: set[str] = set()
        self.published = {name: published_side(name) for name in names if is_published(name)}
        self._measured_names = [name for name in names if name not in self.published]
        self._unread = iter(map(MeasuredRun.of, runs) if self._measured_names else ())
        self._read: list[RunSides] = []
        self._measured: list[MeasuredRun] = []

    def __iter__(self) -> Iterator[RunSides]:
        yield from self._read
        for measured in self._unread:
            dataset = measured.dataset
            self.environments |= {planned.cell.environment for planned in dataset.plan} | set(dataset.environments)
            self.environments |= set(dataset.rounds["environment"].unique())
            sides = {name: measured.side(name) for name in self._measured_names}
            self._read.append(RunSides(dataset.run, {**self.published, **sides}))
            self._measured.append(measured)
            yield self._read[-1]
        if self.published and not self._read:
            empty = {name: Side(environment=name) for name in self._measured_names}
            self._read.append(RunSides("", {**self.published, **empty}))
            yield self._read[-1]

    def already_read(self) -> Sequence[RunSides]:
        """Return the runs that were read, newest first."""
        return self._read

    def measured(self) -> Mapping[str, MeasuredRun]:
        """Return run -> the run, of those that were read."""
        return {measured.dataset.run: measured for measured in self._measured}

    def facts(self) -> Mapping[str, RunFacts]:
        """Return run -> facts, of the runs that were read."""
        datasets = (measured.dataset for measured in self._measured)
        return {dataset.run: RunFacts(dataset.machine, dataset.environments) for dataset in datasets}

    def noise_floors(self) -> Mapping[str, Mapping[Work, Floor]]:
        """Return run -> its noise floors, of the runs that were read."""
        return {measured.dataset.run: measured.floors for measured in self._measured}

    def states(self) -> Mapping[str, Mapping[Cell, ProcessStates]]:
        """Return run -> its cells that have two states over their processes, of the runs that were read."""
        return {each.dataset.run: each.states for each in self._measured}

    def inflations(self) -> Mapping[str, Inflation]:
        """Return run -> by how much its errors are larger than they seem, of the runs that were read."""
        return {measured.dataset.run: measured.inflation for measured in self._measured}

    def mean_noise_floors(self, matches: Iterable[Match]) -> Mapping[MeanKey, float]:
        """Return the noise floors of means, each of the newest run of some matches that has one."""
        runs = {side.run for match in matches for side in (match.base, match.other)}
        oldest_first = [each.mean_floors for each in reversed(self._measured) if each.dataset.run in runs]
        return {name: floor for floors in oldest_first for name, floor in floors.items()}


def choose_sides(runs: RunReader, base: str, other: str, *, best: bool) -> Match | None:
    """Return the newest sides that can be compared, both of one run if possible; else those that were planned."""
    planned = None
    for run in runs:
        match = Match(run.sides[base], run.sides[other], pairs(run.sides[base], run.sides[other], best=best))
        if match.usable:
            return match
        planned = planned or (match if match.pairs else None)
    for newer in runs:
        for older in runs:
            base_side, other_side = older.sides[base], newer.sides[other]
            published = base_side.figures or other_side.figures
            if base_side.run != other_side.run and not published and base_side.measured and other_side.measured:
                match = Match(base_side, other_side, pairs(base_side, other_side, best=best))
                if match.usable:
                    return match
    return planned


def passed_over(runs: Iterable[RunSides], match: Match) -> Iterator[PassedOver]:
    """Yield the runs that are newer than one of a match, have one of its sides, and could not be used, newest first.

    Args:
        runs: as they were read.
        match: the sides that are compared.
    """
    compared = (match.base, match.other)
    used = {side.run for side in compared if side.run}
    floating = [side.environment for side in compared if side.run and not split(side.environment)[1]]
    unread = set(used)
    for run in itertools.takewhile(lambda _: unread, runs):
        unread.discard(run.run)
        sides = [run.sides[name] for name in floating]
        if run.run in used or not any(side.kinds for side in sides):
            continue
        lacking = grouped((_why_none(side), side.environment) for side in sides if not side.measured)
        reasons = [f"it has no result of {' and '.join(names)}{why}" for why, names in lacking.items()]
        yield PassedOver(run=run.run, reason="; ".join(reasons) or "its sides have no measured test in common")


def _why_none(side: Side) -> str:
    """Return why a side of a run has no result, in parentheses after a space; empty if that is not known."""
    reasons = list(dict.fromkeys(f"{code}: {reason}" for code, reason in side.ends.values()))
    more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f" ({reasons[0]}{more})" if reasons else ""
