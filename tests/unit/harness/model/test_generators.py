"""Generators that a user's object holds are found, put back to where they stood, and seeded otherwise."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runner.harness.model import generators


class TorchGenerator:
    """A stand-in for ``torch.Generator``."""

    def __init__(self) -> None:
        """Build it."""
        self.number = 0

    def get_state(self) -> int:
        """Return where it stands."""
        return self.number

    def set_state(self, number: int) -> None:
        """Put it back."""
        self.number = number

    def manual_seed(self, number: int) -> None:
        """Seed it."""
        self.number = number

    def draw(self) -> int:
        """Return the next number."""
        self.number += 1
        return self.number


TorchGenerator.__module__, TorchGenerator.__name__ = "torch._C", "Generator"

MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], bool]] = {
    "torch": (TorchGenerator, TorchGenerator.draw, True),
    "numpy": (lambda: np.random.default_rng(3), lambda each: each.random(), True),
    "a RandomState": (lambda: np.random.RandomState(3), lambda each: each.rand(), False),
    "python": (lambda: random.Random(3), random.Random.random, False),
}


@pytest.mark.parametrize("name", MADE)
def test_a_generator_is_put_back(name: str) -> None:
    make, draw, _ = MADE[name]
    made = make()
    draw(made)
    put_back: Any = generators.kept(made)
    numbers = [draw(made), draw(made)]
    put_back()
    assert [draw(made), draw(made)] == numbers
    put_back()
    assert draw(made) == numbers[0]


@pytest.mark.parametrize("name", MADE)
def test_a_generator_whose_numbers_releases_may_change_is_seeded_otherwise(name: str) -> None:
    make, draw, changes = MADE[name]
    made = make()
    generators.reseed(made, 7919)
    assert (draw(made) != draw(make())) == changes


def test_generators_are_found_once_and_nothing_else_is() -> None:
    made = MADE["numpy"][0]()
    assert generators.among([made, 3, "text", np.zeros(3), np.random, made]) == [made]
