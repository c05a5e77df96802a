"""Removes the environments that a search has built for itself."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from runner.backends.removal import leftovers_of, remove
from runner.core.model import Provisioned
from runner.matrix import Environment
from runner.plan.specs import specs
from runner.session.context import Context


def removed(
    context: Context, name: str, environment: Environment, lock: Path, reason: str, note: Callable[[str], object]
) -> bool:
    """Remove an environment that a search has built; return whether it is gone.

    Args:
        context: backend, device and cache.
        name: its id.
        environment: its entry.
        lock: what it was built from.
        reason: what lists of leftovers say of it.
        note: takes a sentence where it is kept, or cannot be removed.
    """
    matrix = context.matrix.model_copy(update={"environments": {name: environment}})
    (spec,), _ = specs(matrix, [name], context.request.device, context.settings.matrix)
    spec = replace(spec, lock=lock)
    if name not in context.backend.survey([spec]).cached:
        return True
    ready: Provisioned = context.backend.provision(spec, lambda _: None)
    if others := context.backend.others_need(ready):
        note(f"{name} is kept: {others[0]} uses it, too")
        return True
    kept = remove(leftovers_of(context.backend.name, ready, context.settings.cache, reason))
    for leftover, why in kept:
        note(f"{leftover.name} cannot be removed: {why}; `runner clean` does so later")
    return not kept
