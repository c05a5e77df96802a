"""The evidence of rows without their outliers."""

import numpy as np
import pytest

from benchmarks.promises import evidence_of
from runner.stats.outliers import MIN_ROUNDS, without_outliers

QUIET = [0.048, 0.05, 0.052, 0.047, 0.051]


def test_a_row_with_an_outlier_has_the_centre_and_the_noise_of_the_other_rounds() -> None:
    rows = np.array([[*QUIET, 0.7], [*QUIET, 0.05]])
    robust = without_outliers(evidence_of(rows), list(rows))
    assert robust.mean[0] == pytest.approx(0.0505)
    assert 0.0005 < robust.error[0] < 0.002
    assert np.isinf(robust.error[1])  # nothing outlies


def test_few_rounds_coarse_ones_and_those_without_ranks_have_no_other_view() -> None:
    short = np.array([0.05, 0.051, 0.049, 0.9])
    coarse = np.array([0.0, 0.0, 0.0, 0.0, 0.7])
    rows = [short, coarse, None]
    evidence = evidence_of(np.array([QUIET] * 3))
    assert len(short) < MIN_ROUNDS
    assert np.isinf(without_outliers(evidence, rows).error).all()


def test_a_factor_of_the_errors_applies_to_the_new_ones() -> None:
    rows = np.array([[*QUIET, 0.7]])
    plain = evidence_of(rows)
    wide = without_outliers(plain._replace(error=2 * plain.error), list(rows))
    assert wide.error == pytest.approx(2 * without_outliers(plain, list(rows)).error)


def test_without_outliers_normal_noise_keeps_its_standard_deviation() -> None:
    draw = np.random.default_rng(2)
    rows = draw.normal(0.0, 1.0, (4000, 9))
    rows[:, 0] += 100.0
    robust = without_outliers(evidence_of(rows), list(rows))
    assert float(np.median(robust.error) * 3) == pytest.approx(1.1, abs=0.15)
