"""What measuring memory costs a round, and whether the times of steps depend on it.

The same cells are measured by two harnesses in turns: by ours, which counts the time that it spends on memory, and by
one that measures no memory. A round has new servers, as in a run.
"""

import math
import random
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from benchmarks.environments import nothing, ready
from benchmarks.equal_sides import SECONDS, Bench, shuffled, took
from benchmarks.table import Row
from runner.analysis.model import log_ratio
from runner.core.locks import exclusive
from runner.core.model import Cell
from runner.measure.session import Session
from runner.session.options import Options
from runner.stats import intervals as stats

CELLS = tuple(
    f"torch-2.x/{slug}/rnn-step/lstm-b32-h128/{phase}/fp32"
    for slug, phase in (("nn-lstm", "forward"), ("nn-lstm", "train"), ("lstm-cell-basic", "train"))
)
FIRST, MAX_ROUNDS = 10, 60
COST_TARGET = 0.01
TIME_TARGET = 0.005
COST = "wait_seconds"  # a fact that no cell on a CPU has
COUNTED = f"""

import time

DEPTH, SPENT = [], [0.0]


def counted(function):
    def call(*values):
        DEPTH.append(time.perf_counter())
        try:
            return function(*values)
        finally:
            begin = DEPTH.pop()
            if not DEPTH:
                SPENT[0] += time.perf_counter() - begin

    return call


def with_cost(self, facts=own_memory.OwnMemory.facts):
    return dict(facts(self), {COST}=SPENT[0])


for kind, names in ((own_memory.OwnMemory, ("begin", "end")), (MemoryGrowth, ("before_turn", "facts"))):
    for name in ("__init__",) + names:
        setattr(kind, name, counted(getattr(kind, name)))
own_memory.OwnMemory.facts = with_cost
"""
"""Put behind ``memory_growth.py``: a record gets the seconds that its process has spent on memory, under COST."""
NO_MEMORY = """

class OwnMemory(object):
    def begin(self):
        pass

    def end(self, stage):
        pass

    def facts(self):
        return {}
"""
NO_GROWTH = """

class MemoryGrowth(object):
    def before_turn(self):
        pass

    def facts(self, times):
        return {}
"""
ADDED: Mapping[str, Mapping[str, str]] = {
    "base": {"own_memory.py": NO_MEMORY, "memory_growth.py": NO_GROWTH},
    "other": {"memory_growth.py": COUNTED},
}


class Turn(NamedTuple):
    """One cell in one round.

    Attributes:
        log: the logarithm of the time of a step with memory over that without.
        cost: seconds that were spent on memory.
        seconds: of the round for one side: half of what both sides took.
        step: seconds of a step without memory.
    """

    log: float
    cost: float
    seconds: float
    step: float


def rows() -> Iterator[Row]:
    """Give the share of a round that is spent on memory, and the ratio of times with it to times without."""
    bench = Bench(ready(CELLS, Options(threads="1")), ADDED, SECONDS)
    with exclusive(bench.ready.setup.settings.cache / "measuring-cpu.lock", nothing):
        rounds, end = _until_known(bench)
    turns = [turn for of_round in rounds for turn in of_round]
    cost, seconds = (statistics.median(getattr(turn, name) for turn in turns) for name in ("cost", "seconds"))
    share = sum(turn.cost for turn in turns) / sum(turn.seconds for turn in turns)
    ours = f"{1e3 * cost:.1f} ms of {1e3 * seconds:.0f} ms"
    figure, target = "measuring the memory of a cell, of its round", f"{COST_TARGET:.0%}"
    yield Row(figure, ours, "", f"{share:.2%}", target, share < COST_TARGET)
    low, high = math.expm1(float(end.low[0])), math.expm1(float(end.high[0]))
    step = statistics.median(turn.step for turn in turns)
    yield Row(
        "a step while memory is measured",
        "",
        f"{1e3 * step:.3f} ms without, {len(rounds)} rounds of {len(CELLS)} cells",
        f"{math.exp(float(end.estimate[0])):.4f} [{1 + low:.4f}, {1 + high:.4f}]",
        f"within {TIME_TARGET:.1%}",
        max(-low, high) <= TIME_TARGET,
    )


def _until_known(bench: Bench) -> tuple[list[list[Turn]], stats.Interval]:
    """Measure until the interval of the ratio is within the target, at most MAX_ROUNDS; return rounds and interval."""
    at, chance = stats.looks(FIRST, MAX_ROUNDS), random.Random(0)
    rounds: list[list[Turn]] = []
    while True:
        rounds.append(_round(bench, chance, already_verified=bool(rounds)))
        if len(rounds) in at:
            logs = np.array([statistics.mean(turn.log for turn in of_round) for of_round in rounds])
            interval = stats.interval(stats.paired(logs), stats.level(len(logs), at, 1 - stats.CONFIDENCE))
            end = stats.Interval(*map(np.atleast_1d, interval))
            if len(rounds) == MAX_ROUNDS or max(-end.low[0], end.high[0]) <= math.log1p(TIME_TARGET):
                return rounds, end


def _round(bench: Bench, chance: random.Random, *, already_verified: bool) -> list[Turn]:
    """Measure each cell on both sides, which take turns, on new servers."""
    sides = {"base": bench.server("base"), "other": bench.server("other")}
    try:
        return [
            _turn(bench, sides, cell, chance, already_verified=already_verified)
            for cell in shuffled(bench.cells, chance)
        ]
    finally:
        for session in sides.values():
            session.close()


def _turn(
    bench: Bench, sides: Mapping[str, Session], cell: Cell, chance: random.Random, *, already_verified: bool
) -> Turn:
    begin = time.perf_counter()
    replies = bench.in_turns(sides, cell, chance, already_verified=already_verified)
    seconds = (time.perf_counter() - begin) / 2
    rounds = {side: took(cell, sides[side], reply) for side, reply in replies.items()}
    return Turn(log_ratio(rounds["base"], rounds["other"]), replies["other"][COST], seconds, rounds["base"][0])
