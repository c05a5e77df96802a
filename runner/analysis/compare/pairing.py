"""What one run knows of one environment, and which cells of two environments belong together."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import pandas as pd

from runner.analysis.model import COMPARABLE, Dataset, Turns
from runner.catalog.published import PHASE, Figure
from runner.core.model import Cell


class Pair(NamedTuple):
    """Two cells of one case, phase and precision."""

    base: Cell
    other: Cell


@dataclass(frozen=True, slots=True)
class Measured:
    """The good rounds of one cell.

    Attributes:
        medians: round -> median of its samples in seconds; ``seconds`` is the median of those. A published figure has
            the seconds alone.
        servers: round -> the server it was measured on.
        turns: round -> the medians of its turns; nothing of a round in which it took none.
        facts: name -> the values it had.
    """

    medians: Mapping[int, float]
    seconds: float
    facts: Mapping[str, frozenset[str]]
    servers: Mapping[int, str] = field(default_factory=dict)
    turns: Mapping[int, Turns] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One environment in one run, or in one publication.

    Attributes:
        run: its id; empty for a publication.
        framework: empty where it is not known.
        kinds: every cell that was asked for or measured -> its implementation's kind.
        measured: the cells with a good record.
        ends: every other cell -> (failure class or skip code, sentence).
        skipped: the cells that were never to run.
        figures: what was published of each measured cell; empty for a run.
        looks: the numbers of rounds at which verdicts were taken, or could have been; empty for a publication.
    """

    environment: str
    run: str = ""
    framework: str = ""
    kinds: Mapping[Cell, str] = field(default_factory=dict)
    measured: Mapping[Cell, Measured] = field(default_factory=dict)
    ends: Mapping[Cell, tuple[str, str]] = field(default_factory=dict)
    skipped: frozenset[Cell] = frozenset()
    figures: Mapping[Cell, Figure] = field(default_factory=dict)
    looks: tuple[int, ...] = ()

    def names(self, fact: str) -> str:
        """Return the values of a fact over all measured cells, for people."""
        return ", ".join(sorted({name for one in self.measured.values() for name in one.facts[fact]}))


def environment_side(results: Dataset, environment: str) -> Side:
    """Return what a run knows of an environment; empty tables where it knows nothing."""
    rounds = results.rounds[results.rounds["environment"] == environment]
    failures = results.failures[results.failures["environment"] == environment]
    planned = [one for one in results.plan if one.cell.environment == environment]
    measured = _measured(rounds)
    kinds = {one.cell: one.kind for one in planned}
    kinds.update({cell: kind for cell, kind in _by_cell(failures, "kind") if kind or cell not in kinds})
    kinds.update({cell: kind for cell, kind in _by_cell(rounds, "kind") if kind or cell not in kinds})
    ends = {one.cell: (one.code, one.reason) for one in planned if one.verdict == "skip"}
    skipped = frozenset(ends)
    unfinished = ("unfinished", f"run {results.run} ended before it was measured")
    ends.update({one.cell: unfinished for one in planned if one.verdict == "run"})
    words = zip(failures["failure"].tolist(), failures["reason"].tolist(), strict=True)
    ends.update(zip(_cells(failures), words, strict=True))
    frameworks = [*rounds["framework"].tolist()[:1], results.environments.get(environment, {}).get("framework", "")]
    frameworks += [one.framework for one in planned]
    return Side(
        run=results.run,
        environment=environment,
        framework=next(filter(None, frameworks), ""),
        kinds=kinds,
        measured=measured,
        ends={cell: end for cell, end in ends.items() if cell not in measured},
        skipped=skipped,
        looks=results.looks,
    )


def _cells(frame: pd.DataFrame) -> list[Cell]:
    names = ("environment", "implementation", "workload", "case", "phase", "precision")
    columns = [frame[name].tolist() for name in names]
    known: dict[tuple[str, ...], Cell] = {}
    found = []
    for words in zip(*columns, strict=True):
        if words not in known:
            known[words] = Cell(**dict(zip(names, words, strict=True)))
        found.append(known[words])
    return found


