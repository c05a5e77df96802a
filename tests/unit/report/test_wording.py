"""Changes in words, where an interval has no end."""

import math

import pytest

from runner.core.metrics import BY_NAME
from runner.report.wording import (
    FARTHEST,
    NOTHING,
    change_range,
    interval,
    speedup_range,
    speedup_spread,
    visible_size,
)


@pytest.mark.parametrize(
    ("low", "high", "text", "bare"),
    [
        (1.2, math.inf, "more than 1.20x slower", "more than 1.20x"),
        (1.05, 1e9, "more than 5.0 % slower", "more than 5.0 %"),
        (0.0, 0.5, "more than 2.00x faster", "more than 2.00x"),
        (0.31, math.inf, "at most 3.2x faster", "at most 3.2x faster"),
        (0.0, 1.1, "at most 10 % slower", "at most 10 % slower"),
        (1.0, math.inf, "at least as slow", "at least as slow"),
        (1.0004, math.inf, "at least as slow", "at least as slow"),
        (0.9999, math.inf, "at least as slow", "at least as slow"),
        (0.0, 1.0, "at least as fast", "at least as fast"),
        (0.0, 0.9996, "at least as fast", "at least as fast"),
        (0.0, 1.0001, "at least as fast", "at least as fast"),
        (1500.0, 2000.0, "more than 1500x slower", "more than 1500x"),
        (0.0, math.inf, NOTHING, NOTHING),
        (1 / 13858, 296383.0, NOTHING, NOTHING),
        (1 / 320, 1e6, NOTHING, NOTHING),
        (1 / 11, 11.0, NOTHING, NOTHING),
        (0.1, 11.0, "11.0x slower to 10.0x faster", "11.0x slower to 10.0x faster"),
        (1.5, FARTHEST, "1.50x to 1000x slower", "1.50x to 1000x"),
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
    assert change_range(memory, 1.0, math.inf) == "at least as much memory"
    assert change_range(memory, 0.0, 1.0) == "at most as much memory"
    assert change_range(memory, 0.0, 1.0, direction=False) == "at most as much"


def test_tests_that_are_far_apart_are_no_open_interval() -> None:
    assert speedup_spread(1 / 2000, 3000.0) == "3000x slower to 2000x faster"


def test_a_clause_about_an_interval_without_ends_does_not_speak_of_one() -> None:
    assert [interval(ends) for ends in ("1.1x to 1.2x", NOTHING, "")] == ["95 % interval 1.1x to 1.2x", NOTHING, ""]


def test_a_change_that_only_a_wild_factor_would_be_is_none_that_can_be_seen() -> None:
    assert [visible_size(change) for change in (0.092, 8.9, 319.0, 2466898.0, math.inf)] == [
        "9.2 %",
        "9.9x",
        *("", "", ""),
    ]
