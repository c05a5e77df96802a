"""Change points of cells that the same nights measured: a night has a false discovery rate."""

import numpy as np
import pytest

from benchmarks.site_noise import noisier, table
from runner.stats.change_points import LEVEL, RECENT, change_points
from runner.stats.changes_of_tables import NightlySeries, change_points_of

SD = 0.01


def nights(cells: int, count: int, seed: int = 0) -> np.ndarray:
    """Return the log ratios (C, N) of equal cells."""
    return np.random.default_rng(seed).normal(0, SD, (cells, count))


def test_a_series_alone_has_the_change_points_that_it_has_by_itself() -> None:
    for seed in range(20):
        values = nights(1, 40, seed)
        values[0, 25:] += 0.05
        (alone,) = change_points_of(table(values))
        assert alone == change_points(values[0].tolist())
        assert alone


def test_a_table_of_equal_cells_has_fewer_false_changes_than_its_cells_by_themselves() -> None:
    values = nights(60, 24, seed=3)
    alone = sum(len(change_points(row.tolist(), level=0.02)) for row in values)
    assert alone >= 3
    assert sum(map(len, change_points_of(table(values), level=0.02))) < alone / 2


def test_a_change_of_one_cell_of_many_is_detected_a_little_later_and_one_of_all_at_once() -> None:
    values = nights(60, 32, seed=4)
    values[0, 25:] += 0.05
    of_one = change_points_of(table(values))[0]
    assert [change.index for change in of_one] == [25]
    assert of_one[0].detected >= change_points(values[0].tolist())[0].detected
    values[:, 25:] += 0.05
    everywhere = change_points_of(table(values))
    assert sum(any(change.detected <= 28 for change in changes) for changes in everywhere) > 30


def test_nights_without_a_cell_do_not_count_it() -> None:
    values = nights(1, 40, seed=5)[0]
    values[25:] += 0.03
    names = [f"{night:03}" for night in range(40)]
    of_others = [NightlySeries([0.0] * 10, None, names[:10])] * 500
    assert change_points_of([NightlySeries(values.tolist(), None, names), *of_others])[0] == change_points(
        values.tolist()
    )


@pytest.mark.simulation
def test_quiet_nights_of_long_ago_do_not_set_the_scatter() -> None:
    """Twenty noisy nights after forty quiet ones: what the noisy ones scatter by is no change of level."""
    values = noisier(0.012)(np.random.default_rng(6), 200, 80)
    late = [change.detected for row in values for change in change_points(row.tolist())]
    assert sum(night >= 40 + RECENT for night in late) <= 10 * LEVEL * 200 * 20
