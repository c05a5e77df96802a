"""The mean of all calls beside the median: ``same`` needs both, and what else the verdict says."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.analysis import dataset
from runner.analysis.compare import compare
from runner.analysis.compare.machine_outliers import machine_outliers
from runner.analysis.comparison_model import Row
from runner.analysis.model import Dataset
from runner.analysis.tables import TableBuilder
from runner.core.model import Cell, Record
from runner.core.model.cells import twin
from runner.report import data, wording
from runner.report.compared_rows import compared_rows
from tests.support.fake_runs import cell, good, make

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]
"""Takes chance and a number of calls; returns the factor of each."""

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
CALLS = 300
STEP = 0.001


def quiet(draw: np.random.Generator, count: int) -> Floats:
    return np.asarray(np.exp(draw.normal(0, 0.02, count)))


def every(length: int, factor: float) -> Noise:
    """Return calls of which each ``length``-th one takes ``factor`` times as long; a process begins at any of them."""

    def noise(draw: np.random.Generator, count: int) -> Floats:
        numbers = np.arange(count) + draw.integers(length)
        return quiet(draw, count) * np.where(numbers % length == 0, factor, 1.0)

    return noise


def interrupted(draw: np.random.Generator, count: int) -> Floats:
    """Return calls of a machine on which one in 150 is interrupted."""
    return quiet(draw, count) * np.where(draw.random(count) < 1 / 150, draw.uniform(2, 10, count), 1.0)


def records(sides: dict[Cell, Noise], count: int, seed: int, *, between: float = 0.002) -> list[Record]:
    """Return rounds of cells that took turns; ``between`` is the standard deviation from process to process."""
    draw = np.random.default_rng(seed)
    facts: dict[str, Any] = {"turns": [3] * (CALLS // 3), "batch": 1, "first_call": 40, "leads": [STEP] * (CALLS // 3)}
    made = []
    for number in range(1, count + 1):
        for each, noise in sides.items():
            level = STEP * np.exp(draw.normal(0, between))
            made.append(good(each, number, (level * noise(draw, CALLS)).tolist(), turns_with=f"{number}/0", **facts))
    return made


def table(records: Sequence[Record], looks: tuple[int, ...] = ()) -> Dataset:
    builder = TableBuilder()
    for record in records:
        builder.add(record)
    tables = builder.tables()
    return Dataset(
        run="run", samples=tables.samples, rounds=tables.rounds, failures=tables.failures, plan=(), looks=looks
    )


def row_of(records: Sequence[Record], looks: tuple[int, ...] = ()) -> Row:
    (row,) = compare([table(records, looks)], BASE.environment, [OTHER.environment]).rows
    return row


@pytest.mark.parametrize(
    ("noise", "mean"),
    [(every(100, 50.0), 1.49), (every(20, 5.0), 1.2), (every(10, 10.0), 1.9), (every(4, 2.0), 1.25)],
)
def test_a_longer_tail_is_not_the_same(noise: Noise, mean: float) -> None:
    row = row_of(records({BASE: quiet, OTHER: noise}, 8, seed=1))
    assert row.ratio == pytest.approx(1.0, abs=0.02)
    assert (row.verdict, row.code) == ("same-median", "longer-tail")
    assert wording.word(row) == "same median, longer tail"
    assert row.mean_ratio == pytest.approx(mean, rel=0.03)
    assert row.mean_ratio_low is not None
    assert row.mean_ratio_high is not None
    assert row.mean_ratio_low < mean < row.mean_ratio_high
    assert (row.verdict_on_median, row.more_rounds) == ("same", 0)
    back = row_of(records({BASE: noise, OTHER: quiet}, 8, seed=1))
    assert wording.word(back) == "same median, shorter tail"


def test_calls_that_differ_alike_on_both_sides_are_the_same() -> None:
    """Each process begins at another call, so that chance decides how many slow ones a round has: 15 or 16 of 300."""
    assert row_of(records({BASE: every(20, 1.5), OTHER: every(20, 1.5)}, 8, seed=2)).verdict == "same"


def test_a_mean_that_is_not_known_so_well_says_so() -> None:
    """A call in 200 that is 50 times as long: rounds of 300 have one or two."""
    row = row_of(records({BASE: every(200, 50.0), OTHER: every(200, 50.0)}, 5, seed=3))
    assert (row.verdict, row.code) == ("same-median", "open-tail")
    assert wording.word(row) == "same median"
    text = "the medians are within 0.02 of each other, the mean of all calls is not known so well: "
    assert row.reason.startswith(text)


@pytest.mark.simulation
@pytest.mark.parametrize("noise", [every(100, 50.0), every(20, 5.0), every(10, 10.0), every(4, 2.0)])
@pytest.mark.parametrize("count", [3, 5, 20])
def test_no_planted_tail_is_the_same(noise: Noise, count: int) -> None:
    verdicts = Counter(
        row_of(records({BASE: quiet, twin(BASE): quiet, OTHER: noise}, count, seed=seed)).verdict for seed in range(8)
    )
    assert not verdicts["same"]


@pytest.mark.simulation
@pytest.mark.parametrize(("noise", "kept"), [(quiet, 0.99), (interrupted, 0.5)])
def test_equal_sides_stay_the_same(noise: Noise, kept: float) -> None:
    """A machine that interrupts a call in 150 leaves some means unknown, and hardly ever shows a longer tail."""
    words = Counter(
        wording.word(row_of(records({BASE: noise, twin(BASE): noise, OTHER: noise}, 8, seed=seed), (3, 5, 8)))
        for seed in range(40)
    )
    of_median = sum(count for word, count in words.items() if word.startswith("same"))
    assert of_median > 25
    assert words["same"] >= kept * of_median
    assert words["same median, longer tail"] + words["same median, shorter tail"] <= 1


# The machine's own outliers


def twice(factor: float) -> Noise:
    """Return calls of which two in a round are disturbed."""

    def noise(draw: np.random.Generator, count: int) -> Floats:
        factors = quiet(draw, count)
        factors[draw.choice(count, 2, replace=False)] *= factor
        return factors

    return noise


def test_outliers_of_one_side_of_an_a_a_pair_are_the_machines() -> None:
    """2 of 300 calls on one side, and none on the other: half of the squared difference is 2, for both."""
    disturbed = records({BASE: twice(5.0), twin(BASE): quiet, OTHER: quiet}, 3, seed=4)
    (outliers,) = machine_outliers(table(disturbed).rounds).values()
    assert outliers.random_share == pytest.approx(2 / CALLS)
    assert outliers.rate == pytest.approx(1 / CALLS)
    assert outliers.longest == pytest.approx(5.0, rel=0.1)
    assert machine_outliers(table(records({BASE: quiet, OTHER: quiet}, 3, seed=4)).rounds) == {}


def test_outliers_of_both_sides_of_an_a_a_pair_are_the_programs() -> None:
    tailed = records({BASE: every(10, 5.0), twin(BASE): every(10, 5.0)}, 3, seed=4)
    assert {each.random_share for each in machine_outliers(table(tailed).rounds).values()} == {0.0}


def mean_ratio(base: Noise, of_twin: Noise, other: Noise) -> float:
    row = row_of(records({BASE: base, twin(BASE): of_twin, OTHER: other}, 8, seed=5))
    assert row.mean_ratio is not None
    return row.mean_ratio


def test_calls_that_the_machine_disturbs_count_as_the_next_slowest() -> None:
    """One call in 150 is disturbed on all sides, so that a mean follows chance."""
    sides: dict[Cell, Noise] = {BASE: interrupted, twin(BASE): interrupted, OTHER: interrupted}
    rows = [
        [row_of([each for each in records(sides, 8, seed=seed) if each.cell in kept]) for seed in range(10)]
        for kept in (sides, (BASE, OTHER))
    ]
    known, unknown = (np.mean([abs(np.log(row.mean_ratio or 0.0)) for row in each]) for each in rows)
    assert known < 0.7 * unknown


def test_a_side_with_more_outliers_than_the_machine_makes_keeps_them() -> None:
    assert mean_ratio(interrupted, interrupted, every(20, 5.0)) == pytest.approx(1.2 / 1.03, rel=0.03)


def test_calls_far_longer_than_those_of_the_machine_stay() -> None:
    """Two in 300 that are 50 times as long, on a machine that makes as many of 2 to 10 times."""
    assert mean_ratio(interrupted, interrupted, twice(50.0)) == pytest.approx(1 + 2 * 49 / CALLS, rel=0.05)


# What is shown


def test_details_and_files_have_the_mean_and_p95(tmp_path: Path) -> None:
    made = make(tmp_path, records({BASE: quiet, OTHER: every(10, 10.0)}, 8, seed=1))
    comparison = compare([dataset.load_dataset(made)], BASE.environment, [OTHER.environment])
    (row,) = data.rows(comparison)
    assert row["verdict"] == "same-median"
    assert row["mean_ratio_low"] < row["mean_ratio"] < row["mean_ratio_high"]
    assert row["p95_seconds"] / row["base_p95_seconds"] == pytest.approx(9.7, rel=0.03)
    (shown,) = compared_rows([comparison], {})
    assert shown.means.startswith("1.9")
    assert " slower, 95 % interval " in shown.means
    assert shown.slow_calls == "1.03 ms → 9.98 ms"


def test_samples_of_several_calls_and_few_calls_have_no_p95() -> None:
    made = [good(of, number, [0.1, 0.2, 0.3]) for number in (1, 2, 3) for of in (BASE, OTHER)]
    row = row_of(made)
    assert (row.base_p95_seconds, row.p95_seconds) == (None, None)
    batches = [good(of, number, [0.1, 0.2] * 20, batch=4) for number in (1, 2, 3) for of in (BASE, OTHER)]
    assert row_of(batches).p95_seconds is None
