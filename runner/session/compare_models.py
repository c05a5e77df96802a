"""A user's network, measured and compared from Python: ``runner run --model``, then ``runner compare``."""

import sys
from collections.abc import Sequence
from dataclasses import replace

from runner.analysis.analyse import analyse_run
from runner.core.errors import Problem, UsageError
from runner.core.progress import Progress
from runner.matrix.model_file import network_name
from runner.session import execution as pipeline
from runner.session.context import cache_in_use, prepared
from runner.session.notebook import ComparisonResult, compare
from runner.session.options import Options
from runner.session.results import write_report


def compare_models(
    options: Options, environments: Sequence[str], cases: Sequence[str] | None, *, build: bool
) -> ComparisonResult:
    """Measure the network of ``options.model`` and compare, as ``runner.compare_models`` describes it."""
    if len(environments) < 2:
        hint = 'runner.compare_models("my_network.py", "torch-1.12", "torch-2.x")'
        raise UsageError(Problem("a comparison needs two environments", hint=hint))
    options = replace(options, selectors=_selectors(options, environments, cases))
    with Progress(_write) as progress, cache_in_use():
        context, preparation = prepared(options, progress.note)
        missing = [spec.environment for spec in preparation.specs if spec.environment not in preparation.survey.cached]
        if missing and not build:
            hint = f"`runner build {' '.join(missing)}` builds, or pass build=True"
            raise UsageError(Problem(f"not built yet: {', '.join(missing)}", hint=hint))
        totals = pipeline.run(preparation, context.backend, context.settings, progress, context.gpus)
        if totals.good:
            write_report(analyse_run(totals.run, context.matrix.measure.margin), totals.run)
    return compare(environments, options.reports, options.matrix, run=totals.run.id, best=False)


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _selectors(options: Options, environments: Sequence[str], cases: Sequence[str] | None) -> list[str]:
    """Return the selectors of all cells of the network in some environments, or of some of its cases."""
    if cases is None:
        return list(environments)
    names = [network_name(path) for path in options.model or ()]
    return [f"{each}/*/{name}/{case}/*" for each in environments for name in names for case in cases]
