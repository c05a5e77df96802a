"""Rounds that are alike are reported, and independent ones are not, whatever rows have in common."""

from collections.abc import Mapping

import numpy as np
import pytest

from runner.stats.independence import MAX_P_VALUE, SerialCorrelation, serial_correlation
from runner.stats.intervals import Floats


def rows_of(values: Floats) -> list[dict[int, float]]:
    return [dict(enumerate(row.tolist(), 1)) for row in values]


def checked(rows: list[dict[int, float]]) -> SerialCorrelation:
    correlation = serial_correlation(rows)
    assert correlation is not None
    return correlation


def autoregressive(draw: np.random.Generator, rows: int, rounds: int, phi: float) -> Floats:
    noise = draw.normal(size=(rows, rounds))
    for number in range(1, rounds):
        noise[:, number] = phi * noise[:, number - 1] + (1 - phi**2) ** 0.5 * noise[:, number]
    return noise


@pytest.mark.parametrize(("rows", "rounds"), [(100, 5), (15, 12)])
def test_rounds_that_depend_on_the_previous_ones_are_reported(rows: int, rounds: int) -> None:
    draw = np.random.default_rng(1)
    reports = [checked(rows_of(autoregressive(draw, rows, rounds, 0.5))) for _ in range(100)]
    assert np.mean([report.is_significant for report in reports]) >= 0.95
    assert np.mean([report.phi for report in reports]) == pytest.approx(0.5, abs=0.06)
    assert {(report.rows, report.rounds) for report in reports} == {(rows, rounds)}


@pytest.mark.parametrize(("rows", "rounds"), [(60, 5), (15, 12)])
@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_independent_rounds_are_seldom_reported(rows: int, rounds: int, shared: float) -> None:
    draw = np.random.default_rng(2)
    reports = [
        checked(rows_of(draw.normal(size=(rows, rounds)) + shared * draw.normal(size=rounds) * draw.random((rows, 1))))
        for _ in range(200)
    ]
    assert np.mean([report.is_significant for report in reports]) <= MAX_P_VALUE + 4 * (0.02 * 0.98 / 200) ** 0.5


def test_rounds_that_alternate_are_not_reported() -> None:
    draw = np.random.default_rng(3)
    values = draw.normal(size=(50, 6)) + 2 * (-1.0) ** np.arange(6)
    report = checked(rows_of(values))
    assert report.correlation < -0.5
    assert not report.is_significant
    assert report.variance_factor(6) == 1.0


def test_five_rounds_have_a_p_value_of_two_orders_in_120() -> None:
    values = np.cumsum(np.random.default_rng(4).normal(size=(200, 5)), axis=1)
    report = checked(rows_of(values))
    assert report.p_value == pytest.approx(2 / 120)
    assert report.variance_factor(5) > 4
    assert report.variance_factor(1) == 1.0


def test_rows_of_fewer_rounds_take_part_in_their_order() -> None:
    draw = np.random.default_rng(5)
    values = autoregressive(draw, 60, 8, 0.7)
    rows: list[Mapping[int, float]] = []
    for number, row in enumerate(rows_of(values)):
        rows.append(row if number % 2 else {at: value for at, value in row.items() if at not in {2, 6, 7}})
    report = serial_correlation(rows)
    assert report is not None
    assert (report.rows, report.rounds) == (60, 8)
    assert report.is_significant


def test_without_five_rounds_that_differ_there_is_no_check() -> None:
    assert serial_correlation([]) is None
    assert serial_correlation(rows_of(np.random.default_rng(6).normal(size=(50, 4)))) is None
    assert serial_correlation([dict.fromkeys(range(6), 0.1)]) is None


def test_the_error_is_spent_over_the_looks() -> None:
    looks, draw = (3, 4, 5, 7, 9, 12, 15, 20), np.random.default_rng(8)
    reports = [
        [serial_correlation(rows_of(values[:, :look]), looks) for look in looks[2:]]
        for values in draw.normal(size=(400, 3, 20))
    ]
    warned = np.array([[each is not None and each.is_significant for each in of_run] for of_run in reports])
    assert not warned[:, 0].any()  # no order of 5 rounds is as rare as the share of the level
    assert warned.any(axis=1).mean() <= MAX_P_VALUE + 2 * (0.02 * 0.98 / 400) ** 0.5
    assert warned.any(axis=1).mean() > 0


def test_a_single_look_has_all_of_the_error() -> None:
    values = np.cumsum(np.random.default_rng(4).normal(size=(200, 5)), axis=1)
    for looks in ((), (5,), (3,)):
        report = serial_correlation(rows_of(values), looks)
        assert report is not None
        assert (report.level, report.is_significant) == (MAX_P_VALUE, True)


def test_few_rows_begin_with_a_small_correlation_and_follow_their_rounds() -> None:
    draw = np.random.default_rng(9)

    def phis(rounds: int, phi: float) -> list[float]:
        return [checked(rows_of(autoregressive(draw, 2, rounds, phi))).phi for _ in range(100)]

    assert 0.1 < np.mean(phis(5, 0.0)) < 0.25
    assert np.mean(phis(20, 0.0)) < 0.15
    assert np.mean(phis(5, 0.8)) < np.mean(phis(20, 0.8))
    assert np.mean(phis(20, 0.8)) > 0.4


def test_only_long_rows_of_few_have_wider_errors() -> None:
    report = checked(rows_of(np.array([[0.0, 0.1, 0.05, 0.02, 0.07]])))
    assert (report.is_unknown, report.is_significant) == (True, False)
    assert report.variance_factor(4) == 1.0
    assert report.variance_factor(5) > 1.2
    values = np.random.default_rng(10).normal(size=(5, 5))
    many = checked(rows_of(values))
    assert (many.is_unknown, many.variance_factor(5)) == (False, 1.0)
    short: list[Mapping[int, float]] = [*rows_of(values[:1]), *rows_of(values[1:, :3])]
    assert not (serial_correlation(short) or many).is_unknown


def test_the_unit_of_a_row_does_not_matter_much() -> None:
    draw = np.random.default_rng(7)
    values = autoregressive(draw, 100, 5, 0.6)
    wide = checked(rows_of(values * np.exp(draw.normal(0, 1.5, (100, 1)))))
    assert wide.correlation == pytest.approx(checked(rows_of(values)).correlation)
    assert wide.is_significant
