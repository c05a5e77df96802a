"""Which releases a bisect names, and what it takes, in simulated searches: ``python -m benchmarks.bisects``.

Each simulated release is faster or slower than the others by a fixed share, as builds and memory layouts make it. The
shares are normal with the standard deviation ``tau``, and are the same in all rounds.
The search, its comparisons and their verdicts are the program's own; only the log ratios of rounds are drawn, normal
with a standard deviation. "By two comparisons alone" is what a search names before it looks at how much releases
scatter.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.noise import Floats
from benchmarks.stopping import measured
from runner.search.bisect.measured_step import OUTCOMES
from runner.search.bisect.measuring import MAX_ROUNDS
from runner.search.bisect.state import SearchStep
from runner.search.bisect.walk import Walk
from runner.stats import intervals
from runner.stats.bisection import LocatedChange, PositionPair, Search, bisection, every_neighbour

RELEASES = 33
STEP, CREEP = 0.05, 0.10
TAUS = (0.0, 0.01, 0.02, 0.03)
NOISES = (0.02, 0.04)


@dataclass(frozen=True, slots=True)
class Truth:
    """Log times of releases, and the position after their only step; 0 without a step."""

    levels: Floats
    after: int


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search named: by two comparisons alone, and with the scatter of releases; and how many comparisons."""

    alone: tuple[int, ...]
    named: tuple[int, ...]
    comparisons: int


def truth(draw: np.random.Generator, kind: str, tau: float, releases: int = RELEASES) -> Truth:
    """Return releases between which nothing happened (``equal``), a ``step``, or a ``creep``."""
    levels, after = draw.normal(0, tau, releases), 0
    if kind == "step":
        after = int(draw.integers(1, releases))
        levels[after:] += np.log1p(STEP)
    if kind == "creep":
        levels += np.log1p(CREEP) * np.linspace(0, 1, releases)
    return Truth(levels, after)


def searched(draw: np.random.Generator, of: Truth, sd: float, *, every: bool = False) -> Searched:
    """Return what a search among releases names."""
    names, at = [str(position) for position in range(len(of.levels))], intervals.looks(3, MAX_ROUNDS)

    def take(pair: PositionPair) -> SearchStep:
        rounds = draw.normal(of.levels[pair.other] - of.levels[pair.base], sd, (1, at[-1]))
        ended = measured(rounds, at)
        outcome = OUTCOMES.get(str(ended.words[0]), "open")
        ratio = float(np.exp(ended.intervals.estimate[0]))
        return SearchStep(base=names[pair.base], other=names[pair.other], outcome=outcome, ratio=ratio)

    walk = Walk(names=names, every=every, limit=None, take=take)
    result = walk.result()
    return Searched(_named(_alone(walk, every=every)), _named(result.answer.changes), len(walk.steps))


def _alone(walk: Walk, *, every: bool) -> Sequence[LocatedChange]:
    """Return what the verdicts of a search say by themselves."""
    search: Search = (every_neighbour if every else bisection)(len(walk.names))
    try:
        next(search)
        for step in walk.steps:
            search.send(step.outcome)
    except StopIteration as end:
        changes: Sequence[LocatedChange] = end.value.changes
        return changes
    return ()


def _named(changes: Sequence[LocatedChange]) -> tuple[int, ...]:
    return tuple(change.after for change in changes if change.is_named)


def lines(seed: int, searches: int) -> Iterator[str]:
    """Yield the rows of the table; each has its own random numbers."""
    yield (
        "| what happened | tau | sd of a round | comparisons, at most | by two comparisons alone: right, a wrong one "
        "| with the scatter: right, a wrong one |"
    )
    yield "|---" * 6 + "|"
    kinds = [("equal", "nothing"), ("step", f"a step of {STEP:.0%}"), ("creep", f"gradually {CREEP:.0%}")]
    for kind, title in kinds:
        for every in (False, True) if kind == "equal" else (False,):
            for tau in TAUS:
                for sd in NOISES:
                    draw = np.random.default_rng([seed, len(title), every, int(100 * tau), int(100 * sd)])
                    truths = [truth(draw, kind, tau) for _ in range(searches // 10 if every else searches)]
                    results = [(of, searched(draw, of, sd, every=every)) for of in truths]
                    shares = []
                    for names in ("alone", "named"):
                        pairs = [(of.after, getattr(each, names)) for of, each in results]
                        right = np.mean([after in named for after, named in pairs])
                        wrong = np.mean([bool(set(named) - {after}) for after, named in pairs])
                        shares.append(f"{right:.0%}, {wrong:.0%}")
                    counts = [each.comparisons for _, each in results]
                    taken = f"{np.mean(counts):.1f}, {max(counts)}"
                    name = f"{title}, `--all`" if every else title
                    yield (f"| {name} | {tau:.0%} | {sd:.0%} | {taken} | {' | '.join(shares)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for line in lines(given.seed, given.searches):
        print(line, flush=True)
