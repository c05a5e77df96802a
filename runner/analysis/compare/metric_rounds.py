"""The values of a metric as rounds, in the form that times have: whatever compares times compares these, too."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from runner.analysis.compare.tails import nearest_rank
from runner.analysis.model import Dataset
from runner.core.facts import COMPARABLE
from runner.core.metrics import Metric
from runner.core.model import Cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

OF_ENVIRONMENTS = frozenset({"device", "device_name", "driver", "harness"})
"""Facts in which two environments have to agree to be compared as a whole; the others are facts of a cell."""


def environment_cell(environment: str, metric: Metric) -> Cell:
    """Return what stands for the cell in a row about an environment as a whole."""
    return Cell.parse(f"{environment}/all/environment/{metric.name}/all/all")


def subject_cell(cell: Cell, metric: Metric) -> Cell:
    """Return what a row about a metric of a cell is about: the cell, or what stands for its environment."""
    return cell if metric.scope == "cell" else environment_cell(cell.environment, metric)


def is_environment(cell: str) -> bool:
    """Return whether the id of a cell is that of ``environment_cell``."""
    return cell.partition("/")[2].startswith("all/environment/")


def metric_dataset(dataset: Dataset, metric: Metric) -> Dataset:
    """Return a run whose rounds have the values of a metric as their ``seconds``; rounds without a value are left out.

    A round has one value, and no turns. Where the metric is one of environments, a round is a server, in the order in
    which they were started.

    Args:
        dataset: the run.
        metric: not time.
    """
    rounds = dataset.rounds
    values = np.array(list(_values(rounds, metric)), dtype=np.float64)
    known = np.isfinite(values) & (values > 0)
    rounds, values = rounds[known], np.maximum(values[known], metric.floor)
    rounds = rounds.assign(
        seconds=values,
        iterations=1,
        turns=pd.Series([None] * len(rounds), dtype=object, index=rounds.index),
        times=pd.Series([np.array([value]) for value in values.tolist()], dtype=object, index=rounds.index),
        batch=pd.Series([None] * len(rounds), dtype=object, index=rounds.index),
    )
    if metric.scope == "environment":
        rounds = _of_servers(rounds, metric)
    samples = pd.DataFrame({"cell": rounds["cell"].astype(str), "seconds": rounds["seconds"]})
    return replace(dataset, rounds=rounds, samples=samples)


def _values(rounds: pd.DataFrame, metric: Metric) -> Iterable[float]:
    """Yield the value of each round; NaN where it has none."""
    if metric.quantile:
        columns = zip(rounds["times"].tolist(), rounds["batch"].tolist(), strict=True)
        return (_quantile(times, batch, metric.quantile) for times, batch in columns)
    devices = rounds["device"].tolist()
    columns_by_fact = {
        fact: rounds[fact].tolist() for fact in {metric.fact(device) for device in devices} if fact in rounds
    }
    facts = (columns_by_fact.get(metric.fact(device)) for device in devices)
    return (_number(column[index]) if column else math.nan for index, column in enumerate(facts))


def _quantile(times: "NDArray[np.float64]", batch: object, share: float) -> float:
    value = nearest_rank(times, share) if batch in (None, 1) else None
    return math.nan if value is None else value


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan


def _of_servers(rounds: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Return the first round of each server, numbered from 0 in each environment."""
    names = list(zip(rounds["environment"].tolist(), rounds["server"].tolist(), strict=True))
    first = [names.index(name) for name in dict.fromkeys(names)]
    of_environment: dict[str, list[int]] = {}
    for position in first:
        of_environment.setdefault(names[position][0], []).append(position)
    several = min(map(len, of_environment.values()), default=0) > 1
    kept = [
        group[1:] if metric.first_differs and several else group[:1] if metric.exact else group
        for group in of_environment.values()
    ]
    return _renamed(rounds.iloc[[position for group in kept for position in group]], kept, metric)


def _renamed(servers: pd.DataFrame, groups: Sequence[Sequence[int]], metric: Metric) -> pd.DataFrame:
    """Return the rounds of servers under the cells of their environments, without facts of the cells they measured."""
    cells = [environment_cell(name, metric) for name in servers["environment"].tolist()]
    unlike = [name for name in COMPARABLE if name not in OF_ENVIRONMENTS and name in servers]
    parts = {name: [getattr(cell, name) for cell in cells] for name in ("implementation", "workload", "case", "phase")}
    return servers.assign(
        cell=[cell.id for cell in cells],
        precision="all",
        round=[number for group in groups for number in range(len(group))],
        **parts,
        **dict.fromkeys(unlike, ""),
    )
