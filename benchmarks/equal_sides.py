"""Real pairs whose truth is known: an environment against itself, and against itself with a wait planted in each step.

``python -m benchmarks.equal_sides --pairs 400 --control`` measures pairs of equal sides on two servers, in turns, and
as controls one after the other in each round, and all rounds of one side before the other's. ``--planted 5`` makes the
other side 5 % slower. Prints how many were called different, with Wilson's 95 % intervals, and how the ratios of as
many rounds spread. Verdicts are those of the rule that ships, each pair a table of its own. Each side computes on one
thread, so ``--lanes 2`` keeps two CPUs busy, and each lane is the other's noise.
"""

import argparse
import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, get_args

import numpy as np
from scipy.stats import binomtest

from benchmarks.changed_harness import packed
from benchmarks.environments import Ready, nothing, ready, request
from benchmarks.settling import channel
from runner.analysis.model import MIN_ROUNDS, Round, TurnCalls, TurnMedians, log_ratio
from runner.analysis.tables import turn_medians
from runner.core.locks import exclusive
from runner.core.model import Cell, Process, Provisioned
from runner.harness import turn_plan
from runner.harness.link import BUILT, CALLED, FIRST, WARM
from runner.measure.references import References
from runner.measure.session import Session
from runner.session.options import Options
from runner.stats import intervals as stats

CELLS = [
    f"torch-1.12/{slug}/rnn-step/{kind}-b32-h128/forward/fp32"
    for kind in ("lstm", "rnn", "gru")
    for slug in (f"{kind}-cell-basic", f"{kind}-cell-fused", f"nn-{kind}")
]
SECONDS = 0.25  # of samples of each side in a round, as in the quick preset
EARLY = 5  # rounds of the control, and of those in turns whose spread is laid beside it
WAIT = """

def measure(call, synchronize, clock, seconds, *others, _measure=measure, **named):
    for _ in range(3):
        call()
    synchronize()
    begin = clock()
    for _ in range(5):
        call()
    synchronize()
    pause = {share} * (clock() - begin) / 5

    def slower():
        call()
        synchronize()
        end = clock() + pause
        while clock() < end:
            pass

    return _measure(slower, synchronize, clock, seconds, *others, **named)
"""
"""Put behind the harness's timing: a step and a busy wait of a share of what the step took."""


class Pair(NamedTuple):
    """How a pair ended: its verdict, its ratio, its rounds, and the ratio of the first EARLY of them."""

    word: stats.Verdict
    ratio: float
    rounds: int
    early: float


