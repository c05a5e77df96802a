"""Ask for the profiles of cells, after the rounds of a run, in separate children whose times never count.

One environment after the other, so that no server but the one that is asked is alive, and that of the base of a user's
network. A profile that fails is a sentence in its document: it costs the run nothing else.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from runner.core.errors import EngineError, RunnerError
from runner.core.model import Block, Cell, Outcome, Plan, ProfileTaken
from runner.core.model.cells import is_called
from runner.harness.cases import is_model
from runner.measure.models import Models
from runner.measure.references import References
from runner.measure.server_pool import ServerPool

SECONDS = 2.0
"""For the steps of a profile and its table, beside what it takes to build the program."""
REQUEST = {"op": "profile", "already_verified": True, "check_float64": False}
"""What the request of a profile has besides that of a measurement, whose results the rounds have verified."""


def can_profile(cell: Cell) -> bool:
    """Return whether a cell has steps that a profiler can watch: a compile is one call, and originals are no steps."""
    return is_called(cell.phase)


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
    with contextlib.closing(Models(servers, compares_steps=False)) as models:
        for environment in dict.fromkeys(cell.environment for cell in cells):
            servers.retire_all()
            for block in plan.blocks:
                servers.serve(block)
                request = _request(plan, servers, block)
                of_user = is_model(dict(block.spec))
                ask = _model_ask(models, block, request) if of_user else _ask(servers, references, block, request)
                for cell in block.cells:
                    if cell.environment == environment and cell in cells:
                        yield ProfileTaken(cell, _profile(cell, ask, request["timeout"], remaining))


Ask = Callable[[Cell, Mapping[str, Any]], Outcome | None]
"""Takes a cell and what its request has besides; returns the outcome. Raises RunnerError without a reference."""


def _request(plan: Plan, servers: ServerPool, block: Block) -> dict[str, Any]:
    """Return what the requests of a case share."""
    return {
        "case": dict(block.spec),
        "device": block.device,
        "seconds": SECONDS,
        "timeout": plan.measurement.timeout,
        "memory": None if servers.backend.limits_memory else servers.limits.memory,
    }


def _ask(servers: ServerPool, references: References, block: Block, request: Mapping[str, Any]) -> Ask:
    common = {**request, "key": references.key(block.spec)}
    truth = partial(references.get, block.spec)
    return lambda cell, extra: servers.ask(cell, 0, common, truth, extra=extra)


def _model_ask(models: Models, block: Block, request: Mapping[str, Any]) -> Ask:
    def ask(cell: Cell, extra: Mapping[str, Any]) -> Outcome | None:
        models.make(block, (cell,), request)
        return models.ask(cell, block, 0, request, extra=extra)

    return ask


def _profile(cell: Cell, ask: Ask, timeout: float, remaining: Callable[[], float]) -> Mapping[str, Any]:
    """Return the profile of a cell, with its ``reason`` where it has none."""
    seconds = remaining()
    if seconds <= 0:
        return {"reason": "the budget was spent before it was taken"}
    try:
        outcome = ask(cell, {**REQUEST, "timeout": min(timeout, seconds)})
    except EngineError:
        raise
    except RunnerError as error:  # the reference cannot be computed
        return {"reason": error.problems[0].message}
    assert outcome is not None, "a cell that takes no turns waits for one"
    reply = outcome.reply
    if reply["status"] != "ok":
        return {"reason": f"{reply['class']}: {reply['reason']}"}
    profile = reply.get("profile") or {"reason": "the server sent no profile"}
    return {**profile, "framework_version": outcome.facts.get("version")}
