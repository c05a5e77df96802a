"""The comparisons that a run is about: what its report shows, and what decides on further rounds."""

from runner.analysis import statistics
from runner.analysis.compare import compare
from runner.analysis.model import Comparison, Dataset
from runner.core.errors import RunnerError
from runner.core.model.cells import TWIN, is_twin


def summarise(results: Dataset, *, margin: float = statistics.MARGIN) -> tuple[Comparison, ...]:
    """Return, for each framework of a run, its first measured environment against its other measured ones.

    The order is the plan's; a framework with fewer than two measured environments, or none in common, is left out.
    Where every framework has one, the first of them is compared with the others. A/A pairs come last.
    """
    measured = dict(zip(results.rounds["environment"].tolist(), results.rounds["framework"].tolist(), strict=True))
    families: dict[str, list[str]] = {}
    twins: list[list[str]] = []
    for name in dict.fromkeys([*(one.cell.environment for one in results.plan), *measured]):
        if name in measured and is_twin(name):
            twins.append([name.removesuffix(TWIN), name])
        elif name in measured:
            families.setdefault(measured[name], []).append(name)
    if all(len(names) == 1 for names in families.values()):
        families = {"": [name for (name,) in families.values()]}
    found = []
    for names in [*families.values(), *twins]:
        try:
            found += [compare([results], names[0], names[1:], margin=margin)] if len(names) > 1 else []
        except RunnerError:  # they share no case; the tables of times show both
            continue
    return tuple(found)
