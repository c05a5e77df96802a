"""The comparisons that a run is about: its report shows them, and they decide on extra rounds."""

from dataclasses import replace

from runner.analysis.compare.comparison import compare
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.comparison_model import Comparison
from runner.analysis.model import Dataset
from runner.analysis.releases import releases
from runner.core.errors import RunnerError
from runner.core.model.cells import is_twin, without_twin
from runner.stats.intervals import MARGIN


def summarise(run: Dataset | MeasuredRun, *, margin: float = MARGIN) -> tuple[Comparison, ...]:
    """Return, for each framework of a run, the comparison of its other measured environments with the first.

    The order is the plan's. A framework with fewer than two measured environments, or none in common, is left out. If
    each framework has only one, the first of them is compared with the others. A/A pairs come last.
    """
    shared = MeasuredRun.of(run)
    dataset = shared.dataset
    rounds = dataset.rounds
    measured = dict(zip(rounds["environment"].tolist(), rounds["framework"].tolist(), strict=True))
    families: dict[str, list[str]] = {}
    twins: list[list[str]] = []
    for name in dict.fromkeys([*(planned.cell.environment for planned in dataset.plan), *measured]):
        if name in measured and is_twin(name):
            twins.append([without_twin(name), name])
        elif name in measured:
            families.setdefault(measured[name], []).append(name)
    if all(len(names) == 1 for names in families.values()):
        families = {"": [name for (name,) in families.values()]}
    comparisons = []
    known = releases(dataset)
    for names in [*families.values(), *twins]:
        try:
            if len(names) > 1:
                compared = compare([shared], names[0], names[1:], margin=margin)
                comparisons.append(replace(compared, releases={name: known[name] for name in names}))
        except RunnerError:  # they share no case; the tables of times show both
            continue
    return tuple(comparisons)
