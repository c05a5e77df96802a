"""How much builds of an environment differ from each other, by the ratios of earlier nights."""

from typing import Any

import numpy as np
import pytest

from benchmarks.nights import step
from benchmarks.simulated_nights import simulate
from benchmarks.simulated_turns import Scenario, normal
from runner.nights.looks import EarlierNights, Look
from runner.watch.nightly.build_scatter import MIN_RATIOS, RECENT_NIGHTS, build_scatters

NIGHTS = tuple(f"202611{day:02}-023000-abcd" for day in range(1, 29))
WIDTH = 0.012  # half of the interval of a ratio


def looks(ratios: dict[str, float], cells: int = 20, **fields: Any) -> EarlierNights:
    """Return nights that measured each of some cells in turns; ``ratios`` has the ratio of each night."""
    draw = np.random.default_rng(0)
    by_pair = {}
    for position in range(cells):
        of_cell = []
        for night, spread in ratios.items():
            ratio = float(np.exp(draw.normal(0, spread)))
            ends: dict[str, Any] = {"ratio_low": ratio * (1 - WIDTH), "ratio_high": ratio * (1 + WIDTH)}
            of_cell.append(Look(night, "measured-again", "inconclusive", ratio=ratio, rounds=9, **ends, **fields))
        by_pair[f"torch-2.x/nn-lstm/rnn-step/c{position}/train/fp32", NIGHTS[0]] = tuple(of_cell)
    return EarlierNights(NIGHTS, by_pair, {}, {})


def test_what_rounds_explain_is_no_scatter_of_builds() -> None:
    scatter = build_scatters(looks(dict.fromkeys(NIGHTS[-3:], 0.004)), "")["torch-2.x", "time"]
    assert (scatter.spread, scatter.limit) == (0.0, 1.0)


def test_builds_that_differ_have_a_spread_and_a_limit() -> None:
    scatter = build_scatters(looks(dict.fromkeys(NIGHTS[-5:], 0.02)), "")["torch-2.x", "time"]
    assert scatter.spread == pytest.approx(0.02, rel=0.3)
    assert 1 + 3 * scatter.spread < scatter.limit < 1 + 5 * scatter.spread


def test_few_ratios_old_nights_and_confirmed_regressions_show_nothing() -> None:
    assert build_scatters(looks({NIGHTS[-1]: 0.02}, cells=MIN_RATIOS - 1), "") == {}
    assert build_scatters(looks(dict.fromkeys(NIGHTS[: len(NIGHTS) - RECENT_NIGHTS], 0.02)), "") == {}
    assert build_scatters(looks(dict.fromkeys(NIGHTS[-5:], 0.02), confirmed_in=NIGHTS[-5]), "") == {}


def test_nights_on_another_device_show_nothing() -> None:
    nights = looks(dict.fromkeys(NIGHTS[-5:], 0.02), device="docker H100")
    assert build_scatters(nights, "docker AMD EPYC") == {}
    assert ("torch-2.x", "time") in build_scatters(nights, "docker H100")


@pytest.mark.simulation
def test_nights_of_builds_that_differ_have_few_false_alerts_and_a_large_step_is_reported() -> None:
    draw = np.random.default_rng(1)
    log_times = step(0.15, 10, 2, first=8, nights=12) + draw.normal(0, 0.01, (12, 10))
    outcome = simulate(draw, Scenario(log_times=log_times, noise=normal(0.02), sd=0.02))
    assert outcome.slower[8:, :2].any(axis=0).all()
    assert (np.diff(outcome.slower[:, 2:], axis=0) > 0).mean() <= 0.015
