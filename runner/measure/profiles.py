"""Ask for the profiles of cells, after the rounds of a run: in children of their own, of which no sample counts.

One environment after the other, so that no server but the one that is asked is alive. A profile that fails is a sentence
in its document: it costs the run nothing else.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from runner.core.errors import RunnerError
from runner.core.model import Block, Cell, Plan, ProfileTaken
from runner.measure.references import References
from runner.measure.server_pool import ServerPool
from runner.measure.turns import PHASES

SECONDS = 2.0
"""For the steps of a profile and its table, beside what it takes to build the program."""


def can_profile(cell: Cell) -> bool:
    """Return whether a cell has steps that a profiler can watch: a compile is one call, and originals are no steps."""
    return cell.phase in PHASES


def take_profiles(
    plan: Plan,
    servers: ServerPool,
    references: References,
    cells: Collection[Cell],
    remaining: Callable[[], float] = lambda: float("inf"),
) -> Iterator[ProfileTaken]:
    """Yield a profile for each of some cells, or why it has none.

    Args:
        plan: what was measured and how.
        servers: of the environments; those of the last round may be alive.
        references: of the cases.
        cells: those of the plan to profile; they have a good record, and ``can_profile``.
        remaining: returns the seconds of the budget that remain.

    Raises:
        EngineError: the engine is gone.
    """
    memory = None if servers.backend.limits_memory else servers.limits.memory
    for environment in dict.fromkeys(cell.environment for cell in cells):
        servers.retire_all()
        for block in plan.blocks:
            for cell in block.cells:
                if cell.environment == environment and cell in cells:
                    yield ProfileTaken(cell, _profile(_request(plan, block, memory), cell, servers, references, remaining))


def _request(plan: Plan, block: Block, memory: int | None) -> dict[str, Any]:
    """Return what the requests of a case share: that of a measurement whose results were verified before."""
    measurement = plan.measurement
    return {
        "case": dict(block.spec),
        "device": block.device,
        "seconds": SECONDS,
        "timeout": measurement.timeout,
        "memory": memory,
        "op": "profile",
    }


def _profile(
    common: Mapping[str, Any],
    cell: Cell,
    servers: ServerPool,
    references: References,
    remaining: Callable[[], float],
) -> Mapping[str, Any]:
    """Return the profile of a cell, with its ``reason`` where it has none."""
    seconds, case = remaining(), common["case"]
    if seconds <= 0:
        return {"reason": "the budget was spent before it was taken"}
    session = servers.session(cell.environment)
    if session is None:
        return {"reason": str(servers.broken[cell.environment]["reason"])}
    servers.say(f"profile: {cell.id}")
    servers.settle()
    request = {**common, **servers.request_of(cell), "key": references.key(case), "already_verified": True}
    request["timeout"] = min(common["timeout"], seconds)
    try:
        reply = session.measure(request, lambda: references.get(case))
    except RunnerError as error:
        return {"reason": error.problems[0].message}
    servers.check(reply)
    if not session.alive:
        servers.retire(cell.environment)
    if reply["status"] != "ok":
        return {"reason": f"{reply['class']}: {reply['reason']}"}
    return {**reply.get("profile", {"reason": "the server sent no profile"}), "framework_version": session.facts.get("version")}
