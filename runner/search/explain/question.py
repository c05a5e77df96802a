"""The question of an explanation: what the user cell_text, the two releases, and the settings of its runs."""

from dataclasses import dataclass, replace
from pathlib import Path

from runner.backends.lock_file import read_lock
from runner.core.errors import Problem, ProvisionError, UsageError
from runner.core.machine import cpu_flags
from runner.core.metrics import TIME, named
from runner.core.model import device_id
from runner.releases.candidates import exact_release
from runner.search.bisect.model_cell import only_cell, with_named_model
from runner.search.bisect.question import refuse_unmeasured, settings_of, split_cell
from runner.search.explain.candidates import Candidate, candidates
from runner.search.explain.packages import End
from runner.search.explain.state import ExplainQuestion
from runner.session.context import Context, setup
from runner.session.options import Options
from runner.session.typed_variants import typed_threads


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedReleases:
    """What the user cell_text beside the options of ``runner run``.

    Attributes:
        good: an environment or a release, without the change.
        bad: the same with it.
        metric: the name of the metric that changed.
        keep: keep what is built for it.
    """

    good: str
    bad: str
    metric: str = TIME
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainCase:
    """What is explained.

    Attributes:
        context: backend, devices and settings, with both releases in its matrix.
        question: what the user typed.
        good: the release without the change; ``bad`` with it.
        candidates: what may take the change back.
        notes: what is not tried, as sentences.
    """

    context: Context
    question: ExplainQuestion
    good: End
    bad: End
    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...] = ()


def requested(options: Options, typed: TypedReleases) -> ExplainCase:
    """Return the case of what the user cell_text.

    Raises:
        UsageError: the test, a release, the metric or an option does not fit.
    """
    options = with_named_model(options)
    _check(options, typed)
    metric = named(typed.metric)
    if metric.exact:
        message = f"{metric.title} is the same in every round, and explain measures rounds"
        raise UsageError(Problem(message, hint="choose another --metric"))
    cell_text = next(filter(None, options.selectors or ()), "")
    options = replace(options, selectors=[typed.bad, typed.good])
    if cell_text:
        cell = split_cell(cell_text)[1]
    else:
        of_both = setup(options)
        cell = only_cell(replace(options, selectors=None), of_both.matrix, of_both.request.environments)
        options = replace(options, phase=None)
    context = setup(options, cells=[cell])
    refuse_unmeasured(metric, context.request.device, cell)
    if len(context.request.environments) != 2:
        message = f"{typed.good} and {typed.bad} name {len(context.request.environments)} environments"
        raise UsageError(Problem(message, hint="name two, such as torch==2.1.2 torch==2.8.0"))
    bad, good = (_end(context, name) for name in context.request.environments)
    if good.environment.framework != bad.environment.framework:
        message = f"{good.name} has {good.environment.framework}, and {bad.name} has {bad.environment.framework}"
        raise UsageError(Problem(message, hint="name two releases of one framework"))
    question = ExplainQuestion(
        cell=cell,
        good=typed.good,
        bad=typed.bad,
        device=device_id(*context.gpus),
        backend=context.backend.name,
        metric=metric.name,
        settings={**settings_of(context), **({"env": sorted(options.env)} if options.env else {})},
    )
    tried = tuple(candidates(good, bad, context.request.device, cpu_flags()))
    notes = tuple(f"{end.name} has no lock, so that no package is tried" for end in (good, bad) if end.lock is None)
    return ExplainCase(context=context, question=question, good=good, bad=bad, candidates=tried, notes=notes)


def _check(options: Options, typed: TypedReleases) -> None:
    """Raise UsageError where an explanation is not possible with the options."""
    if not (typed.good and typed.bad):
        raise UsageError(Problem("explain takes two releases", hint="runner explain RELEASE RELEASE MODEL"))
    if not (options.model or any(options.selectors or ())):
        raise UsageError(Problem("explain takes a test, or a network", hint="runner explain RELEASE RELEASE MODEL"))
    if options.backend == "host":
        message = "explain builds environments, and the backend host builds none"
        raise UsageError(Problem(message, hint="use venv or docker"))
    if len(typed_threads(options)) > 1:
        hint = "explain with each count by itself: --threads 1, then --threads 4"
        raise UsageError(Problem("explain compares two releases, with one thread count", hint=hint))


def _end(context: Context, name: str) -> End:
    """Return a release with its environment and lock."""
    matrix, settings = context.matrix, context.settings
    environment, image = matrix.environments[name], matrix.image_of(name)
    device = context.request.device
    variant = environment.variant(device)
    path = settings.locks.get(image) or (settings.matrix / variant.lock if variant and variant.lock else None)
    release = exact_release(environment, device, settings.matrix)
    return End(name=name, environment=environment, release=release, lock=_readable(path))


def _readable(path: Path | None) -> Path | None:
    """Return the path of a lock; None if the environment has no lock, or if it cannot be read."""
    try:
        return path if path and read_lock(path) else None
    except ProvisionError:
        return None
