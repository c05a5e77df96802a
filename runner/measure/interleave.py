"""Measure the cells of a turn set: all build at the same time; first calls, warm-ups and turns are made one by one.

Each child stops before and after the first call of its program, when it is verified, when it has warmed up, before each
turn, and after its last sample (``harness.link.STAGES``). So one process computes at a time while anything is timed,
and several compute while nothing is: building and verifying take longer than the samples. After the warm-ups, each
child gets the plan of its turns (``harness.turn_plan``), so that the turns of cells that are compared hold the same
calls.
"""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from runner.core.model import Cell, Outcome
from runner.core.model.events import Activity
from runner.core.threads import run_concurrently
from runner.harness.link import BUILT, CALLED, FIRST, TIMED, TURN, WARM
from runner.measure import turns
from runner.measure.breakdown import Breakdown
from runner.measure.server_pool import ServerPool

Ask = Callable[..., Outcome | None]


def measure_in_turns(
    servers: ServerPool, ask: Ask, cells: list[Cell], draw: Random, breakdown: Breakdown, announce: Callable[[], None]
) -> Iterator[Outcome]:
    """Yield the outcomes of cells that take turns, as they end.

    Args:
        servers: of the environments of the cells, each once.
        ask: starts the measuring of a cell.
        cells: the set, in the order in which they start.
        draw: decides the order of the turns.
        breakdown: gets the seconds of each activity.
        announce: called before the turns start.

    Raises:
        EngineError: the engine is gone.
    """
    side_by_side = servers.limits.side_by_side
    servers.settle()
    with breakdown.during("build"):
        built = list(run_concurrently(lambda cell: ask(cell, turns=True), cells, side_by_side))
    yield from (outcome for _, outcome in built if outcome)
    for cell in _shuffled(servers.waiting_at(FIRST), draw):
        yield from _next_stage(servers, cell, breakdown, "build")
    with breakdown.during("build"):
        verified = list(run_concurrently(servers.go_on, servers.waiting_at(CALLED), side_by_side))
    yield from (outcome for _, outcome in verified if outcome)
    announce()
    for cell in _shuffled(servers.waiting_at(BUILT), draw):
        yield from _next_stage(servers, cell, breakdown, "warm-up")
    plans = servers.plans()
    for cell in servers.waiting_at(WARM):
        yield from _next_stage(servers, cell, breakdown, "warm-up", plans.get(cell))
    while waiting := servers.waiting_at(TURN):
        for cell in turns.order(waiting, draw):
            yield from _next_stage(servers, cell, breakdown, "turns")
    with breakdown.during("check"):
        checked = list(run_concurrently(servers.go_on, servers.waiting_at(TIMED), side_by_side))
    yield from (outcome for _, outcome in checked if outcome)


def _shuffled(cells: list[Cell], draw: Random) -> list[Cell]:
    return draw.sample(cells, len(cells))


def _next_stage(
    servers: ServerPool, cell: Cell, breakdown: Breakdown, activity: Activity, plan: Mapping[str, Any] | None = None
) -> Iterator[Outcome]:
    """Let one child compute until it waits again, with the plan of its turns if it waits for one; yield its outcome."""
    servers.settle()
    with breakdown.during(activity):
        outcome = servers.go_on(cell, plan)
    if outcome is not None:
        yield outcome
