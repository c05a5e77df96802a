"""Two states over processes are found where there are two, and hardly ever where there is one."""

from collections.abc import Callable

import numpy as np
import pytest

from runner.stats.two_states import TwoStates, two_states

Floats = np.ndarray
DRAWS = 4000
QUARTILE_OF_T2, QUARTILE_OF_T3, QUARTILE = 0.8165, 0.7649, 0.6745
"""Upper quartiles of Student's t with 2 and 3 degrees of freedom, and of the normal distribution."""


def student(freedom: int, quartile: float, scale: float) -> Callable[[np.random.Generator, int], Floats]:
    """Return noise with heavy tails and the quartiles of normal noise of standard deviation ``scale``."""
    return lambda draw, count: np.exp(draw.standard_t(freedom, count) * scale * QUARTILE / quartile)


def log_normal(scale: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda draw, count: draw.lognormal(0, scale, count)


def test_the_states_are_the_medians_of_two_groups() -> None:
    states = two_states(np.array([2.4, 2.42, 0.5, 2.38, 2.4, 2.41]) * 1e-3)
    assert states == TwoStates((True, True, False, True, True, True), 0.5e-3, 2.4e-3)
    assert states.slow_count == 5


@pytest.mark.parametrize(
    "seconds",
    [
        [1.0, 2.0],  # no other process that one of them is like
        [1.0, 1.0, 1.4],  # one process alone, not far enough
        [1.0, 1.1, 1.2, 1.3, 1.7],  # the gap is a part of the scatter
        [1.0, 1.0, 1.15, 1.15],  # two groups that are near
        [*[1.0] * 20, 1.9],  # one of many
    ],
)
def test_times_of_one_state(seconds: list[float]) -> None:
    assert two_states(np.array(seconds)) is None


def test_groups_of_two_may_be_nearer_than_a_process_alone() -> None:
    assert two_states(np.array([1.0, 1.0, 1.3, 1.3])) is not None
    assert two_states(np.array([1.0, 1.0, 1.0, 1.3])) is None


@pytest.mark.simulation
@pytest.mark.parametrize("count", [3, 6, 9, 20])
@pytest.mark.parametrize(
    ("noise", "allowed"),
    [
        (log_normal(0.02), 0.0),
        (log_normal(0.04), 0.0),
        (log_normal(0.08), 0.003),
        (student(3, QUARTILE_OF_T3, 0.04), 0.01),
        (student(2, QUARTILE_OF_T2, 0.04), 0.04),
    ],
    ids=["log-normal 2 %", "log-normal 4 %", "log-normal 8 %", "t3 4 %", "t2 4 %"],
)
def test_false_alarms(noise: Callable[[np.random.Generator, int], Floats], allowed: float, count: int) -> None:
    draw = np.random.default_rng(5)
    alarms = sum(two_states(noise(draw, count)) is not None for _ in range(DRAWS))
    assert alarms / DRAWS <= allowed


@pytest.mark.simulation
@pytest.mark.parametrize("apart", [1.8, 2.7, 4.8])
@pytest.mark.parametrize("share", [1 / 6, 1 / 3, 1 / 2])
def test_two_states_of_six_processes_are_found_where_both_occur(share: float, apart: float) -> None:
    draw = np.random.default_rng(6)
    missed = 0
    for _ in range(DRAWS):
        is_slow = draw.random(6) < share
        states = two_states(draw.lognormal(0, 0.03, 6) * np.where(is_slow, apart, 1.0))
        missed += bool(is_slow.any() and not is_slow.all()) and states is None
    assert missed / DRAWS <= (0.02 if apart < 2 else 0.0)
