"""Measure a plan round by round: all environments alive at once, the cells of every case in turns, in random order."""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from runner.core.errors import RunnerError
from runner.core.model import Block, Canary, Cell, Event, Finished, Further, Grouped, Outcome, Past, Plan
from runner.measure import turns
from runner.measure.precompile import Job, compile_ahead, possible
from runner.measure.references import References
from runner.measure.server_pool import Numbers, ServerPool

__all__ = ["Numbers", "ServerPool", "Steering", "given_up", "measure"]

T = TypeVar("T")
Ask = Callable[..., Outcome | None]
FLEETING = (
    "crash",
    "engine",
    "device",
)  # failures that may not come again; a cell that failed otherwise is not asked again


class Steering(NamedTuple):
    """What a measurement tells others, and asks them.

    Attributes:
        say: told what is about to happen.
        wanted: given the number of rounds there are, returns the cells of the next one; none of them ends the run.
            Without it every cell gets the plan's rounds.
        canary: returns the seconds of something that always is the same; asked before each case in a round.
        around: asks for a cell, and may do so again; returns the outcome that counts. Without it, cells take turns.
        rested: returns when the device is fit for the next case in a round.
    """

    say: Callable[[str], None]
    wanted: Callable[[int], Collection[Cell]] | None = None
    canary: Callable[[], float] | None = None
    around: Callable[[Callable[[], Outcome]], Outcome] | None = None
    rested: Callable[[], None] | None = None


def given_up(past: Past) -> frozenset[Cell]:
    """Return the cells that a resumed run does not ask again."""
    return frozenset(cell for cell, failure in past.failed if failure not in FLEETING)


def measure(plan: Plan, servers: ServerPool, references: References, steering: Steering) -> Iterator[Event]:
    """Yield one outcome for each cell and round in the order in which they were measured, and what was decided.

    A round goes through all cases before the next one begins. After each, ``steering`` says which cells get another, up
    to the most that the plan allows. What the plan has in its past is not measured again; a
    case that had a part of a round gets the whole of it again, as the next attempt.

    Args:
        plan: what to measure and how.
        servers: start as they are needed, in the environments that could be made; cells of others are left out. The
            caller ends them; ended from elsewhere, they end the measuring with an error.
        references: the float64 truth of each case.
        steering: is told what is about to happen, and asked what is wanted.

    Raises:
        EngineError: the engine is gone; nothing is yielded for the cell at work.
    """
    names = dict.fromkeys(name for block in plan.blocks for name in block.environments)
    present = tuple(name for name in names if name in servers.ready)
    if not present:
        return
    groups = plan.past.groups.get(servers.limits.device)
    if groups is None:
        groups = servers.groups(present)
        yield Grouped(groups)
    yield from _Rounds(plan, servers, references, steering).all(groups)