class Bench:
    """Where sides are measured: servers are made anew for each round."""

    def __init__(
        self, prepared: Ready, added: Mapping[str, Mapping[str, str]], budget: float, process: Process = "fork"
    ) -> None:
        """Take an environment that is ready, and what is measured there.

        Args:
            prepared: it has one environment.
            added: side, ``base`` or ``other`` -> what its harness has in addition, see ``changed_harness.packed``.
            budget: seconds a side and round.
            process: where steps are timed, see ``--process``.
        """
        self.budget, self.process = budget, process
        self.ready = prepared
        self.made: Provisioned = prepared.backend.provision(prepared.prepared.specs[0], nothing)
        self.blocks = {cell: block for block in prepared.prepared.plan.blocks for cell in block.cells}
        self.cells = tuple(self.blocks)
        threads = prepared.setup.request.threads
        self.references = References(prepared.setup.settings.cache / "references", threads)
        self.servers = 0
        self.harness = {side: packed(added.get(side, {})) for side in ("base", "other")}

    def server(self, side: str) -> Session:
        """Start a server."""
        self.servers += 1
        session = Session(channel(self.ready, self.made, self.harness[side]), f"{side}#{self.servers}")
        plain, threads = self.process == "plain", self.ready.setup.request.threads
        answer = session.hello(self.made.framework, threads, "cpu", 300.0, load_in_child=plain)
        if answer["status"] != "ok":
            raise SystemExit(answer["reason"])
        return session

    def send(self, session: Session, cell: Cell, *, already_verified: bool, turns: bool = False) -> dict[str, Any]:
        """Ask for a cell once; return the answer, which may be that it waits for its turn."""
        case = dict(self.blocks[cell].spec)
        message = request(self.ready, self.made, cell, self.budget) | {
            "already_verified": already_verified,
            "turns": turns,
            "process": self.process,
        }
        return session.measure(message, lambda: self.references.get(case))

    def median(self, session: Session, cell: Cell, *, already_verified: bool) -> float:
        """Measure a cell once; return the median of its samples in seconds."""
        return took(cell, session, self.send(session, cell, already_verified=already_verified))[0]

    def turn_about(
        self, sides: Mapping[str, Session], cell: Cell, chance: random.Random, *, already_verified: bool
    ) -> float:
        """Measure a cell on both sides, which take turns; return the logarithm of other over base."""
        replies = self.in_turns(sides, cell, chance, already_verified=already_verified)
        rounds = {side: took(cell, sides[side], reply) for side, reply in replies.items()}
        return log_ratio(rounds["base"], rounds["other"])

    def in_turns(
        self, sides: Mapping[str, Session], cell: Cell, chance: random.Random, *, already_verified: bool
    ) -> dict[str, dict[str, Any]]:
        """Measure a cell on both sides, which take turns; return the last answer of each side."""
        sessions = dict(chance.sample(sorted(sides.items()), 2))
        done: set[str] = set()
        replies = {
            side: self._warmed_up(session, cell, already_verified=already_verified)
            for side, session in sessions.items()
        }
        plans = turn_plan.plans([replies[side]["pace"] for side in sessions], self.budget)
        for (side, session), plan in zip(sessions.items(), plans, strict=True):
            replies[side] = session.go_on(600.0, plan)
        while waiting := [side for side in sessions if side not in done]:
            for side in chance.sample(waiting, len(waiting)):
                if replies[side].get("reply") == "turn":
                    replies[side] = sessions[side].go_on(600.0)
                if replies[side].get("reply") != "turn":
                    sessions[side].settle()  # its process is gone
                    done.add(side)
        return replies

    def _warmed_up(self, session: Session, cell: Cell, *, already_verified: bool) -> dict[str, Any]:
        """Build a cell's program and warm it up; return the answer that has its pace."""
        reply = self.send(session, cell, already_verified=already_verified, turns=True)
        while reply.get("stage") in (FIRST, CALLED, BUILT):
            reply = session.go_on(600.0)
        if reply.get("stage") != WARM:
            raise SystemExit(f"{cell.id}: {reply['reason']}")
        return reply

    def in_a_round(
        self, sides: Mapping[str, Session], cell: Cell, chance: random.Random, *, already_verified: bool
    ) -> float:
        """Measure a cell on one side, then on the other, in random order; return the logarithm of other over base."""
        times = {
            side: self.median(sides[side], cell, already_verified=already_verified)
            for side in chance.sample(sorted(sides), 2)
        }
        return math.log(times["other"] / times["base"])


