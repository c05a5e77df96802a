"""Candidates from the series of the history, and whether a series bears out what one night measured."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from runner.analysis.compare.pairing import Side
from runner.history.entries import SeriesPoint
from runner.nights.looks import EarlierNights, Look
from runner.watch.nightly.baseline import Baseline
from runner.watch.nightly.requests import NightCandidate
from runner.watch.nightly.series import SeriesChange, comparable_points, level_change, level_changes, slow_down_p
from runner.watch.nightly.series_candidates import series_row, suspects, with_support
from tests.support.fake_runs import cell

MARGIN = 0.02
NO_HISTORY = EarlierNights((), {}, {}, {})
CHANGE = SeriesChange("night-19", "digest-19", "night-20", 1.05, 1.03, 1.07, 0.001, 3)


def point(number: int, ratio: float | None, **different: str) -> SeriesPoint:
    """Return the point of a night."""
    fields: dict[str, object] = dict.fromkeys(SeriesPoint._fields, "")
    interval = (ratio and ratio * 0.98, ratio and ratio * 1.02)
    numbers = {"seconds": 1.0, "rounds": 3, "ratio": ratio, "ratio_low": interval[0], "ratio_high": interval[1]}
    names = {"run": f"night-{number:02}", "digest": f"digest-{number:02}", "kind": "night", "base": "torch-1.0/..."}
    return SeriesPoint(**{**fields, **numbers, **names, **different})  # type: ignore[arg-type]


def points(ratios: Sequence[float], sd: float = 0.005, seed: int = 0) -> tuple[SeriesPoint, ...]:
    """Return the points of nights with ratios and normal noise."""
    noise = np.exp(np.random.default_rng(seed).normal(0, sd, len(ratios)))
    return tuple(point(number, ratio * error) for number, (ratio, error) in enumerate(zip(ratios, noise, strict=True)))


STEP = points([1.0] * 20 + [1.05] * 3)
CREEP = points([1.0] * 10 + [1.005**night for night in range(1, 11)])
CREEP_FROM_THE_START = points([1.005**night for night in range(16)], sd=0.002)
EQUAL = points([1.0] * 23)


def test_a_step_is_to_be_compared_with_the_night_before_it() -> None:
    change = level_change(STEP, MARGIN)
    assert change is not None
    assert (change.before, change.digest, change.since, change.nights) == ("night-19", "digest-19", "night-20", 3)
    assert change.ratio_low < 1.05 < change.ratio_high
    row = series_row(cell(), change)
    assert (row.ratio, row.verdict, row.runs) == (change.ratio, "slower", ("night-19",))


def test_a_creep_is_suspected_though_no_night_differs_from_the_one_before() -> None:
    change = level_change(CREEP, MARGIN)
    assert change is not None
    assert change.before <= "night-13"


def test_a_creep_from_the_first_night_is_to_be_compared_with_that_night() -> None:
    change = level_change(CREEP_FROM_THE_START, MARGIN)
    assert change is not None
    assert change.before == "night-00"


@pytest.mark.parametrize("series", [EQUAL, points([1.0] * 20 + [0.9] * 3), points([1.0] * 20 + [1.005] * 3, sd=0.0001)])
def test_equal_faster_and_negligible_levels_are_no_suspicion(series: tuple[SeriesPoint, ...]) -> None:
    assert level_change(series, MARGIN) is None


def test_a_step_that_went_back_is_no_suspicion() -> None:
    assert level_change(points([1.0] * 20 + [1.05] * 5 + [1.0] * 5), MARGIN) is None


def test_points_before_an_accepted_run_are_not_used() -> None:
    night, name = STEP[-1].run, cell().id
    series = [(name, STEP)]
    assert name in level_changes(series, night, {}, MARGIN)
    assert level_changes(series, night, {name: "night-20"}, MARGIN) == {}
    assert [each.run for each in comparable_points(STEP, night, "night-20")] == ["night-20", "night-21", "night-22"]


@pytest.mark.parametrize(
    "different",
    [
        point(0, 1.0, base_digest="other"),
        point(0, 1.0, harness="other"),
        point(0, 1.0, host="other"),
        point(0, 1.0, device_uuid="GPU-2"),
        point(0, 1.0, kind="import"),
        point(0, 1.0, base="other"),
    ],
)
def test_points_of_other_circumstances_are_left_out(different: SeriesPoint) -> None:
    changed = (different, *STEP[1:])
    assert comparable_points(changed, STEP[-1].run) == STEP[1:]


def test_a_series_without_a_ratio_of_tonight_is_not_used() -> None:
    assert comparable_points(STEP, "night-99") == ()
    assert comparable_points((*STEP, point(23, None)), "night-23") == ()


@pytest.mark.parametrize(
    ("series", "before", "low", "high"),
    [
        (STEP, "night-19", 0.0, 0.01),
        (STEP[:21], "night-19", 0.0, 0.01),
        (CREEP, "night-00", 0.0, 0.01),
        (EQUAL, "night-19", 0.1, 1.0),
    ],
)
def test_a_series_bears_out_what_is_slower_in_it(
    series: tuple[SeriesPoint, ...], before: str, low: float, high: float
) -> None:
    p_value = slow_down_p(series, before)
    assert p_value is not None
    assert low <= p_value <= high


@pytest.mark.parametrize(("series", "before"), [(EQUAL[:3], "night-01"), (STEP, "night-")])
def test_a_short_series_bears_nothing_out(series: tuple[SeriesPoint, ...], before: str) -> None:
    assert slow_down_p(series, before) is None


def candidate(before: str, *looks: Look) -> NightCandidate:
    """Return a candidate against a baseline."""
    baseline = Baseline(run=before, side=Side(environment="torch-2.x"), digest=f"digest of {before}", facts={})
    return NightCandidate(cell(), series_row(cell(), CHANGE), baseline, "baseline", "tonight", looks)


def test_candidates_get_the_support_of_their_series() -> None:
    (supported,) = with_support([candidate("night-19")], {cell().id: STEP}, STEP[-1].run, NO_HISTORY, "cpu")
    (without,) = with_support([candidate("night-19")], {}, STEP[-1].run, NO_HISTORY, "cpu")
    assert supported.series_p == slow_down_p(STEP, "night-19")
    assert without.series_p is None


def test_a_cell_is_suspected_once() -> None:
    changes = {cell().id: CHANGE}
    other = replace(cell(), case="other")
    assert suspects(changes, [cell(), other], [], NO_HISTORY) == [(cell(), CHANGE)]
    assert suspects(changes, [cell()], [candidate("night-19")], NO_HISTORY) == []
    assert suspects(changes, [cell()], [candidate("night-10")], NO_HISTORY) == [(cell(), CHANGE)]
    confirmed = Look("night-21", "measured-again", "slower", confirmed_in="night-21")
    assert suspects(changes, [cell()], [candidate("night-10", confirmed)], NO_HISTORY) == []


def test_what_was_the_same_in_turns_rests_for_two_nights() -> None:
    same = Look("night-21", "measured-again", "same")

    def history(*nights: str) -> EarlierNights:
        return EarlierNights(nights, {(cell().id, CHANGE.before): (same,)}, {}, {})

    changes = {cell().id: CHANGE}
    assert suspects(changes, [cell()], [], history("night-20", "night-21", "night-22")) == []
    assert suspects(changes, [cell()], [], history("night-21", "night-22", "night-23")) == [(cell(), CHANGE)]
