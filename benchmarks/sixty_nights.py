"""60 nights of 200 cells, of which 20 become slower: ``python -m benchmarks.nights sixty``.

The environment changes every night. Each of the 20 cells becomes 3, 5 or 10 % slower in a different night and stays so,
or begins to creep by 0.5 % a night. There are four kinds of noise. Each of them varies between the rounds of a night;
some also vary between nights, where they change the time of a cell but not that of its base.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import noise
from benchmarks.simulated_nights import Outcome, simulate
from benchmarks.simulated_turns import Floats, Noise, Scenario, normal
from runner.watch.nightly import CONFIRMATION_SHARE

NIGHTS, CELLS = 60, 200
STEPS = (0.03, 0.05, 0.10)
OF_EACH = 5
"""Cells of each step, and cells that creep."""
CREEP = 0.005
STARTS = (15, 45)
SD = 0.02
"""Of a round's log ratio; half of the stored A/A rounds are as close to their middle as with a normal of this sd."""
AA_ROUNDS = Path(__file__).parent / "data/aa_rounds.json"
MODE = 0.05
DISTANCE_OF_QUARTILES = 1.349
"""Of a normal distribution, in standard deviations."""


class Kind(NamedTuple):
    """Noise between the rounds of a night, and what it adds to each cell in each night."""

    of_rounds: Noise
    of_nights: Callable[[np.random.Generator], Floats] | None = None


@lru_cache(maxsize=1)
def aa_series() -> tuple[Floats, ...]:
    """Return the log ratios of stored A/A pairs, each in units of its spread, around its median."""
    stored = json.loads(AA_ROUNDS.read_text(encoding="utf-8"))
    series = (np.array(values) for run in stored["runs"].values() for values in run.values())
    return tuple((values - np.median(values)) / _spread(values) for values in series)


def _spread(values: Floats) -> float:
    low, high = np.percentile(values, [25, 75])
    return float(high - low) / DISTANCE_OF_QUARTILES


def resampled(sd: float) -> Noise:
    """Return blocks of successive rounds of stored A/A pairs, with either sign, scaled to a standard deviation.

    References:
        Künsch, The jackknife and the bootstrap for general stationary observations, Ann. Stat. 17, 1989: blocks.
    """

    def rounds(draw: np.random.Generator, count: int) -> Floats:
        series = aa_series()
        lengths = np.array([len(values) for values in series])
        values = series[int(draw.choice(len(series), p=lengths / lengths.sum()))]
        positions = (int(draw.integers(len(values))) + np.arange(count)) % len(values)
        return np.asarray(sd * draw.choice([-1.0, 1.0]) * values[positions])

    return rounds


def of_pairs(draw_pairs: noise.Draw) -> Noise:
    """Return noise of one pair at a time."""
    return lambda draw, rounds: draw_pairs(draw, 1, rounds)[0]


def two_modes(draw: np.random.Generator, rounds: int) -> Floats:
    """Return rounds in which either side is slower by MODE, 3 of 10 times, over a normal noise of 1 %."""
    is_slow = (draw.random((2, rounds)) < 0.3).astype(float)
    return np.asarray(draw.normal(0.0, SD / 2, rounds) + MODE * (is_slow[1] - is_slow[0]))


def nights_in_modes(draw: np.random.Generator) -> Floats:
    """Return nights in which a cell is slower by MODE, 3 of 10, and stays so for the next one with probability 0.5."""
    slow = draw.random((CELLS, NIGHTS)) < 0.3
    kept = draw.random((CELLS, NIGHTS)) < 0.5
    for night in range(1, NIGHTS):
        slow[:, night] = np.where(kept[:, night], slow[:, night - 1], slow[:, night])
    return MODE * slow.T.astype(float)


