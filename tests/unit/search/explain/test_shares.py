"""What a run shows of its candidates: shares with intervals, and effects."""

from math import log
from pathlib import Path

import numpy as np
import pytest

from runner.analysis.analyse import analyse_run
from runner.core.model.cells import without_environment
from runner.search.explain.shares import RunEffects, run_effects, share
from tests.support.fake_runs import bad, cell, good, make, times

GOOD, BAD, BACK, NOTHING, WRONG = (cell(f"torch-{name}") for name in ("old", "new", "back", "nothing", "wrong"))
SECONDS = {GOOD: 0.1, BAD: 0.2, BACK: 0.11, NOTHING: 0.2}


def measured(folder: Path, rounds: int = 8) -> RunEffects:
    """Return what a run shows whose rounds scatter by half a percent, each side by itself."""
    noise = np.random.default_rng(7).normal(1, 0.005, (rounds, len(SECONDS)))
    records = [
        good(of, number, times(seconds * noise[number, column]))
        for number in range(rounds)
        for column, (of, seconds) in enumerate(SECONDS.items())
    ]
    records += [bad(WRONG, number, "wrong-result", "its losses differ") for number in range(rounds)]
    analysis = analyse_run(make(folder, records), 0.02)
    names = [of.environment for of in (BACK, NOTHING, WRONG)]
    ends = GOOD.environment, BAD.environment
    return run_effects(analysis, "time", without_environment(GOOD.id), ends, names)


def test_a_run_shows_what_takes_the_change_back(tmp_path: Path) -> None:
    shown = measured(tmp_path)
    assert shown.change.verdict == "faster"
    effects = {name: each.effect for name, each in shown.candidates.items()}
    assert effects == {"torch-back": "takes back", "torch-nothing": "nothing", "torch-wrong": "changes the result"}
    back = shown.candidates["torch-back"].share
    assert back is not None
    assert back.low < log(0.2 / 0.11) / log(2) < back.high
    assert back.high - back.low < 0.05
    assert shown.candidates["torch-wrong"].share is None
    assert shown.candidates["torch-wrong"].reason == "its losses differ"


def test_a_share_needs_two_rounds_in_common() -> None:
    assert share({1: -1.0, 2: -1.0}, {2: -0.5, 3: -0.5}) is None
    assert share({}, {}) is None


def test_noise_of_the_changed_release_that_both_ratios_share_does_not_widen_the_share() -> None:
    shared = np.random.default_rng(1).normal(0, 0.3, 8)
    total = {number: -2.0 + value for number, value in enumerate(shared.tolist())}
    all_of_it = share(total, total)
    assert all_of_it is not None
    assert (all_of_it.estimate, all_of_it.low, all_of_it.high) == pytest.approx((1.0, 1.0, 1.0))


@pytest.mark.parametrize("factor", [4.0, 9.0])
def test_dependent_rounds_widen_the_interval(factor: float) -> None:
    total = dict(enumerate([-1.0, -1.1, -0.9, -1.05]))
    part = dict(enumerate([-0.5, -0.45, -0.6, -0.4]))
    plain, wide = share(total, part), share(total, part, factor)
    assert plain is not None
    assert wide is not None
    assert wide.estimate == plain.estimate
    assert wide.high - wide.low == pytest.approx(factor**0.5 * (plain.high - plain.low))


def test_intervals_contain_the_share_as_often_as_they_say() -> None:
    random = np.random.default_rng(2)
    hits = 0
    for _ in range(2000):
        old, new, other = (random.normal(mean, 0.05, 8) for mean in (0.0, 0.7, 0.3))
        result = share(dict(enumerate(old - new)), dict(enumerate(other - new)))
        assert result is not None
        hits += result.low <= 0.4 / 0.7 <= result.high
    assert 1870 <= hits <= 1930  # 95 % of 2000, by three standard deviations
