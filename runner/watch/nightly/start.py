"""The start of a night: the plan with its bases, and the newest releases of the environments that follow a package."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.core.errors import Problem, UsageError
from runner.core.model import Plan
from runner.core.progress import Progress
from runner.matrix.nightly import base_mistakes
from runner.releases.followed import Followed, current_locks, followed_environments
from runner.session.context import Context
from runner.session.preparation import Prepared, prepare
from runner.watch.nightly import floating

NO_LOCK = "image-unavailable"
"""The code of a cell whose environment has no lock yet, or no image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a night measures.

    Attributes:
        context: backend, devices and settings; its request has the bases.
        prepared: the plan, with the locks that nights use.
        followed: its environments that follow a package.
    """

    context: Context
    prepared: Prepared
    followed: tuple[Followed, ...]

    def updated(self, progress: Progress) -> tuple["Start", list[str]]:
        """Return the night with the newest releases, and sentences about them; see ``floating.update``.

        Raises:
            EngineError: the engine stopped answering.
        """
        locks, notes = floating.update(self.context, self.followed, progress)
        if locks == self.context.settings.locks:
            return self, notes
        return planned(with_locks(self.context, locks), self.followed), notes


def with_bases(context: Context, bases: Sequence[str] | None) -> Context:
    """Return a context whose plan measures the bases in turns with all others.

    Args:
        context: as the options say.
        bases: ids of environments; None takes those of the matrix.

    Raises:
        UsageError: an environment cannot be a base.
    """
    matrix, request = context.matrix, context.request
    if request.backend == "host":
        if bases:
            raise UsageError(Problem("--backend host has no base: it measures one environment", hint="remove --base"))
        return context
    names = matrix.nightly.base if bases is None else tuple(dict.fromkeys(bases))
    problems = [Problem(message, hint=hint) for _, message, hint in base_mistakes(matrix, names)]
    if problems:
        raise UsageError(*problems)
    selected = {matrix.environments[name].framework for name in request.environments}
    needed = tuple(name for name in names if matrix.environments[name].framework in selected)
    environments = (*needed, *(name for name in request.environments if name not in needed))
    return replace(context, request=replace(request, bases=needed, environments=environments))


def start(context: Context) -> Start:
    """Return the night with the releases that the last night used.

    Raises:
        RunnerError: the file of the current releases is damaged; or whatever planning raises.
    """
    settings, request = context.settings, context.request
    names = () if request.backend == "host" else request.environments
    followed = followed_environments(context.matrix, names, request.device, settings.matrix, settings.reports)
    context = with_locks(context, current_locks(followed))
    night = planned(context, followed)
    runnable = _runnable(night.prepared.plan)
    return replace(night, followed=tuple(each for each in followed if each.environment in runnable))


def planned(context: Context, followed: tuple[Followed, ...]) -> Start:
    """Return a night with its plan."""
    prepared = prepare(context.matrix, context.request, context.backend, context.settings, context.gpu)
    return Start(context=context, prepared=prepared, followed=followed)


def with_locks(context: Context, locks: dict[str, Path]) -> Context:
    """Return a context that uses other locks than those of the matrix for some environments."""
    return replace(context, settings=replace(context.settings, locks={**context.settings.locks, **locks}))


def _runnable(plan: Plan) -> frozenset[str]:
    """Return the environments of which a cell runs, or would run if the environment had a lock."""
    return frozenset(
        planned.cell.environment for planned in plan.cells if planned.skip is None or planned.skip.code == NO_LOCK
    )
