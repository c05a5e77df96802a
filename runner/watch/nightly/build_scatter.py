"""How much builds of an environment differ from each other, by the ratios in turns of earlier nights.

Each built image has a level of its own: its layout in memory, its wheels. It is the same in all rounds, so no interval
of two builds contains it, and a second night against the same earlier build errs with the first. Nights that measured
builds in turns, where no regression was confirmed, show how much builds scatter. A slow-down has to stand out
from that.

``benchmarks/nights.py builds`` simulates it; docs/decisions/0083-a-named-release-stands-out-of-its-neighbours.md.
"""

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from runner.core.model.cells import environment_of
from runner.core.row_ids import cell_and_metric
from runner.nights.looks import EarlierNights, Look
from runner.stats.release_scatter import MAD_EFFICIENCY
from runner.stats.sample_shape import MAD_SCALE
from runner.watch.nightly.series import variances

RECENT_NIGHTS = 20
"""Nights whose ratios count: a package that made builds scatter may be gone."""
MIN_RATIOS = 10
"""Ratios in turns that show a scatter at the least."""
LEVEL = 0.0005
"""The one-sided probability that two builds between which nothing happened differ by more than the limit."""
SERIES_LEVEL = 0.001
"""The p-value of the series, which has the scatter of builds in it, that stands for the limit."""


class BuildScatter(NamedTuple):
    """The scatter of the builds of an environment.

    Attributes:
        spread: standard deviation of the log ratio of two builds, without the noise of rounds.
        limit: the ratio of two builds that chance reaches with a probability of LEVEL.
    """

    spread: float
    limit: float


def build_scatters(nights: EarlierNights, device: str) -> Mapping[tuple[str, str], BuildScatter]:
    """Return (environment, metric) -> the scatter of its builds; those without enough ratios in turns are missing.

    Args:
        nights: the earlier nights.
        device: as series name it; nights on others do not count.
    """
    recent = frozenset(nights.nights[-RECENT_NIGHTS:])
    by_environment: dict[tuple[str, str], list[Look]] = {}
    for (row, _), looks in nights.looks.items():
        usable = (
            look
            for look in looks
            if look.night in recent and look.device == device and look.ratio and not look.confirmed_in
        )
        of_builds = {look.digest or look.night: look for look in usable}  # one build again shows nothing more of builds
        cell, metric = cell_and_metric(row)
        by_environment.setdefault((environment_of(cell), metric), []).extend(of_builds.values())
    return {name: _scatter(looks) for name, looks in by_environment.items() if len(looks) >= MIN_RATIOS}


def _scatter(looks: Sequence[Look]) -> BuildScatter:
    """Return the scatter that ratios in turns show: that of their median absolute logarithm, less that of rounds."""
    from scipy.special import stdtrit

    logs = np.array([log(look.ratio or 1.0) for look in looks])
    of_rounds = [square for look in looks for square in variances([look]) or ()]
    noise = float(np.median(of_rounds)) if of_rounds else 0.0
    spread = max(0.0, (float(np.median(np.abs(logs))) * MAD_SCALE) ** 2 - noise) ** 0.5
    quantile = float(stdtrit(MAD_EFFICIENCY * len(logs), 1 - LEVEL))
    return BuildScatter(spread, exp(quantile * spread))
