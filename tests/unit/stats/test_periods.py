"""Calls that repeat after so many are found, and noise is not."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.stats.periods import Period, period

Floats = NDArray[np.float64]
Positions = NDArray[np.int_]
LED = np.array([number for number in range(450) if number % 3])  # turns of two samples after one that leads


def rounds(seconds: Callable[[Positions], Floats], at: Positions, count: int, seed: int = 1) -> list[Floats]:
    """Return rounds of a step with a noise of 2 %; each begins at another call."""
    draw = np.random.default_rng(seed)
    return [seconds(at + 7 * number) * np.exp(draw.normal(0, 0.02, len(at))) for number in range(count)]


def every(length: int, factor: float) -> Callable[[Positions], Floats]:
    return lambda at: np.where(at % length == 0, factor, 1.0)


def buckets(at: Positions) -> Floats:
    return np.linspace(1.0, 12.0, 8)[at % 8]


@pytest.mark.parametrize(
    ("seconds", "length", "difference"),
    [(buckets, 8, 12.0), (every(4, 2.0), 4, 2.0), (every(10, 10.0), 10, 10.0), (every(20, 5.0), 20, 5.0)],
)
@pytest.mark.parametrize("at", [np.arange(200), LED[:200]], ids=["all", "led"])
def test_period_is_found(at: Positions, seconds: Callable[[Positions], Floats], length: int, difference: float) -> None:
    repeating = period(rounds(seconds, at, 5), [at] * 5)
    assert repeating is not None
    assert repeating.length == length
    assert repeating.difference == pytest.approx(difference, rel=0.05)


def test_rare_slow_calls_have_a_period() -> None:
    at = np.arange(400)
    repeating = period(rounds(every(100, 50.0), at, 3), [at] * 3)
    assert repeating == Period(100, repeating.difference if repeating else 0.0, is_of_all=False)
    assert repeating.difference == pytest.approx(50.0, rel=0.05)


def test_a_small_difference_is_no_period() -> None:
    at = np.arange(200)
    assert period(rounds(every(4, 1.08), at, 5), [at] * 5) is None
    assert period(rounds(every(4, 1.15), at, 5), [at] * 5) is not None


def test_too_few_samples_have_no_period() -> None:
    at = np.arange(8)
    assert period(rounds(buckets, at, 3), [at] * 3) is None


def test_the_first_sample_of_a_turn_may_be_slower() -> None:
    """Others have used the caches; a turn has three calls, of which the first leads."""
    cold = rounds(lambda at: np.where(at % 3 == 1, 1.3, 1.0), LED, 1)
    assert period(cold, [LED], turn=3) is None
    assert period(cold, [LED], turn=0) is not None
    slow_last = rounds(lambda at: np.where(at % 3 == 2, 1.3, 1.0), LED, 1)
    assert period(slow_last, [LED], turn=3) is not None


def independent(draw: np.random.Generator, count: int) -> Floats:
    return np.asarray(np.exp(draw.normal(0, 0.1, count)))


def with_outliers(draw: np.random.Generator, count: int) -> Floats:
    is_slow = draw.random(count) < 0.05
    return np.where(is_slow, draw.uniform(2, 20, count), 1.0) * independent(draw, count)


def with_rare_outliers(draw: np.random.Generator, count: int) -> Floats:
    return np.where(draw.random(count) < 0.01, 20.0, 1.0) * independent(draw, count)


def wandering(draw: np.random.Generator, count: int) -> Floats:
    logs = np.zeros(count)
    for number, change in enumerate(draw.normal(0, 0.1, count - 1)):
        logs[number + 1] = 0.8 * logs[number] + change
    return np.asarray(np.exp(logs))


def in_bursts(draw: np.random.Generator, count: int) -> Floats:
    is_slow = np.zeros(count, dtype=np.bool_)
    for begin in draw.integers(0, count - 6, 4):
        is_slow[begin : begin + draw.integers(1, 6)] = True
    return np.where(is_slow, 5.0, 1.0) * independent(draw, count)


@pytest.mark.simulation
@pytest.mark.parametrize("noise", [independent, with_outliers, with_rare_outliers, wandering, in_bursts])
@pytest.mark.parametrize(("count", "rounds_of"), [(40, 3), (150, 5)])
def test_fewer_than_one_cell_in_a_hundred_has_a_period_by_chance(
    noise: Callable[[np.random.Generator, int], Floats], count: int, rounds_of: int
) -> None:
    draw, at, cells = np.random.default_rng(3), np.arange(count), 400
    periods = [period([noise(draw, count) for _ in range(rounds_of)], [at] * rounds_of) for _ in range(cells)]
    assert sum(each is not None for each in periods) < cells / 100
