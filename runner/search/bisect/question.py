"""The question of a search: what the user typed, and the settings that its steps are measured with."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.analysis.releases import framework_name
from runner.core.errors import Problem, RunnerError, UsageError
from runner.core.metrics import TIME, Metric, named
from runner.core.model import Cell, device_id
from runner.core.model.cells import without_environment
from runner.matrix import load
from runner.releases.named import parse_named
from runner.search.bisect.model_cell import cell_of_model, environment_of_model, with_named_model, without_template
from runner.search.bisect.package_ends import AXES, PackageEnds, package_ends
from runner.search.bisect.state import SEARCHES, Question
from runner.session.context import Context, setup
from runner.session.options import Options
from runner.session.typed_variants import typed_threads

LABELS = {"cuda": "CUDA", "cudnn": "cuDNN"}
"""Axis -> what its versions are versions of; those of releases and nightly builds are the framework's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What the user typed beside the options of ``runner run``.

    Attributes:
        good: an environment or a version, the first of the search.
        bad: the last; empty for the environment of the cell.
        axis: what varies: one of ``package_ends.AXES``, or a package.
        metric: the name of the metric whose verdicts decide.
        every: compare all neighbours.
        keep: keep what is built.
        rebuild_ends: measure a second build of both ends, where there is a change.
        max_comparisons: after which the search stops; None for as many as all neighbours have.
    """

    good: str
    bad: str = ""
    axis: str = "release"
    metric: str = TIME
    every: bool = False
    keep: bool = False
    rebuild_ends: bool = False
    max_comparisons: int | None = None


def requested(options: Options, ends: Ends) -> tuple[Context, Question]:
    """Return the context and the question of what the user typed."""
    options = with_named_model(options)
    if not (options.model or any(options.selectors or ())):
        raise UsageError(
            Problem("bisect takes a test, or a network", hint="runner bisect MODEL --good RELEASE --bad RELEASE")
        )
    if options.backend == "host":
        raise UsageError(
            Problem("bisect builds environments, and the backend host builds none", hint="use venv or docker")
        )
    typed = next(filter(None, options.selectors or ()), "")
    environment, cell = split_cell(typed) if typed else ("", "")
    bad = ends.bad or environment
    if not ends.good or not bad:
        hint = "name two environments or versions, such as --good torch-2.1 --bad torch-2.x"
        raise UsageError(Problem(f"bisect needs {'--bad' if ends.good else '--good'}", hint=hint))
    axis, good, bad, environment = package_ends(PackageEnds(ends.axis, ends.good, bad, environment))
    _check_named(good=good, bad=bad)
    if axis not in ("release", "nightly") and not environment:
        environment = environment_of_model(options, axis) if options.model and axis not in AXES else ""
        if not environment:
            hint = "write ENVIRONMENT/CELL, or it with both ends: --good numpy==2.2.6,numba==0.65.0"
            raise UsageError(Problem(f"the axis {axis} needs the environment of the test", hint=hint))
    if len(typed_threads(options)) > 1:
        hint = "search with each count by itself: --threads 1, then --threads 4"
        raise UsageError(Problem("bisect compares releases, with one thread count", hint=hint))
    metric = named(ends.metric)
    _refuse_without_template(options, good, bad)
    if not cell:
        cell, options = cell_of_model(options, (good, bad), environment), replace(options, phase=None)
    selectors = None if axis in AXES else [environment]  # which makes its lock, if the matrix has none
    context = setup(replace(options, selectors=selectors), cells=[cell])
    refuse_unmeasured(metric, context.request.device, cell)
    return context, Question(
        cell=cell,
        good=good,
        bad=bad,
        axis=axis,
        every=ends.every,
        environment=environment,
        device=device_id(*context.gpus),
        backend=context.backend.name,
        metric=metric.name,
        settings={**settings_of(context), **({"env": sorted(options.env)} if options.env else {})},
    )


def label_of(axis: str, framework: str) -> str:
    """Return what the versions on an axis are versions of.

    >>> label_of("nightly", "torch"), label_of("cudnn", "torch"), label_of("numba", "numpy")
    ('PyTorch', 'cuDNN', 'numba')
    """
    return LABELS.get(axis, axis if axis not in AXES else framework_name(framework))


def refuse_unmeasured(metric: Metric, device: str, cell: str) -> None:
    """Raise UsageError for a metric that no record of a cell has on a device; the id is without an environment."""
    if metric.is_of_facts and not metric.fact(device):
        hint = "choose another --metric"
        raise UsageError(Problem(f"{metric.title} is not measured on {device}: {metric.absent}", hint=hint))
    phase = Cell.parse(f"any/{cell}").phase
    if reason := metric.why_absent_in(phase):
        hint = "choose another --metric, or a test of another phase, as `runner list tests` lists it"
        raise UsageError(Problem(f"{metric.title} is not measured in the phase {phase}: {reason}", hint=hint))


def _check_named(**ends: str) -> None:
    """Refuse ends that name more than a release: what lies between them has the packages of the matrix.

    Raises:
        UsageError: an end has packages or a Python with it.
    """
    for name, end in ends.items():
        named = parse_named(end)
        if named is not None and (named.packages or named.python or named.day):
            message = f"--{name} {end} names more than a release, which those between the ends do not have"
            hint = f"write --{name} {named.framework}==VERSION, and what it needs into an environment of the matrix"
            hint += "; or name ends that differ in one package alone"
            raise UsageError(Problem(message, hint=hint))


def _refuse_without_template(options: Options, good: str, bad: str) -> None:
    """Raise UsageError for releases of a framework that the matrix lacks: those between are made like one of it."""
    ends = [named for named in map(parse_named, (good, bad)) if named is not None]
    if len(ends) == 2:
        matrix, framework = load(options.matrix_file, networks=False), ends[0].framework
        if all(environment.framework != framework for environment in matrix.environments.values()):
            raise UsageError(without_template(framework, (good, bad)))


def settings_of(context: Context) -> dict[str, Any]:
    """Return what decides the times of a search besides its question, as JSON values."""
    request, settings = context.request, context.settings
    return {
        "threads": request.threads,
        "seconds": request.seconds or context.matrix.measure.seconds,
        "protocol": request.protocol or "",
        "corpus": request.corpus.digest if request.corpus else "",
        "allow_jit": request.allow_jit,
        "pin": settings.pin,
        "clocks": settings.clocks.json(),
        "models": {name: network.files.digest for name, network in sorted(context.matrix.networks.items())},
    }


def with_other_settings(reports: Path, question: Question) -> str:
    """Return a sentence about the newest unfinished search that differs in its settings alone; empty without one."""
    for state in SEARCHES.states(reports):
        if not state.ended and replace(state.question, settings=question.settings) == question:
            before = state.question.settings
            names = [name for name, value in question.settings.items() if before.get(name) != value]
            return f"bisect {state.id} was measured with other {', '.join(names)}: this is another search"
    return ""


def split_cell(text: str) -> tuple[str, str]:
    """Return the environment of a cell, empty if it has none, and the cell without it.

    >>> split_cell("torch-1.0/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32")
    ('torch-1.0', 'nn-lstm/rnn-step/lstm-b32-h128/forward/fp32')

    Raises:
        UsageError: it is not a cell.
    """
    parts = text.split("/")
    if len(parts) == 5:
        parts = ["", *parts]
    try:
        cell = Cell.parse("/".join([parts[0] or "any", *parts[1:]]))
    except RunnerError as error:
        hint = "write implementation/workload/case/phase/precision, as `runner list tests` lists it"
        raise UsageError(Problem(f"{text!r} is not a test", hint=hint)) from error
    return parts[0], without_environment(cell.id)
