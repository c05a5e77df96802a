"""The plain-process control: its ratio to what was measured, and when that is a quality issue."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.analysis import dataset
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.model import QualityIssue
from runner.analysis.plain_control import (
    PlainPair,
    agreeing_controls,
    differ_unlike,
    is_beyond,
    plain_change,
)
from runner.analysis.quality import quality_issues
from runner.core.model import Cell, Record
from runner.core.model.cells import plain
from tests.support.fake_runs import bad, cell, good, make, rounds

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
DRAWS = 20_000
MEASURED = [0.79e-3, 0.79e-3, 0.78e-3]
PLAIN = [2.1e-3, 2.11e-3, 2.09e-3]


def measured(folder: Path, records: Sequence[Record]) -> MeasuredRun:
    return MeasuredRun(dataset.load_dataset(make(folder, records)))


def issues_of(folder: Path, records: Sequence[Record]) -> list[QualityIssue]:
    return [issue for issue in quality_issues(measured(folder, records)) if issue.code == "differs-from-plain"]


def pair(of: Cell, *log_ratios: float) -> PlainPair:
    return PlainPair(of, 1.0, 1.0, dict(enumerate(log_ratios)))


def test_the_ratio_is_paired_by_round_with_students_interval(tmp_path: Path) -> None:
    records = rounds(BASE, [1.0, 2.0, 3.0, 1.0]) + rounds(plain(BASE), [1.1, 2.3, 3.9])
    (of_base,) = measured(tmp_path, records).plain_pairs.values()
    logs = [math.log(each) for each in (1.1, 1.15, 1.3)]
    assert [*of_base.log_ratios.values()] == pytest.approx(logs)
    assert of_base.ratio == pytest.approx(math.exp(sum(logs) / 3))
    assert (of_base.seconds, of_base.measured_seconds) == (2.3, 2.0)
    half = 4.302653 * float(np.std(logs, ddof=1)) / math.sqrt(3)
    assert of_base.ends() == pytest.approx((of_base.ratio / math.exp(half), of_base.ratio * math.exp(half)), rel=1e-6)


def test_one_round_has_no_interval(tmp_path: Path) -> None:
    (of_base,) = measured(tmp_path, rounds(BASE, [1.0, 1.0]) + rounds(plain(BASE), [1.2])).plain_pairs.values()
    assert of_base.ends() is None


def test_a_change_of_two_cells_is_that_of_their_plain_processes(tmp_path: Path) -> None:
    sides = rounds(BASE, [1.0, 1.0, 1.0]) + rounds(OTHER, [2.0, 2.0, 2.0]) + rounds(plain(BASE), [1.1, 1.1, 1.1])
    agreeing = measured(tmp_path / "a", [*sides, *rounds(plain(OTHER), [2.2, 2.2, 2.2])]).cells
    change = plain_change(agreeing, BASE, OTHER)
    assert change is not None
    assert (change.ratio, change.ratio_low, change.ratio_high) == pytest.approx((2.0, 2.0, 2.0))
    assert (change.rounds, change.agrees) == (3, True)
    differing = plain_change(measured(tmp_path / "b", [*sides, *rounds(plain(OTHER), [1.1] * 3)]).cells, BASE, OTHER)
    assert differing is not None
    assert (round(differing.ratio, 6), differing.agrees) == (1.0, False)
    assert plain_change(measured(tmp_path / "c", sides).cells, BASE, OTHER) is None, "one side has no control"


def test_turns_that_both_took_are_compared(tmp_path: Path) -> None:
    turns: dict[str, Any] = {"turns": [1, 1, 1], "turns_with": "1/0"}
    records = [good(BASE, 1, [1.0, 3.0, 1.0], **turns), good(plain(BASE), 1, [2.0, 6.0, 9.0], **turns)]
    (of_base,) = measured(tmp_path, records).plain_pairs.values()
    assert of_base.ratio == pytest.approx(2.0)


def test_a_cell_that_differs_says_what_a_plain_process_takes(tmp_path: Path) -> None:
    records = (
        rounds(BASE, MEASURED) + rounds(plain(BASE), PLAIN) + rounds(OTHER, MEASURED) + rounds(plain(OTHER), MEASURED)
    )
    (issue,) = issues_of(tmp_path, records)
    assert issue.sentence == (
        "a plain process takes 2.10 ms, 2.67 times what was measured; measure with --process plain"
    )
    assert (issue.serious, issue.environment, issue.cell) == (True, "torch-1.0", BASE.id)
    assert issue.extent == pytest.approx(1.67, rel=0.01)


@pytest.mark.parametrize("control", [[], [0.8e-3, 0.78e-3, 0.79e-3], [0.81e-3, 0.9e-3, 0.9e-3]])
def test_without_a_control_or_a_difference_nothing_is_said(tmp_path: Path, control: list[float]) -> None:
    assert issues_of(tmp_path, rounds(BASE, MEASURED) + rounds(plain(BASE), control)) == []


def test_a_control_that_failed_is_none(tmp_path: Path) -> None:
    records = [*rounds(BASE, MEASURED), bad(plain(BASE), 0, "crash", "it ended")]
    assert measured(tmp_path, records).plain_pairs == {}


def test_a_control_is_no_cell_of_its_own(tmp_path: Path) -> None:
    scattered = [good(plain(BASE), number, np.linspace(1.0, 2.0, 40) * 1e-3) for number in range(2)]
    issues = quality_issues(measured(tmp_path, [*rounds(BASE, MEASURED[:2]), *scattered]))
    assert {issue.cell for issue in issues} == {BASE.id}
    assert "few-rounds" not in {issue.code for issue in issues}  # the cell is compared with no other


@pytest.mark.parametrize(
    ("log_ratios", "expected"),
    [
        ([0.1], False),
        ([0.3], True),
        ([0.06, 0.3], False),
        ([0.11, 0.3], True),
        ([0.06, 0.06, 0.3], True),
        ([-0.06, -0.06, -0.3], True),
        ([0.04, 0.3, 0.3], False),
        ([-0.3, 0.3, 0.3], False),
        ([0.04, *[0.2] * 11], True),  # the interval is beyond the margin
    ],
)
def test_all_rounds_agree_or_the_interval_is_beyond_the_margin(log_ratios: list[float], *, expected: bool) -> None:
    assert is_beyond(log_ratios) is expected


def test_sides_differ_unlike_where_the_ratio_of_ratios_is_beyond_the_margin() -> None:
    far, near = pair(BASE, 1.0, 1.01, 0.99), pair(OTHER, 0.0, 0.01, 0.0)
    assert differ_unlike(far, near)
    assert differ_unlike(near, far)
    assert not differ_unlike(far, pair(OTHER, 1.01, 1.02, 0.97))
    assert not differ_unlike(pair(BASE, 0.04, 0.04, 0.04), pair(OTHER, -0.04, -0.04, -0.04))  # neither differs


def agreeing(base: float, other: float, *, compared: bool = True) -> frozenset[Cell]:
    """Return which controls of two cells agree, given the first round of each; a second one differs."""
    pairs = {BASE: pair(BASE, base, 0.5), OTHER: pair(OTHER, other, 0.5)}
    return agreeing_controls(pairs, [0], {BASE: [OTHER], OTHER: [BASE]} if compared else {})


def test_a_control_agrees_by_its_first_round_and_that_of_the_cells_that_are_compared_with_it() -> None:
    assert agreeing(0.02, -0.05) == {plain(BASE), plain(OTHER)}
    assert agreeing(0.02, -0.1) == agreeing(0.1, 0.02) == frozenset()
    assert agreeing(0.02, -0.1, compared=False) == {plain(BASE)}
    assert agreeing_controls({}, [0], {BASE: [OTHER]}) == frozenset()


def test_a_control_without_a_first_round_does_not_agree() -> None:
    assert agreeing_controls({BASE: pair(BASE, 0.0, 0.0)}, [4], {}) == frozenset()
    assert agreeing_controls({BASE: pair(BASE, 0.0)}, [0], {BASE: [OTHER]}) == frozenset()


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("truth", "low", "high"), [(1.0, 0.04, 0.07), (1.1, 0.6, 0.72), (1.2, 0.99, 1.0), (1.3, 0.999, 1.0)]
)
def test_rates_of_further_rounds(truth: float, low: float, high: float) -> None:
    noise = np.random.default_rng(8).normal(math.log(truth), 0.04, DRAWS)
    repeated = sum(not agreeing_controls({BASE: pair(BASE, each)}, [0], {}) for each in noise.tolist())
    assert low <= repeated / DRAWS <= high


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("sd", "truth", "low", "high"),
    [
        (0.02, 1.00, 0.0, 0.0005),
        (0.04, 1.00, 0.0, 0.005),
        (0.06, 1.00, 0.0, 0.03),
        (0.02, 1.03, 0.0, 0.01),
        (0.02, 1.10, 0.95, 1.0),
        (0.04, 1.20, 0.99, 1.0),
        (0.08, 1.50, 0.999, 1.0),
    ],
)
def test_rates_of_three_rounds(sd: float, truth: float, low: float, high: float) -> None:
    draw = np.random.default_rng(3)
    noise = draw.normal(math.log(truth), sd, (DRAWS, 3)).tolist()
    assert low <= sum(map(is_beyond, noise)) / DRAWS <= high


@pytest.mark.simulation
@pytest.mark.parametrize("count", [1, 2, 5])
def test_false_alarms_of_other_numbers_of_rounds(count: int) -> None:
    draw = np.random.default_rng(4)
    assert sum(map(is_beyond, draw.normal(0, 0.04, (DRAWS, count)).tolist())) / DRAWS <= 0.001


@pytest.mark.simulation
@pytest.mark.parametrize(("of_base", "of_other", "low", "high"), [(1, 1, 0, 0.003), (2, 2, 0, 0.03), (2.7, 1, 1, 1)])
def test_rates_of_unlike_sides(of_base: float, of_other: float, low: float, high: float) -> None:
    draw = np.random.default_rng(7)
    noise = draw.normal(0, 0.04, (DRAWS, 2, 3)) + np.log([[of_base], [of_other]])
    unlike = sum(differ_unlike(pair(BASE, *base), pair(OTHER, *other)) for base, other in noise.tolist())
    assert low <= unlike / DRAWS <= high
