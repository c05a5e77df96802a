"""One number for an environment and its base: the geometric mean of the ratios of their cells."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from runner.analysis.compare.drafts import Draft
from runner.analysis.comparison_model import GeometricMean
from runner.analysis.error_inflation import Inflation
from runner.core.grouping import grouped
from runner.stats import intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIN_CELLS = 2
"""The mean of a single cell would be its ratio."""


def geometric_means(
    drafts: Iterable[Draft], inflations: Mapping[str, Inflation] = MappingProxyType({})
) -> tuple[GeometricMean, ...]:
    """Return the mean of each environment on each kind of device against the base, in the order of the drafts.

    It includes the cells that are comparable and took turns, with the same implementation on both sides, whatever their
    verdicts; the caller leaves out those whose verdict is withheld. Compile times are no steps and are left out. Each
    workload has the same weight, however many cells it has.

    The mean is over the rounds that all of these cells share. Extra rounds exist only for open verdicts, so a mean over
    them would be one of the open cells. A cell with fewer rounds than planned has failed in some, and is left out.
    While all cells are open, the shared rounds grow with the looks, and the interval has the level of one that is shown
    after several looks.

    Args:
        drafts: the rows without verdicts.
        inflations: run -> by how much its errors are larger than they seem.

    References:
        Fleming and Wallace, How not to lie with statistics, CACM 29(3), 1986: ratios are averaged geometrically.
    """
    same = (draft for draft in drafts if draft.row.implementation == draft.row.base_implementation)
    averaged = (draft for draft in same if draft.ratios and not draft.row.phase.startswith("compile"))
    groups = grouped(((draft.row.environment, draft.row.device_name), draft) for draft in averaged)
    means = (_mean(*key, group, inflations) for key, group in groups.items())
    return tuple(mean for mean in means if mean is not None)


def _mean(
    environment: str, device_name: str, drafts: Sequence[Draft], inflations: Mapping[str, Inflation]
) -> GeometricMean | None:
    planned = min((*drafts[0].looks[:1], max(len(draft.ratios) for draft in drafts)))
    complete = [draft for draft in drafts if len(draft.ratios) >= planned]
    shared = sorted(set.intersection(*(set(draft.ratios) for draft in complete)))
    if len(complete) < MIN_CELLS or not shared:
        return None
    log_ratios = np.array([[draft.ratios[number] for number in shared] for draft in complete])
    table = _mean_by_group(log_ratios, complete, shared)
    names = np.array([draft.row.workload for draft in complete])
    workloads = tuple(np.unique(names).tolist())
    alpha = intervals.SHOWN_LEVEL if len(drafts[0].looks) > 1 else 1 - intervals.CONFIDENCE
    inflation = inflations.get(drafts[0].row.runs[0], Inflation())
    by_workload = np.array([table[names == name].mean(axis=0) for name in workloads])
    count = table.shape[1]
    evidence = intervals.geometric_mean(by_workload, inflation.factor(count), inflation.freedom(count))
    ratio, low, high = (float(np.exp(log)) for log in intervals.interval(evidence, alpha))
    of_shared = evidence._replace(rounds=np.array(float(len(shared))))
    p_value = float(intervals.p_value(of_shared, drafts[0].looks or (len(shared),)))
    medians = [float(np.mean(list(draft.ratios.values()))) for draft in complete]
    one_round = count == 1
    return GeometricMean(
        environment=environment,
        device_name=device_name,
        ratio=ratio,
        ratio_low=None if one_round else low,
        ratio_high=None if one_round else high,
        p_value=None if one_round else p_value,
        median_ratio=float(np.exp(np.median(medians))),
        cells=len(complete),
        workloads=workloads,
        rounds=len(shared),
        cell_ids=tuple(draft.row.other.id for draft in complete),
    )


def _mean_by_group(
    log_ratios: "NDArray[np.float64]", drafts: Sequence[Draft], shared: Sequence[int]
) -> "NDArray[np.float64]":
    """Return (C, G) means of the (C, R) log ratios in each of G groups of rounds, those of the cell that has fewest.

    The rounds of a group are not independent of each other. Without known groups the table is unchanged.
    """
    groups = [[draft.groups[number] for number in shared] for draft in drafts if draft.groups]
    if not groups:
        return log_ratios
    fewest = min(groups, key=lambda names: len(set(names)))
    columns_by_group = grouped((group, column) for column, group in enumerate(fewest))
    return np.stack([log_ratios[:, columns].mean(axis=1) for columns in columns_by_group.values()], axis=1)
