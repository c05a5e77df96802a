"""What change points detect before anything is measured in turns: ``python -m benchmarks.nights series``.

sd is the standard deviation of a night's log ratio: 3 rounds of 2 % make 1.2 %. Positions are those of the program's
own functions.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks import noise
from benchmarks.noise import Draw, Floats
from runner.stats.change_points import LEVEL, change_points
from runner.watch.nightly.series import CANDIDATE_LEVEL

NIGHTS, BEFORE, AFTER = 60, 20, 12
CREEP = 0.005
KINDS: Mapping[str, Draw] = {
    "normal, 0.6 %": noise.normal(0.006),
    "normal, 1.2 %": noise.normal(0.012),
    "Student's t with 3 degrees of freedom, 1.2 %": noise.student(3, 0.012),
    "two modes of 8 %, 1.2 %": noise.modes(0.0, 0.012),
    "two modes that stay 0.8": noise.modes(0.8, 0.012),
    "AR(1) 0.5, 1.2 %": noise.autoregressive(0.5, 0.012),
    "AR(1) 0.8, 1.2 %": noise.autoregressive(0.8, 0.012),
}


def detections(values: Floats, level: float, first: int) -> list[float]:
    """Return the nights until each series (S, N) is said to become slower, 1 for the night ``first``; or infinity."""
    nights = []
    for row in values:
        changes = change_points(row.tolist(), level=level)
        nights.append(
            min(
                (each.detected - first + 1 for each in changes if each.ratio > 1 and each.detected >= first),
                default=np.inf,
            )
        )
    return nights


def lines(seed: int, series: int = 200) -> Iterator[str]:
    """Yield the rows of the table; each kind of noise has its own random numbers."""
    yield "| noise of nights | level | in 1,000 equal nights | 3 % in 2 nights | 5 % | 10 % | creep below 5 % |"
    yield "|---" * 7 + "|"
    for position, (name, draw_kind) in enumerate(KINDS.items()):
        for level in (LEVEL, CANDIDATE_LEVEL):
            draw = np.random.default_rng([seed, position])
            equal = draw_kind(draw, series, NIGHTS)
            false = sum(len(change_points(row.tolist(), level=level)) for row in equal) / equal.size
            shares = []
            for step in (0.03, 0.05, 0.10):
                values = draw_kind(draw, series, BEFORE + 2)
                values[:, BEFORE:] += np.log1p(step)
                shares.append(np.mean(np.array(detections(values, level, BEFORE)) <= 2))
            values = draw_kind(draw, series, BEFORE + AFTER)
            values[:, BEFORE:] += np.log1p(CREEP) * np.arange(1, AFTER + 1)
            shares.append(np.mean(np.array(detections(values, level, BEFORE)) < np.log(1.05) / np.log1p(CREEP)))
            yield (
                f"| {name} | {level:g} | {1000 * false:.1f} | " + " | ".join(f"{share:.0%}" for share in shares) + " |"
            )