KINDS: Mapping[str, Kind] = {
    "normal": Kind(normal(SD)),
    "resampled A/A rounds": Kind(resampled(SD)),
    "autocorrelated": Kind(
        of_pairs(noise.autoregressive(0.5, SD)), lambda draw: noise.autoregressive(0.8, SD / 2)(draw, CELLS, NIGHTS).T
    ),
    "two modes": Kind(two_modes, nights_in_modes),
}


class Planted(NamedTuple):
    """True log times (N, P), and the first night (P,) in which a cell differs; N for a cell that never does."""

    log_times: Floats
    starts: Floats


def planted(draw: np.random.Generator) -> Planted:
    """Return the cells: OF_EACH of each step, OF_EACH that creep, and equal ones."""
    starts = np.full(CELLS, NIGHTS)
    count = OF_EACH * (len(STEPS) + 1)
    starts[:count] = draw.integers(*STARTS, count)
    nights = np.arange(NIGHTS)[:, None]
    log_times = np.zeros((NIGHTS, CELLS))
    for position, step in enumerate(STEPS):
        cells = slice(position * OF_EACH, (position + 1) * OF_EACH)
        log_times[:, cells] = np.log1p(step) * (nights >= starts[cells])
    creeping = slice(len(STEPS) * OF_EACH, count)
    log_times[:, creeping] = np.log1p(CREEP) * np.maximum(nights - starts[creeping] + 1, 0)
    return Planted(log_times, starts)


def nights_until(flags: Floats, starts: Floats) -> Floats:
    """Return the nights (P,) until a cell is flagged (N, P), 1 for the night of its change; infinite if it never is."""
    nights = np.arange(len(flags))[:, None]
    late = (flags > 0) & (nights >= starts)
    return np.where(late.any(axis=0), late.argmax(axis=0) - starts + 1, np.inf)


def figures(outcome: Outcome, truth: Planted) -> Iterator[str]:
    """Yield the columns of a row of the table."""
    count = OF_EACH * (len(STEPS) + 1)
    equal = outcome.slower[1:, count:]
    new = np.diff(equal, axis=0, prepend=0) > 0
    yield f"{new.sum():.0f} in {equal.size:,}: {1000 * new.mean():.2f}"
    yield f"{1000 * equal.mean():.2f}"
    nights, of_series = (nights_until(flags, truth.starts) for flags in (outcome.slower, outcome.suspected))
    limits = [2.0] * len(STEPS) + [np.log(1.05) / np.log1p(CREEP) - 0.5]
    for position, limit in enumerate(limits):
        cells = slice(position * OF_EACH, (position + 1) * OF_EACH)
        in_time = (nights[cells] <= limit).sum()
        yield f"{in_time:.0f} of {OF_EACH}; {_nights(nights[cells])}; {_nights(of_series[cells])}"


def _nights(values: Floats) -> str:
    return " ".join("-" if np.isinf(value) else f"{value:.0f}" for value in np.sort(values))


def lines(seed: int, kinds: Mapping[str, Kind] = KINDS) -> Iterator[str]:
    """Yield the rows of the table; each kind of noise has its own random numbers."""
    steps = " | ".join(f"{step:.0%}: in 2 nights; nights; series" for step in STEPS)
    yield (
        "| noise | time | false alerts in cell-nights: per 1,000 | cell-nights with a false alert, per 1,000 "
        f"| {steps} | creep below 5 %; nights; series |"
    )
    yield "|---" * (5 + len(STEPS)) + "|"
    for name, kind in kinds.items():
        for share in (None, CONFIRMATION_SHARE):
            draw = np.random.default_rng([seed, list(KINDS).index(name), 0])
            truth = planted(draw)
            effects = kind.of_nights(draw) if kind.of_nights else None
            scenario = Scenario(
                log_times=truth.log_times, noise=kind.of_rounds, sd=SD, share=share, night_effects=effects
            )
            columns = " | ".join(figures(simulate(draw, scenario), truth))
            yield f"| {name} | {'limited' if share else 'unlimited'} | {columns} |"