def took(cell: Cell, session: Session, reply: Mapping[str, Any]) -> Round:
    """Return what a cell took, once its process is gone."""
    if reply["status"] != "ok":
        raise SystemExit(f"{cell.id}: {reply['reason']}")
    session.settle()
    counts, seconds = reply.get("turns"), reply["seconds"]
    if not counts:
        return float(statistics.median(seconds)), None
    plan = (reply["batch"], counts[0], len(reply["leads"]) // len(counts), reply["first_call"])
    turns = TurnMedians("", turn_medians(seconds, counts), TurnCalls(np.array(seconds), plan))
    return float(statistics.median(seconds)), turns


Way = Callable[..., float]
"""Takes sides, a cell, chance and ``already_verified``; returns the logarithm of a round's ratio."""


def in_rounds(bench: Bench, way: Way, max_rounds: int, chance: random.Random) -> list[Pair]:
    """Measure each cell on both sides round by round until its verdict falls; return how each ended."""
    logs: dict[Cell, list[float]] = {cell: [] for cell in bench.cells}
    done: dict[Cell, Pair] = {}
    at = stats.looks(MIN_ROUNDS, max_rounds)
    for number in range(1, max_rounds + 1):
        sides = {"base": bench.server("base"), "other": bench.server("other")}
        for cell in shuffled([cell for cell in logs if cell not in done], chance):
            logs[cell].append(way(sides, cell, chance, already_verified=number > 1))
        for session in sides.values():
            session.close()
        if number in at:
            ended = {cell: judged(logs[cell], at) for cell in logs if cell not in done}
            done |= {cell: pair for cell, pair in ended.items() if pair.word != "inconclusive" or number == max_rounds}
        if len(done) == len(logs):
            break
    return list(done.values())


def shuffled(cells: Sequence[Cell], chance: random.Random) -> list[Cell]:
    """Return cells in random order, those of a case together, for a server keeps the reference of one case."""
    cases: dict[str, list[Cell]] = {}
    for cell in chance.sample(cells, len(cells)):
        cases.setdefault(cell.case_id, []).append(cell)
    return [cell for of_case in cases.values() for cell in of_case]


def one_after_the_other(bench: Bench, rounds: int, chance: random.Random) -> list[Pair]:
    """Measure all rounds of one side, then all of the other; return how each cell ended."""
    times: Mapping[str, dict[Cell, list[float]]] = {
        side: {cell: [] for cell in bench.cells} for side in ("base", "other")
    }
    for side, by_cell in times.items():
        for number in range(rounds):
            session = bench.server(side)
            for cell in shuffled(bench.cells, chance):
                by_cell[cell].append(bench.median(session, cell, already_verified=number > 0))
            session.close()
    both = ((times["base"][cell], times["other"][cell]) for cell in bench.cells)
    return [
        judged(
            [math.log(other_seconds / base_seconds) for base_seconds, other_seconds in zip(*pair, strict=True)],
            (rounds,),
        )
        for pair in both
    ]


def judged(logs: Sequence[float], at: tuple[int, ...]) -> Pair:
    """Return what the rounds of a pair say at this look."""
    evidence = stats.paired(np.array(logs))
    interval = stats.interval(evidence, stats.level(evidence.rounds, at, 1 - stats.CONFIDENCE))
    (word,) = stats.verdicts(interval, np.atleast_1d(stats.p_value(evidence, at) <= stats.FALSE_ALARM_LEVEL))
    return Pair(word, math.exp(float(evidence.mean)), len(logs), math.exp(statistics.mean(logs[:EARLY])))


def lines(name: str, pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield what came out, for people."""
    count = len(pairs)
    for word in ("slower", "faster", "same", "inconclusive"):
        had = sum(pair.word == word for pair in pairs)
        ends = binomtest(had, count).proportion_ci(method="wilson")
        yield f"{name}: {word} {had} of {count}, {had / count:.1%} ({ends.low:.1%} to {ends.high:.1%})"
    for which, ratios in (("all", [pair.ratio for pair in pairs]), (f"{EARLY}", [pair.early for pair in pairs])):
        spread, middle = statistics.stdev(map(math.log, ratios)), statistics.median(ratios)
        yield f"{name}: the standard deviation of ratios of {which} rounds {spread:.2%}, their median {middle:.4f}"
    rounds = statistics.mean(pair.rounds for pair in pairs)
    yield f"{name}: {rounds:.1f} rounds on average"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--most", type=int, default=20, help="rounds at most")
    parser.add_argument("--planted", type=float, default=0.0, help="per cent by which the other side is slower")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of samples of each side in a round")
    parser.add_argument("--control", action="store_true", help="two other ways, too")
    parser.add_argument("--lanes", type=int, default=1, help="pairs at work at the same time, a CPU each")
    parser.add_argument("--process", choices=get_args(Process), default="fork", help="where steps are timed")
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--backend", default="auto", help="docker or venv: what has torch-1.12 made")
    given = parser.parse_args()
    prepared = ready(CELLS, Options(threads="1", backend=given.backend))
    added = {"other": {"timing.py": WAIT.format(share=given.planted / 100)}} if given.planted else {}
    turns: list[Pair] = []
    rounds: list[Pair] = []
    after: list[Pair] = []
    ways = {"in turns": turns, "one after the other in a round": rounds, "one side after the other": after}

    def lane(number: int) -> None:
        bench, chance = Bench(prepared, added, given.seconds, given.process), random.Random(f"{given.seed} {number}")
        while len(turns) < given.pairs:
            turns.extend(in_rounds(bench, bench.turn_about, given.most, chance))
            if given.control:
                rounds.extend(in_rounds(bench, bench.in_a_round, EARLY, chance))
                after.extend(one_after_the_other(bench, EARLY, chance))
            print(f"{len(turns)} pairs", flush=True)

    with (
        exclusive(prepared.setup.settings.cache / "measuring-cpu.lock", print),
        ThreadPoolExecutor(given.lanes) as lanes,
    ):
        list(lanes.map(lane, range(given.lanes)))
    for name, pairs in ways.items():
        for line in lines(name, pairs) if pairs else ():
            print(line)


if __name__ == "__main__":
    main()
