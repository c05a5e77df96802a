"""The axis of speed-ups: it reaches the ends of intervals, cuts those far off, and has lines whose labels fit."""

from itertools import pairwise

import pytest

from runner.analysis.comparison_model import Row
from runner.report.pictures import forest
from runner.report.speedup_axis import LETTER, NARROWEST, Scale, scale, tick_label
from tests.support.fake_runs import cell


def row(ratio: float, low: float | None, high: float | None) -> Row:
    return Row(
        base=cell("torch-1.0"), other=cell(), ratio=ratio, ratio_low=low, ratio_high=high, verdict="faster", rounds=3
    )


def test_the_axis_reaches_the_ends_of_the_intervals() -> None:
    axis = scale([row(0.1, 0.05, 0.2), row(1.9, 1.5, 2.4)])
    assert axis.low < 0.05
    assert axis.high > 2.4
    assert "cut" not in forest(row(0.1, 0.05, 0.2), axis)


def test_an_end_that_is_far_off_is_cut_with_an_arrow() -> None:
    wild = row(0.5, 0.001, 300.0)
    axis = scale([wild, row(0.9, 0.8, 1.0)])
    assert 0.1 < axis.low < 0.2
    assert axis.high < 10
    assert forest(wild, axis).count('class="cut"') == 2


def test_noise_is_drawn_small() -> None:
    axis = scale([row(0.999, 0.998, 1.001)])
    assert axis.low <= 1 / NARROWEST
    assert axis.high >= NARROWEST


@pytest.mark.parametrize(
    ("low", "high"), [(0.9, 1.1), (0.7, 1.3), (0.4, 2.0), (0.08, 2.2), (0.004, 60.0), (0.001, 1000.0)]
)
def test_lines_are_on_both_sides_of_1_with_room_for_their_labels(low: float, high: float) -> None:
    axis = Scale(low, high)
    lines = axis.ticks()
    assert 1.0 in lines
    assert 3 <= len(lines) <= 9
    assert all(second - first > 2 * LETTER for first, second in pairwise(map(axis.x, lines)))
    assert axis.x(high) < axis.x(1.0) < axis.x(low)


def test_labels_have_no_direction() -> None:
    assert [tick_label(ratio) for ratio in (2.0, 0.5, 1 / 16, 1.0, 1.1)] == ["2x", "2x", "16x", "same", "10 %"]
