"""Random choices for the generators, from a seed, from hypothesis or from the bytes of a coverage-guided fuzzer."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Draws:
    """Draws from ``below``, a function that returns a number from 0 to below its argument, which is at least 1."""

    def __init__(self, below: Callable[[int], int]) -> None:
        """Take the source of the numbers."""
        self.below = below

    @classmethod
    def from_seed(cls, seed: int) -> "Draws":
        """Return draws of a pseudo-random generator."""
        source = random.Random(seed).random
        return cls(lambda count: int(source() * count))

    @classmethod
    def from_hypothesis(cls, draw: Callable[[st.SearchStrategy[int]], int]) -> "Draws":
        """Return draws that hypothesis makes, and shrinks."""
        return cls(lambda count: draw(st.integers(0, count - 1)))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Draws":
        """Return draws from bytes, for atheris; after their end, every draw is 0."""
        position = 0

        def below(count: int) -> int:
            nonlocal position
            size = (max(count - 1, 1).bit_length() + 7) // 8
            value = int.from_bytes(data[position : position + size], "little")
            position += size
            return value % count

        return cls(below)

    def pick(self, values: Sequence[T]) -> T:
        """Return an element of a sequence that is not empty."""
        return values[self.below(len(values))]

    def chance(self, numerator: int, denominator: int) -> bool:
        """Return True with a probability, and False where the draws are 0."""
        return self.below(denominator) >= denominator - numerator
