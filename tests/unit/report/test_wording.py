"""Changes in words, where an interval has no end."""

import math

import pytest

from runner.core.metrics import BY_NAME
from runner.report.wording import FARTHEST, change_range, speedup_range


@pytest.mark.parametrize(
    ("low", "high", "text", "bare"),
    [
        (1.2, math.inf, "more than 1.20x slower", "more than 1.20x"),
        (1.05, 1e9, "more than 5.0 % slower", "more than 5.0 %"),
        (0.0, 0.5, "more than 2.00x faster", "more than 2.00x"),
        (0.31, math.inf, "at most 3.2x faster", "at most 3.2x faster"),
        (0.0, 1.1, "at most 10 % slower", "at most 10 % slower"),
        (0.0, math.inf, "", ""),
        (1 / FARTHEST, FARTHEST, "1000000x slower to 1000000x faster", "1000000x slower to 1000000x faster"),
    ],
)
def test_an_open_interval_says_how_far_its_other_end_is(low: float, high: float, text: str, bare: str) -> None:
    assert speedup_range(low, high) == text
    assert speedup_range(low, high, direction=False) == bare


def test_an_open_interval_has_the_noun_of_its_metric() -> None:
    memory = BY_NAME["memory"]
    assert change_range(memory, 1.2, math.inf) == "more than 1.20x more memory"
    assert change_range(memory, 1.2, math.inf, direction=False) == "more than 1.20x"
    assert change_range(memory, 0.9, math.inf) == "at most 10 % less"
