"""One figure for an environment and its base: the geometric mean of the ratios of their cells."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from runner.analysis import statistics
from runner.analysis.compare.verdicts import Draft
from runner.analysis.model import GeometricMean

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 2
"""Cells of which a mean is taken; that of one is its ratio."""


def geometric_means(drafts: Iterable[Draft]) -> tuple[GeometricMean, ...]:
    """Return the mean of each environment against the base, in the order of the drafts.

    Taken are cells that may be compared and were measured in turns, with the same implementation on both sides. Compile
    times are left out: they are no steps. Whatever its verdict, a cell counts. Each workload has the same weight,
    however many of its cells there are.

    The mean is over the rounds that all of these cells share. Further rounds are made where a verdict is open, and a
    mean over them would be one of the open cells. A cell with fewer rounds than were planned has failed in some, and is
    left out.

    References:
        Fleming and Wallace, How not to lie with statistics, CACM 29(3), 1986: ratios are averaged geometrically.
    """
    groups: dict[str, list[Draft]] = {}
    for one in drafts:
        if one.ratios and one.row.implementation == one.row.base_implementation and not _compiles(one):
            groups.setdefault(one.row.environment, []).append(one)
    found = (_mean(name, group) for name, group in groups.items())
    return tuple(one for one in found if one is not None)


def _compiles(one: Draft) -> bool:
    return one.row.phase.startswith("compile")


def _mean(environment: str, drafts: Sequence[Draft]) -> GeometricMean | None:
    planned = min((*drafts[0].looks[:1], max(len(one.ratios) for one in drafts)))
    whole = [one for one in drafts if len(one.ratios) >= planned]
    shared = sorted(set.intersection(*(set(one.ratios) for one in whole)))
    if len(whole) < LEAST or not shared:
        return None
    table = _by_server(np.array([[one.ratios[number] for number in shared] for one in whole]), whole, shared)
    names = np.array([one.row.workload for one in whole])
    workloads = tuple(np.unique(names).tolist())
    found = statistics.geometric_mean(np.array([table[names == name].mean(axis=0) for name in workloads]))
    ratio, low, high = (float(np.exp(end)) for end in found)
    one_round = table.shape[1] == 1
    return GeometricMean(
        environment=environment,
        ratio=ratio,
        ratio_low=None if one_round else low,
        ratio_high=None if one_round else high,
        cells=len(whole),
        workloads=workloads,
        rounds=len(shared),
    )


def _by_server(table: "NDArray[np.float64]", drafts: Sequence[Draft], shared: Sequence[int]) -> "NDArray[np.float64]":
    """Return (C, S) means of the (C, R) log ratios on each of S pairs of servers, as of the cell that was on fewest.

    Rounds on the same servers are not independent of each other. The table is left as it is where nobody wrote them
    down.
    """
    known = [[one.servers[number] for number in shared] for one in drafts if one.servers]
    if not known:
        return table
    places: dict[tuple[str, str], list[int]] = {}
    for place, pair in enumerate(min(known, key=lambda pairs: len(set(pairs)))):
        places.setdefault(pair, []).append(place)
    return np.stack([table[:, columns].mean(axis=1) for columns in places.values()], axis=1)
