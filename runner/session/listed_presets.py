"""The presets of a matrix, for `runner list presets`: what each is for, and how long it takes here."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from runner.core.errors import NothingSelectedError
from runner.core.model import Survey
from runner.core.units import long_duration
from runner.plan.pairs import with_controls
from runner.plan.specs import specs
from runner.report.formatting import counted
from runner.session.context import Context, setup
from runner.session.listed_context import setup_for_list
from runner.session.options import Options
from runner.session.preparation import prepare


def preset_rows(file: Path) -> Iterator[tuple[str, ...]]:
    """Yield name, number of tests that run here, time and purpose of each preset.

    Args:
        file: the matrix file.

    Raises:
        MatrixError: it is not valid.
    """
    context, options = setup_for_list(file)
    selected, _ = specs(context.matrix, context.request.environments, context.request.device, context.settings.matrix)
    survey = context.backend.survey(selected)
    for name, preset in context.matrix.presets.items():
        yield name, *_extent(context, survey, replace(options, preset=name)), preset.about


def _extent(context: Context, survey: Survey, options: Options) -> tuple[str, str]:
    """Return how many tests of a preset run here, and about how long they take with their controls."""
    try:
        of_preset = setup(options)
        request, settings = of_preset.request, of_preset.settings
        plan = prepare(of_preset.matrix, request, context.backend, settings, of_preset.gpu, survey).plan
    except NothingSelectedError:
        return counted(0, "test"), ""
    running = sum(planned.skip is None for planned in plan.cells)
    seconds = with_controls(plan).seconds if settings.controls else plan.seconds
    return counted(running, "test"), f"about {long_duration(seconds)}" if running else ""
