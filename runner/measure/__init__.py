"""Measure the blocks of a plan: all environments of a block alive at once, their cells in turns, in random order."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from runner.backends import Backend
from runner.errors import RunnerError
from runner.measure.references import References
from runner.measure.servers import Servers
from runner.model import Block, Cell, Limits, Outcome, Plan, Provisioned

__all__ = ["measure"]

FLEETING = ("crash",)  # failures that may not come again; a cell that failed otherwise is not asked again


def measure(
    plan: Plan,
    ready: Mapping[str, Provisioned],
    backend: Backend,
    limits: Limits,
    references: References,
    say: Callable[[str], None],
) -> Iterator[Outcome]:
    """Yield one outcome for each cell and round, in the order in which they were measured.

    Args:
        plan: what to measure and how.
        ready: the environments that could be made; cells of others are left out.
        backend: starts servers.
        limits: memory and device of each server.
        references: the float64 truth of each case.
        say: told what is about to happen.
    """
    servers = Servers(plan, ready, backend, limits, say)
    order = random.Random(plan.measurement.seed)
    try:
        for block in plan.blocks:
            present = tuple(name for name in block.environments if name in ready)
            if not present:
                continue
            say(f"{block.case_id}: computing the reference")
            try:
                truth = references.get(block.spec)
            except RunnerError as error:
                yield from _without_reference(block, present, ready, str(error.problems[0].message))
                continue
            asked = _Asked(servers, _request(block, plan, limits, backend), truth)
            asked.common["key"] = references.key(block.spec)
            first = 1
            for group in servers.groups(present):
                cells = [cell for cell in block.cells if cell.environment in group]
                numbers = range(first, first + plan.measurement.rounds)
                yield from asked.rounds(cells, numbers, order)
                first = numbers.stop
    finally:
        servers.close()


def _without_reference(
    block: Block, present: Sequence[str], ready: Mapping[str, Provisioned], reason: str
) -> Iterator[Outcome]:
    """Yield one failure for each cell of a block that cannot be checked."""
    for cell in block.cells:
        if cell.environment in present:
            reply = {"status": "failed", "class": "crash", "reason": reason}
            yield Outcome(cell=cell, round=1, reply=reply, facts={}, ready=ready[cell.environment])


def _request(block: Block, plan: Plan, limits: Limits, backend: Backend) -> dict[str, Any]:
    """Return the part of a measuring request that the cells of a block share."""
    return {
        "case": dict(block.spec),
        "device": block.device,
        "seconds": plan.measurement.seconds,
        "timeout": plan.measurement.timeout,
        "memory": None if backend.limits_memory else limits.memory,
    }


class _Asked:
    """One block's cells, asked round after round; a cell that failed for good is not asked again."""

    def __init__(self, servers: Servers, common: dict[str, Any], truth: dict[str, Any]) -> None:
        self.servers = servers
        self.common = common
        self.truth = truth
        self.given_up: set[Cell] = set()

    def rounds(self, cells: Sequence[Cell], numbers: range, order: random.Random) -> Iterator[Outcome]:
        """Yield every cell once a round, in an order drawn anew each round."""
        for number in numbers:
            self.servers.next_round({cell.environment for cell in cells})
            for cell in order.sample(cells, len(cells)):
                if cell in self.given_up:
                    continue
                outcome = self.servers.ask(cell, number, self.common, lambda: self.truth)
                if outcome.reply.get("status") != "ok" and outcome.reply.get("class") not in FLEETING:
                    self.given_up.add(cell)
                yield outcome