class _Rounds:
    """The rounds of a plan, one after the other; a cell that failed for good is not asked again."""

    def __init__(self, plan: Plan, servers: ServerPool, references: References, steering: Steering) -> None:
        self.plan = plan
        self.servers = servers
        self.references = references
        self.memory = None if servers.backend.limits_memory else servers.limits.memory
        self.say, self.next, self.canary, self.around, self.rested = steering
        self.given_up = set(given_up(plan.past))
        self.large: set[Cell] = set()  # cells that ran out of memory once; from then on nobody waits beside them
        self.unknown: set[str] = set()  # cases whose reference cannot be computed
        self.wanted = frozenset(cell for block in plan.blocks for cell in block.cells)

    def all(self, groups: Sequence[Sequence[str]]) -> Iterator[Event]:
        """Yield the events of every round; each group has numbers of its own."""
        measurement = self.plan.measurement
        for number in range(1, (measurement.most if self.next else measurement.rounds) + 1):
            if self.next and number > 1:
                self.wanted = frozenset(self.next(number - 1))
                if not self.wanted:
                    return
                if number > measurement.rounds and number >= self.plan.begun:
                    yield Further(number, self.wanted)
            for place, group in enumerate(groups):
                yield from self.round(group, number + place * measurement.most, first=place == 0)

    def round(self, group: Sequence[str], number: int, *, first: bool) -> Iterator[Event]:
        """Yield the events of one round of one group, if there is anything left of it to measure."""
        left = [(block, cells) for block, cells in self.left(group, number, first=first) if cells]
        alive = {cell.environment for _, cells in left for cell in cells}
        if alive:
            self.servers.next_round(alive)
        first_time = self.plan.measurement.turn(number) == 1 and possible(self.servers)
        jobs = [job for found in left for job in self.jobs(*found)] if first_time else []
        for block, cells in left:
            if jobs:
                built = compile_ahead(self.servers, jobs, cells)
                jobs = [job for job in jobs if job.cell.case_id != block.case_id and job.cell not in built]
            if self.rested:
                self.rested()
            if self.canary:
                self.servers.settle()
                yield Canary(block.case_id, number, self.canary())
            yield from self.block(block, cells, number)
            yield Finished(block.case_id, number)

    def left(self, group: Sequence[str], number: int, *, first: bool) -> Iterator[tuple[Block, list[Cell]]]:
        """Yield the cases whose round is not finished yet, in random order, each with its cells, likewise."""
        for block in self.shuffled(self.plan.blocks, str(number)):
            if block.case_id not in self.unknown and (block.case_id, number) not in self.plan.past.finished:
                order = self.shuffled(block.cells, f"{number}/{block.case_id}")
                mine = self.share(block, group, first=first) & self.wanted - self.given_up
                yield block, [cell for cell in order if cell in mine]

    def jobs(self, block: Block, cells: Sequence[Cell]) -> Iterator[Job]:
        """Yield what it takes to have the cells of a case compiled."""
        common = {**self.request(block), "key": self.references.key(block.spec)}
        for cell in cells:
            yield Job(cell, block.held, {**common, **self.servers.own(cell)}, partial(self.references.get, block.spec))

    def share(self, block: Block, group: Sequence[str], *, first: bool) -> set[Cell]:
        """Return the cells of a block that a group measures: none where the base would be alone in a further group."""
        ready = self.servers.ready
        base = group[0]
        others = {name for name in block.environments if name in ready} - {base}
        if not others & set(group) and (others or not first):
            return set()
        return {cell for cell in block.cells if cell.environment in group and cell.environment in ready}

    def shuffled(self, things: Sequence[T], name: str) -> list[T]:
        """Return things in an order that the seed and a name decide, whatever was measured before."""
        return random.Random(f"{self.plan.measurement.seed}/{name}").sample(things, len(things))

    def block(self, block: Block, cells: Sequence[Cell], number: int) -> Iterator[Outcome]:
        """Yield the outcome of each cell of a case in one round."""
        attempt = self.plan.past.attempts.get((block.case_id, number), 0) + 1
        for outcome in self.outcomes(block, cells, number):
            cell, failure = outcome.cell, outcome.reply.get("class")
            again = failure in FLEETING and cell.environment not in self.servers.broken
            if failure == "oom" and cell not in self.large:  # others waited, and held memory, too
                self.large.add(cell)
                again = self.around is None and block.device == "cpu" and cell.phase in turns.PHASES
            if outcome.reply.get("status") != "ok" and not again:
                self.given_up.add(cell)
            yield replace(outcome, attempt=attempt)

    def outcomes(self, block: Block, cells: Sequence[Cell], number: int) -> Iterator[Outcome]:
        """Ask for each cell, or fail all of them where they cannot be checked."""
        if not self.references.known(block.spec):
            self.say(f"{block.case_id}: computing the reference")
        try:
            truth = self.references.get(block.spec)
        except RunnerError as error:
            self.unknown.add(block.case_id)
            reply = {"status": "failed", "class": "crash", "reason": error.problems[0].message}
            for cell in cells:
                ready = self.servers.ready[cell.environment]
                yield Outcome(cell=cell, round=number, reply=reply, facts={}, ready=ready)
            return
        common = {**self.request(block), "key": self.references.key(block.spec)}
        ask = partial(self.servers.ask, number=number, common=common, truth=lambda: truth)
        for outcome in self.each(block, cells, ask, number):
            if outcome.reply["status"] == "ok":
                self.servers.proven.add(outcome.cell)
            yield outcome

    def each(self, block: Block, cells: Sequence[Cell], ask: Ask, number: int) -> Iterator[Outcome]:
        """Yield the outcomes of steps on a CPU in turns, and of all else one after the other."""
        in_turns = block.device == "cpu" and self.around is None
        steps = {cell for cell in cells if in_turns and cell.phase in turns.PHASES}
        most = self.servers.limits.memory // 2 // max(block.held, 1)
        found = turns.sets((cell for cell in block.cells if cell in steps - self.large), most)
        found += [[cell] for cell in cells if cell in self.large & steps]
        for cell in cells:
            if cell not in steps:
                yield self.alone(partial(ask, cell))
        for place in self.shuffled(range(len(found)), f"{number}/{block.case_id}/sets"):
            yield from self.in_turns(found[place], ask, f"{number}/{place}")

    def alone(self, ask: Callable[[], Outcome | None]) -> Outcome:
        """Return the outcome of a cell that is measured at one go."""

        def asked() -> Outcome:
            outcome = ask()
            assert outcome is not None, "a cell that takes no turns waits for one"
            return outcome

        return self.around(asked) if self.around else asked()

    def in_turns(self, cells: Sequence[Cell], ask: Ask, name: str) -> Iterator[Outcome]:
        """Yield the outcomes of cells that take turns, as they end; their records say who took turns with whom."""
        chance = random.Random(f"{self.plan.measurement.seed}/{cells[0].case_id}/{name}")
        for cell in chance.sample(cells, len(cells)):
            outcome = ask(cell, turns=True)
            if outcome is not None:
                yield outcome
        waiting = self.servers.waiting
        self.say(f"round {name.partition('/')[0]}: {len(waiting)} cells of {cells[0].case_id} take turns")
        while waiting:
            for cell in turns.order(waiting, chance):
                outcome = self.servers.go_on(cell)
                if outcome is not None:
                    own = {"turns_with": name} if "turns" in outcome.reply and len(cells) > 1 else {}
                    yield replace(outcome, reply={**outcome.reply, **own})

    def request(self, block: Block) -> dict[str, Any]:
        """Return the part of a measuring request that the cells of a block share."""
        return {
            "case": dict(block.spec),
            "device": block.device,
            "seconds": self.plan.measurement.seconds,
            "timeout": self.plan.measurement.timeout,
            "memory": self.memory,
        }