def _by_cell(frame: pd.DataFrame, column: str) -> Iterable[tuple[Cell, str]]:
    return zip(_cells(frame), frame[column].tolist(), strict=True)


def _measured(rounds: pd.DataFrame) -> dict[Cell, Measured]:
    medians: dict[Cell, dict[int, float]] = defaultdict(dict)
    servers: dict[Cell, dict[int, str]] = defaultdict(dict)
    turns: dict[Cell, dict[int, Turns]] = defaultdict(dict)
    facts: dict[Cell, set[tuple[str, ...]]] = defaultdict(set)
    known = zip(*(rounds[name].tolist() for name in COMPARABLE), strict=True)
    numbers = zip(*(rounds[name].tolist() for name in ("round", "seconds", "server", "turns")), strict=True)
    for cell, values, (number, seconds, server, taken) in zip(_cells(rounds), known, numbers, strict=True):
        medians[cell][number] = seconds
        servers[cell][number] = server
        if taken is not None:
            turns[cell][number] = taken
        facts[cell].add(values)
    alike = {values: _values(values) for values in {frozenset(values) for values in facts.values()}}
    return {
        cell: Measured(found, median(found.values()), alike[frozenset(facts[cell])], servers[cell], turns[cell])
        for cell, found in medians.items()
    }


def _values(facts: frozenset[tuple[str, ...]]) -> dict[str, frozenset[str]]:
    """Return the values of each fact, of what each round had of all of them."""
    return {name: frozenset(values) for name, values in zip(COMPARABLE, zip(*facts, strict=True), strict=True)}


def pairs(base: Side, other: Side, *, best: bool) -> list[Pair]:
    """Return which cells are to be compared: those of equal slug, equal kind across frameworks, or the fastest.

    A pair of which one cell was never to run is left out, where its environment runs others: the plan says why. Where
    all of an environment was skipped, its pairs are kept, so that the comparison names the reason. A published cell
    belongs to both protocols.
    """
    both = bool(base.figures) != bool(other.figures)
    of_base, of_other = (_by_work(one, both=both and bool(one.figures)) for one in (base, other))
    shared = {cell.implementation for cell in base.kinds} & {cell.implementation for cell in other.kinds}
    known = bool(base.framework and other.framework)
    same = base.framework == other.framework if known else bool(shared)
    found = []
    for work in of_base:
        if best:
            of_both = of_base[work], of_other.get(work)
            candidates = [Pair(_fastest(base, of_both[0]), _fastest(other, of_both[1]))] if of_both[1] else []
        else:
            candidates = [
                Pair(one, two)
                for one in of_base[work]
                for two in of_other.get(work, ())
                if (one.implementation == two.implementation if same else base.kinds[one] == other.kinds[two] != "")
            ]
        found += [pair for pair in candidates if not (_dropped(base, pair.base) or _dropped(other, pair.other))]
    return found


def _dropped(one: Side, cell: Cell) -> bool:
    """Say whether a cell was skipped though its environment runs others."""
    return cell in one.skipped and len(one.skipped) < len(one.kinds)


def _by_work(one: Side, *, both: bool) -> dict[tuple[str, str, str], list[Cell]]:
    """Return the cells by case, phase and precision; with ``both``, each cell under the phase of either protocol."""
    found: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for cell in one.kinds:
        for phase in (cell.phase, cell.phase + PHASE) if both else (cell.phase,):
            found[cell.case_id, phase, cell.precision].append(cell)
    return found


def _fastest(one: Side, cells: list[Cell]) -> Cell:
    """Return the fastest measured cell, or the first where none was measured, one that was to run before others."""
    measured = [cell for cell in cells if cell in one.measured]
    if measured:
        return min(measured, key=lambda cell: one.measured[cell].seconds)
    return min(cells, key=lambda cell: cell in one.skipped)
