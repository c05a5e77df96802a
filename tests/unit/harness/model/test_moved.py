"""Random numbers that are moved by a rounding: floats are, by the share that was asked for, and nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runner.harness.model.moved import MovedRandom

SHARE = 2.0**-24
FLOATS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda random: random.rand(50, 3),
    "randn": lambda random: random.randn(50),
    "uniform": lambda random: random.uniform(-1, 1, 50),
    "normal": lambda random: random.normal(size=50),
    "one number": lambda random: random.random_sample(),
    "choice": lambda random: random.choice([1.5, 2.5], 50),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "integers": lambda random: random.randint(0, 9, 50),
    "a permutation": lambda random: random.permutation(50),
    "booleans": lambda random: random.choice([True, False], 50),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_moved_up_and_down_by_the_share(name: str) -> None:
    plain, moved = FLOATS[name](MovedRandom.of(3, 0.0)), FLOATS[name](MovedRandom.of(3, SHARE))
    assert type(plain) is type(moved)
    ratio = np.asarray(moved) / plain - 1
    assert (
        0.9 * SHARE < abs(ratio).max() < 2.1 * SHARE
    )  # RandomState draws some numbers from others, which are moved, too
    assert ratio.size == 1 or ratio.min() < 0 < ratio.max()


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_float_is_drawn_as_it_is(name: str) -> None:
    plain, moved = OTHERS[name](MovedRandom.of(3, 0.0)), OTHERS[name](MovedRandom.of(3, SHARE))
    assert (plain == moved).all()


def test_without_a_share_it_is_the_generator_of_numpy() -> None:
    assert type(MovedRandom.of(3, 0.0)) is np.random.RandomState
    assert isinstance(MovedRandom.of(3, SHARE), np.random.RandomState)
