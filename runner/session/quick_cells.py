"""What is measured where nobody says which cells: the quick ones. And what takes hours that nobody asked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

from runner.core.errors import Problem, UsageError
from runner.core.model import Plan, Precision, Request
from runner.core.model.cells import is_control
from runner.core.model.variant_ids import without_variant
from runner.core.units import long_duration
from runner.matrix import Matrix, Selector
from runner.matrix.select import fits
from runner.plan.pairs import with_controls
from runner.plan.verdicts import selected_cells
from runner.report.formatting import counted
from runner.session.options import Options

QUICK = "quick"
"""The preset that counts where no cells are named."""
QUICK_AND_ALL = "quick, and all tests of environments without any"
"""A preset that no matrix can have: it is made where the preset quick has no cells of some environments."""
NOTE = f"no tests are named: these are the quick ones, as --preset {QUICK} selects them; --all selects every test"
LONG = 7200.0
"""Seconds of measuring; a longer run has to be asked for, with ``--budget`` or ``--all``."""


def names_cells(options: Options) -> bool:
    """Return whether options say which cells of the environments are measured.

    >>> names_cells(Options(selectors=["torch-1.0", "!*/asr-lstm/*"])), names_cells(Options(workload=["rnn-step"]))
    (False, True)
    """
    globs = any("/" in selector and not selector.startswith("!") for selector in options.selectors or ())
    return bool(options.all or options.preset or options.model or options.workload or globs)


def quick_cells(matrix: Matrix, request: Request, options: Options) -> tuple[Matrix, Request, tuple[str, ...]]:
    """Return the matrix and the request for the quick cells where the options name none, and what to say about it.

    An environment that is named and that the preset has no cell of is measured with all of its cells. So is everything
    where the matrix has no preset of this name, or the preset no cell of any environment.

    Args:
        matrix: with an environment for each that the request names.
        request: made of the options.
        options: as they are once the names of releases and variants are replaced by ids.
    """
    if QUICK not in matrix.presets or names_cells(options):
        return matrix, request, ()
    quick = replace(request, preset=QUICK)
    with_cells = {cell.environment for cell in selected_cells(matrix, quick)}
    others = [name for name in request.environments if name not in with_cells]
    all_of = f"the preset {QUICK} has no test of {', '.join(others)}: all of their tests are taken"
    if not with_cells:
        return matrix, request, (all_of,)
    is_named = any(not each.startswith("!") for each in options.selectors or ())
    if not others or not is_named:
        return matrix, quick, (NOTE,)
    preset = matrix.presets[QUICK]
    selector = Selector(
        cases=_listed_cases(matrix),
        environments=tuple(dict.fromkeys(map(without_variant, others))),
        precisions=get_args(Precision),
    )
    preset = preset.model_copy(update={"select": (*preset.select, selector)})
    matrix = matrix.model_copy(update={"presets": {**matrix.presets, QUICK_AND_ALL: preset}})
    return matrix, replace(request, preset=QUICK_AND_ALL), (NOTE, all_of)


def _listed_cases(matrix: Matrix) -> tuple[str, ...]:
    """Return the patterns of the cases that a matrix lists, as those of a selector."""
    patterns: list[str] = []
    for workload, choice in matrix.workloads.items():
        includes = [each for each in choice.cases if not each.startswith("!")] or ["*"]
        patterns += [f"{workload}/{each}" for each in includes]
        patterns += [f"!{workload}/{each[1:]}" for each in choice.cases if each.startswith("!")]
    return tuple(patterns)


def with_all_in_presets(matrix: Matrix, declared: Matrix, options: Options) -> Matrix:
    """Return the matrix with presets that select cells of each environment that is named.

    Presets name some environments of the file. Of each environment that the options name, and of a release that the
    file does not declare, they select what they select of any environment of its framework. So two releases have the
    same cells, whichever they are.

    Args:
        matrix: with all environments.
        declared: what the file has.
        options: with ids in place of the names of releases.
    """
    words = {without_variant(each.partition("/")[0]) for each in options.selectors or ()}
    chosen = {
        name: each.framework
        for name, each in matrix.environments.items()
        if name not in declared.environments or name in words
    }
    if not chosen:
        return matrix

    def extended(selector: Selector) -> Selector:
        if all(pattern.startswith("!") for pattern in selector.environments):
            return selector  # it selects whatever it does not exclude
        of = {each.framework for name, each in declared.environments.items() if fits(selector.environments, name)}
        names = [name for name, framework in chosen.items() if framework in of]
        return selector.model_copy(update={"environments": tuple(dict.fromkeys((*selector.environments, *names)))})

    presets = {
        key: preset.model_copy(update={"select": tuple(map(extended, preset.select))})
        for key, preset in matrix.presets.items()
    }
    return matrix.model_copy(update={"presets": presets})


def gpu_notes(matrix: Matrix, request: Request) -> tuple[str, ...]:
    """Return how to measure more environments on a GPU than the preset quick selects; nothing where it leaves out none.

    Args:
        matrix: with presets that have the cells of each environment that is named.
        request: with the environments to choose from.
    """
    if request.preset != QUICK or request.device == "cpu":
        return ()
    cells = {cell.environment for cell in selected_cells(matrix, request)}
    frameworks = {matrix.environments[name].framework for name in cells}
    others = [
        name
        for name in request.environments
        if name not in cells
        and (each := matrix.environments[name]).framework in frameworks
        and each.variant("cuda") is not None
    ]
    if not others:
        return ()
    measured = counted(len(cells), "environment")
    others_shown = " ".join(others[-2:])
    selected = f"on a GPU, the preset {QUICK} selects {measured}"
    how = f"name others to measure its tests in them, for example `runner run {others_shown}`"
    return (f"{selected}; {how}; there are {', '.join(others)}",)


def with_quick_preset(options: Options, matrix: Matrix, say: Callable[[str], None]) -> Options:
    """Return the options with the preset quick where they name no cells, for other hosts; ``say`` takes a sentence."""
    if QUICK not in matrix.presets or names_cells(options):
        return options
    say(NOTE)
    return replace(options, preset=QUICK)


def too_long(plan: Plan, matrix: Matrix, options: Options) -> Problem | None:
    """Return what is wrong with a run of hours that nobody asked for; None for any other.

    Args:
        plan: with its controls, or without.
        matrix: what was planned.
        options: as typed.
    """
    if options.all or options.budget:
        return None
    has_controls = any(map(is_control, plan.frameworks)) or not matrix.measure.controls
    seconds = (plan if has_controls else with_controls(plan)).seconds
    if seconds <= LONG:
        return None
    running = [each for each in plan.cells if each.skip is None and not is_control(each.cell.environment)]
    cells, rounds = counted(len(running), "test"), counted(plan.measurement.rounds, "round")
    hint = "--budget 2h measures for that long, and --all measures all of it"
    if QUICK in matrix.presets and options.preset != QUICK:
        hint = f"--preset {QUICK} measures a few tests of each environment, {hint}"
    return Problem(f"it takes about {long_duration(seconds)} to measure {cells} in {rounds}", hint=hint)


def refusals(plan: Plan, matrix: Matrix, options: Options) -> tuple[str, ...]:
    """Return what to say of a plan that is too long to be run, see ``too_long``; nothing about any other."""
    problem = too_long(plan, matrix, options)
    return () if problem is None else (f"`runner run` refuses this: {problem.message}; {problem.hint}",)


def refuse_long(plan: Plan, matrix: Matrix, options: Options) -> None:
    """Raise UsageError for a run of hours that nobody asked for, see ``too_long``."""
    if problem := too_long(plan, matrix, options):
        raise UsageError(problem)
