"""A user's network, measured and compared from Python: ``runner run --model``, then ``runner compare``."""

import sys
from collections.abc import Sequence
from dataclasses import replace

from runner.core.errors import Problem, UsageError
from runner.core.progress import Progress
from runner.matrix.model_file import network_name
from runner.session import flow
from runner.session.context import cache_in_use
from runner.session.notebook import ComparisonResult, compare
from runner.session.options import Options


def compare_models(
    options: Options, environments: Sequence[str], cases: Sequence[str] | None, *, build: bool
) -> ComparisonResult:
    """Measure the network of ``options.model`` and compare, as ``runner.compare_models`` describes it."""
    if len(environments) < 2:
        hint = 'runner.compare_models("my_network.py", "torch-1.12", "torch-2.x")'
        raise UsageError(Problem("a comparison needs two environments", hint=hint))
    options = replace(options, selectors=_selectors(options, environments, cases))
    with Progress(_write) as progress, cache_in_use(), flow.planned(options, progress) as work:
        missing = [
            spec.environment for spec in work.prepared.specs if spec.environment not in work.prepared.survey.cached
        ]
        if missing and not build:
            hint = f"`runner build {' '.join(missing)}` builds, or pass build=True"
            raise UsageError(Problem(f"not built yet: {', '.join(missing)}", hint=hint))
        measured = flow.measure_planned(work, progress, without=(flow.answer, flow.propose))
    return compare(environments, options.reports, options.matrix, run=measured.run.id, best=False)


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _selectors(options: Options, environments: Sequence[str], cases: Sequence[str] | None) -> list[str]:
    """Return the selectors of all cells of the network in some environments, or of some of its cases."""
    if cases is None:
        return list(environments)
    names = [network_name(path) for path in options.model or ()]
    return [f"{each}/*/{name}/{case}/*" for each in environments for name in names for case in cases]
