"""Change points of series of nights: positions, error rates, delays, and what two other programs see."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import noise
from runner.stats.change_points import LEVEL, change_points

ORACLES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data/change_points.json").read_text())["series"]
SD = 0.01


def with_step(change: float, before: int, after: int, seed: int, sd: float = SD) -> list[float]:
    """Return the log ratios of nights of which the last ones are slower."""
    values = np.random.default_rng(seed).normal(0, sd, before + after)
    values[before:] += np.log1p(change)
    return [float(value) for value in values]


def false_rate(draw: noise.Draw, level: float, series: int = 60, nights: int = 60) -> float:
    """Return the change points of a night of series without a change."""
    values = draw(np.random.default_rng(2), series, nights)
    return sum(len(change_points(row.tolist(), level=level)) for row in values) / (series * nights)


def test_a_clear_step_has_its_position_ratio_and_interval() -> None:
    (change,) = change_points(with_step(0.05, 20, 20, seed=0))
    assert (change.index, change.before, change.after) == (20, 20, 20)
    assert change.ratio_low < 1.05 < change.ratio_high
    assert change.ratio == pytest.approx(1.05, abs=0.01)
    assert change.p_value <= LEVEL


@pytest.mark.parametrize("change", [0.05, 0.1, -0.05])
def test_a_step_of_five_percent_is_detected_in_its_second_night(change: float) -> None:
    detected = [change_points(with_step(change, 20, 2, seed), level=0.02) for seed in range(40)]
    assert sum(any(each.index == 20 for each in series) for series in detected) >= 36


def test_a_single_slow_night_is_no_change() -> None:
    outlier = with_step(0.0, 30, 0, seed=3)
    outlier[20] += 0.3
    assert change_points(outlier) == ()
    assert change_points(outlier[:21]) == ()


def test_a_creep_is_detected_before_it_reaches_five_percent() -> None:
    creeping = 0
    for seed in range(40):
        flat, creep = with_step(0.0, 15, 0, seed), np.random.default_rng([5, seed]).normal(0, SD, 9)
        values = [*flat, *(creep + np.log1p(0.005) * np.arange(1, 10))]
        creeping += any(change.ratio > 1 and change.detected >= 15 for change in change_points(values, level=0.02))
    assert creeping >= 36


@pytest.mark.parametrize(
    ("draw", "highest"),
    [
        (noise.normal(SD), 1.0),
        (noise.modes(0.0, SD), 1.0),
        (noise.student(3, SD), 1.0),
        (noise.autoregressive(0.5, SD), 3.0),
    ],
)
def test_false_detections_are_as_rare_as_the_level_says(draw: noise.Draw, highest: float) -> None:
    assert false_rate(draw, 0.01) <= highest * 0.01


def test_a_detection_stays_when_nights_are_added() -> None:
    values = with_step(0.05, 20, 20, seed=4)
    by_night = [change_points(values[:count]) for count in range(1, len(values) + 1)]
    detected = [len(changes) for changes in by_night]
    assert detected == sorted(detected)
    assert detected[-1] == 1
    first = by_night[detected.index(1)][0]
    assert first.detected == detected.index(1)
    assert first.p_value == by_night[-1][0].p_value


def test_a_step_and_back_are_two_changes() -> None:
    values = np.random.default_rng(6).normal(0, SD, 50)
    values[20:28] += np.log(1.06)
    up, down = change_points(values.tolist())
    assert (up.index, down.index) == (20, 28)
    assert up.ratio > 1 > down.ratio


def test_nights_with_a_wide_interval_count_less() -> None:
    values = with_step(0.0, 20, 2, seed=7)
    values[-2:] = [value + 0.08 for value in values[-2:]]
    errors = np.full(22, SD**2)
    assert change_points(values, errors.tolist(), level=0.02)
    errors[-2:] = 0.08**2
    assert change_points(values, errors.tolist(), level=0.02) == ()


@pytest.mark.parametrize("values", [[], [0.0], [0.0] * 40, [0.0, 0.1, 0.2]])
def test_short_and_constant_series_have_no_change(values: list[float]) -> None:
    assert change_points(values) == ()


def test_a_step_without_any_noise_is_a_change() -> None:
    (change,) = change_points([0.0] * 10 + [0.01] * 10)
    assert change.index == 10


def positions(entry: dict[str, Any]) -> list[int]:
    """Return the change points of a stored series."""
    return [change.index for change in change_points(entry["log_ratios"])]


def of(*shapes: str) -> list[dict[str, Any]]:
    """Return the stored series of some shapes."""
    return [entry for entry in ORACLES if entry["shape"] in shapes]


@pytest.mark.parametrize(
    "entry", of("step of 5 %", "step of 10 %, late", "faster by 5 %"), ids=lambda entry: entry["noise"]
)
def test_a_clear_step_is_where_the_other_programs_see_it(entry: dict[str, Any]) -> None:
    (truth,) = entry["truth"]
    assert truth in positions(entry)
    assert truth in entry["otava"]
    assert entry["asv"] in ([], [truth])


@pytest.mark.parametrize(
    "entry", of("two steps", "step and back"), ids=lambda entry: f"{entry['shape']} {entry['noise']}"
)
def test_both_changes_are_detected_within_two_nights_of_their_position(entry: dict[str, Any]) -> None:
    detected = positions(entry)
    assert all(min(abs(index - truth) for index in detected) <= 2 for truth in entry["truth"])


def extra(detected: list[int], truth: list[int]) -> int:
    """Return how many change points are farther than two nights from each true one."""
    return sum(all(abs(index - each) > 2 for each in truth) for index in detected)


def test_there_are_fewer_false_changes_than_e_divisive_means_show() -> None:
    ours, otava = (
        sum(extra(changes(entry), entry["truth"]) for entry in ORACLES)
        for changes in (positions, lambda entry: entry["otava"])
    )
    assert ours <= otava
    assert sum(bool(positions(entry)) for entry in of("noise")) <= 1


def test_a_step_and_back_is_seen_more_often_than_by_the_other_programs() -> None:
    series = of("step and back")
    complete = [sum(len(changes(entry)) >= 2 for entry in series) for changes in (positions, lambda e: e["otava"])]
    assert complete[0] == len(series) > complete[1]
