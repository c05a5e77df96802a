"""How many change points of the site are false, and how soon a true one is seen: ``python -m benchmarks.nights site``.

CELLS equal cells that the same nights measure, as a table of the site and each by itself; and a slow-down of 3, 5 or
10 % in one of them, and in a tenth of them. sd is the standard deviation of a night's log ratio.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks import noise
from benchmarks.noise import Draw, Floats
from runner.stats.change_points import change_points
from runner.stats.changes_of_tables import NightlySeries, change_points_of

CELLS, NIGHTS = 200, 60
SLOWER = CELLS // 10
START = 40
WEEK = 7
SEASON, SEASON_NIGHTS = 0.01, 120


def seasonal(sd: float) -> Draw:
    """Return normal noise over a season: a sine of one per cent, in another phase for each cell."""

    def nights(draw: np.random.Generator, cells: int, count: int) -> Floats:
        phase = draw.random((cells, 1)) + np.arange(count) / SEASON_NIGHTS
        return np.asarray(draw.normal(0, sd, (cells, count)) + SEASON * np.sin(2 * np.pi * phase))

    return nights


def noisier(sd: float) -> Draw:
    """Return normal noise whose standard deviation is a third in the first half of the nights."""
    return lambda draw, cells, count: (
        draw.normal(0, 1, (cells, count)) * np.where(np.arange(count) < count // 2, sd / 3, sd)
    )


def laplace(sd: float) -> Draw:
    """Return noise of Laplace's distribution."""
    return lambda draw, cells, count: draw.laplace(0, sd / 2**0.5, (cells, count))


KINDS: Mapping[str, Draw] = {
    "normal": noise.normal(0.012),
    "Student's t with 3 degrees of freedom": noise.student(3, 0.012),
    "Laplace": laplace(0.012),
    "AR(1) 0.5": noise.autoregressive(0.5, 0.012),
    "a season of 1 %": seasonal(0.012),
    "three times as noisy half way": noisier(0.012),
}


def table(values: Floats) -> list[NightlySeries]:
    """Return series (C, N) of the same nights."""
    names = [f"{night:03}" for night in range(values.shape[1])]
    return [NightlySeries(row.tolist(), None, names) for row in values]


def delays(values: Floats, cells: Sequence[int]) -> Floats:
    """Return the nights until the site shows each slow-down that begins in night START, 1 for that night."""
    changes = change_points_of(table(values))
    nights = [
        min(
            (each.detected - START + 1 for each in changes[cell] if each.ratio > 1 and each.detected >= START),
            default=99,
        )
        for cell in cells
    ]
    return np.array(nights, dtype=np.float64)


def lines(seed: int, histories: int = 3) -> Iterator[str]:
    """Yield the rows of the table; each kind of noise has its own random numbers."""
    yield (
        f"| noise of nights | false in a week of {CELLS} cells, each by itself | as a table "
        f"| 5 % slower, the only one: nights | 10 % | 5 %, one of {SLOWER}: nights | 10 % |"
    )
    yield "|---" * 7 + "|"
    for position, (name, draw_kind) in enumerate(KINDS.items()):
        draw = np.random.default_rng([seed, position])
        alone = together = 0
        waits: dict[tuple[int, float], list[float]] = {}
        for _ in range(histories):
            values = draw_kind(draw, CELLS, NIGHTS)
            alone += sum(len(change_points(row.tolist())) for row in values)
            together += sum(map(len, change_points_of(table(values))))
            for slower in (1, SLOWER):
                for step in (0.05, 0.10):
                    cells = range(slower)
                    changed = values.copy()
                    changed[:slower, START:] += np.log1p(step)
                    waits.setdefault((slower, step), []).extend(delays(changed, cells).tolist())
        weeks = histories * NIGHTS / WEEK
        columns = (f"{np.median(of_kind):.0f}" for of_kind in waits.values())
        yield f"| {name} | {alone / weeks:.1f} | {together / weeks:.2f} | " + " | ".join(columns) + " |"
