"""What the cards and the headline claim: an average at the level of a verdict, an only test by its own word."""

from collections.abc import Sequence
from typing import Any

import pytest

from runner.analysis.comparison_model import LEANING, Comparison, GeometricMean, Row
from runner.report import answer_text
from runner.report.answer import Answer, answer
from tests.support.fake_runs import cell


def row(other: str = "torch-2.x", case: str = "a", **changes: Any) -> Row:
    values = {"ratio": 0.5, "ratio_low": 0.45, "ratio_high": 0.55, "rounds": 5, "verdict": "faster", **changes}
    return Row(base=cell("torch-1.0", case=case), other=cell(other, case=case), **values)


def mean(other: str = "torch-2.x", **changes: Any) -> GeometricMean:
    values: dict[str, Any] = {"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.6, "p_value": 1e-4, "median_ratio": 0.8}
    values |= {"cells": 2, "workloads": ("asr-lstm",), "rounds": 5, **changes}
    return GeometricMean(environment=other, **values)


def answered(rows: Sequence[Row], means: Sequence[GeometricMean] = ()) -> Answer:
    others = tuple(dict.fromkeys(each.environment for each in rows))
    comparison = Comparison(
        base="torch-1.0", others=others, device="cpu", device_name="", rows=tuple(rows), overall=tuple(means)
    )
    return answer([comparison], {}, None, "nothing")


@pytest.mark.parametrize(
    ("changes", "big"),
    [
        ({}, "2.00x faster"),
        ({"p_value": 0.007}, "2.00x faster"),
        ({"p_value": 0.0071}, "probably 2.00x faster"),
        ({"p_value": 0.1, "ratio": 2.0, "ratio_low": 1.7, "ratio_high": 2.4}, "probably 2.00x slower"),
        ({"p_value": 0.1, "ratio_high": 1.1}, "no clear difference"),
        ({"p_value": 0.21}, "no clear difference"),
        ({"p_value": None}, "no clear difference"),
        ({"ratio": 1 / 1.015}, "no clear difference"),
        ({"noise": "torch-1.0 differs from itself by 60%"}, "no clear difference"),
    ],
)
def test_an_average_is_claimed_at_the_level_of_a_verdict(changes: dict[str, Any], big: str) -> None:
    of_release = answered([row(), row(case="b")], [mean(**changes)])
    assert of_release.cards[0].newest.big == big
    assert of_release.headline.startswith("On average ")


def test_the_more_releases_there_are_the_smaller_a_p_value_has_to_be() -> None:
    names = [f"torch-2.{number}" for number in range(10)]
    rows = [row(name, case) for name in names for case in "ab"]
    means = [mean(name, p_value=0.006 if number == 0 else 0.5) for number, name in enumerate(names)]
    card = answered(rows, means).cards[0]
    assert not any(change.clear for change in (card.newest, *card.between))
    (alone,) = answered(rows[:2], means[:1]).cards
    assert alone.newest.clear


@pytest.mark.parametrize(
    ("changes", "big", "headline"),
    [
        ({}, "2.00x faster", "torch-2.x is 2.00x faster than torch-1.0"),
        (
            {"verdict": "inconclusive", "code": LEANING},
            "probably 2.00x faster",
            "torch-2.x is probably 2.00x faster than torch-1.0",
        ),
        (
            {"verdict": "inconclusive", "code": "more-rounds"},
            "no clear difference",
            "torch-2.x and torch-1.0 do not clearly differ",
        ),
        ({"verdict": "same", "ratio": 1.001}, "same", "torch-2.x takes the same time as torch-1.0"),
    ],
)
def test_the_only_test_has_its_own_word(changes: dict[str, Any], big: str, headline: str) -> None:
    of_release = answered([row(**changes)])
    assert of_release.cards[0].newest.big == big
    assert of_release.headline == headline


def test_the_interval_of_no_clear_difference_has_a_direction_of_its_own() -> None:
    def shown(**changes: Any) -> str:
        return " ".join(answer_text.text(answered([row(**changes)]), width=120, colour=False).split())

    interval = {"ratio_low": 0.4, "ratio_high": 0.6}
    assert "2.00x faster (1.67x to 2.50x)" in shown(**interval)
    two_states = {"verdict": "inconclusive", "code": "two-states"}
    assert "no clear difference (1.67x to 2.50x faster)" in shown(**interval, **two_states)


def test_the_median_test_stands_beside_the_average() -> None:
    of_release = answered([row(), row(case="b")], [mean()])
    assert "; median 1.25x faster; " in of_release.cards[0].newest.scope
    shown = " ".join(answer_text.text(of_release, width=120, colour=False).split())
    assert "2 tests: 2 faster; median 1.25x faster" in shown
    (only,) = answered([row()]).cards
    assert "median" not in only.newest.scope
