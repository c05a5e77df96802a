"""What the cards and the headline claim: an average at the level of a verdict, an only test by its own word."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from runner.analysis.comparison_model import LEANING, Comparison, GeometricMean, Row, Verdict
from runner.analysis.model import Figures, Grade, Reason
from runner.analysis.releases import EnvironmentRelease
from runner.report import answer_text
from runner.report.answer import Answer, answer, changed_metrics
from tests.support.fake_runs import cell


def row(other: str = "torch-2.x", case: str = "a", **changes: Any) -> Row:
    values = {"ratio": 0.5, "ratio_low": 0.45, "ratio_high": 0.55, "rounds": 5, "verdict": "faster", **changes}
    return Row(base=cell("torch-1.0", case=case), other=cell(other, case=case), **values)


def mean(other: str = "torch-2.x", **changes: Any) -> GeometricMean:
    values: dict[str, Any] = {"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.6, "p_value": 1e-4, "median_ratio": 0.8}
    values |= {"cells": 2, "workloads": ("asr-lstm",), "rounds": 5, **changes}
    return GeometricMean(environment=other, **values)


def answered(
    rows: Sequence[Row],
    means: Sequence[GeometricMean] = (),
    names: Mapping[str, EnvironmentRelease] | None = None,
    grade: Grade | None = None,
) -> Answer:
    others = tuple(dict.fromkeys(each.environment for each in rows))
    ids = {other: tuple(each.other.id for each in rows if each.environment == other) for other in others}
    of_rows = tuple(each if each.cell_ids else replace(each, cell_ids=ids[each.environment]) for each in means)
    comparison = Comparison(
        base="torch-1.0", others=others, device="cpu", device_name="", rows=tuple(rows), overall=of_rows
    )
    return answer([comparison], names or {}, grade, "nothing")


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
        ({"p_value": None, "rounds": 1, "ratio_low": None, "ratio_high": None}, "one round: no verdict"),
        ({"noise": "torch-1.0 differs from itself by 60 %"}, "no clear difference"),
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
        (
            {"verdict": "inconclusive", "code": "more-rounds", "rounds": 1, "ratio_low": None, "ratio_high": None},
            "one round: no verdict",
            "torch-2.x and torch-1.0 have one round and no verdict",
        ),
        ({"verdict": "not-comparable"}, "not comparable", "torch-2.x and torch-1.0 are not comparable"),
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
    nothing = {"ratio_low": 1 / 13858, "ratio_high": 296383.0, "verdict": "inconclusive", "code": "more-rounds"}
    assert "no clear difference (the rounds show nothing) 1 test: 1 can't tell" in shown(**nothing)


def test_the_scope_of_rounds_that_show_nothing_has_no_interval() -> None:
    nothing = row(ratio_low=1 / 13858, ratio_high=296383.0, verdict="inconclusive", code="more-rounds")
    assert answered([nothing]).cards[0].newest.scope.startswith("the rounds show nothing; in the only test")
    assert answered([row()]).cards[0].newest.scope.startswith("95 % interval ")


def test_single_tests_that_are_far_apart_have_both_their_ends() -> None:
    rows = [row(ratio=1 / 2000), row(case="b", ratio=1.1, verdict="slower")]
    assert answered(rows, [mean()]).cards[0].newest.extremes == "single tests 10 % slower to 2000x faster"


def test_the_median_test_stands_beside_the_average() -> None:
    of_release = answered([row(), row(case="b")], [mean()])
    assert "; median 1.25x faster; " in of_release.cards[0].newest.scope
    shown = " ".join(answer_text.text(of_release, width=120, colour=False).split())
    assert "2 tests: 2 faster" in shown
    (only,) = answered([row()]).cards
    assert "median" not in only.newest.scope


def released(environment: str, framework: str, version: str) -> EnvironmentRelease:
    name = {"torch": "PyTorch", "jax": "JAX"}[framework]
    return EnvironmentRelease(
        environment=environment,
        framework=framework,
        version=version,
        backend="",
        name=f"{name} {version}",
        short=version,
    )


NAMES = {
    "torch-1.0": released("torch-1.0", "torch", "1.0.0"),
    "torch-2.x": released("torch-2.x", "torch", "2.13.0"),
    "jax": released("jax", "jax", "0.10.2"),
}


def test_counts_are_of_the_tests_that_the_average_is_over() -> None:
    rows = [row(), row(case="b"), row(case="c", ratio=2.0, verdict="slower")]
    averaged = mean(cell_ids=tuple(each.other.id for each in rows[:2]))
    change = answered(rows, [averaged], NAMES).cards[0].newest
    assert (change.counts, change.tests) == ("2 tests: 2 faster", 2)
    assert change.not_averaged == "not in the average: 1 test: 1 slower"
    assert change.pair == "PyTorch 1.0.0 \N{RIGHTWARDS ARROW} 2.13.0"


def test_there_is_no_average_across_frameworks_over_the_few_tests_with_the_same_api() -> None:
    rows = [row("jax"), row("jax", "b"), row("jax", "c", ratio=2.0, verdict="slower")]
    averaged = mean("jax", cell_ids=tuple(each.other.id for each in rows[:2]))
    of_release = answered(rows, [averaged], NAMES)
    assert of_release.cards[0].newest.big == "no average"
    assert of_release.headline == ("JAX 0.10.2 has no average against PyTorch 1.0.0, with 3 tests: 2 faster, 1 slower")
    assert answered(rows[:2], [averaged], NAMES).cards[0].newest.big == "2.00x faster"


def test_a_run_that_cannot_be_used_is_titled_by_its_subject() -> None:
    unknown: dict[str, Any] = dict.fromkeys(Figures.__dataclass_fields__)
    figures = Figures(**{**unknown, "cells": 1, "serious_cells": 0})
    reason = Reason("poor", "busy", "another program used 1.1 of the 2 CPUs")
    grade = Grade(level="poor", reasons=(reason,), figures=figures)
    assert answered([row()], (), NAMES, grade).headline == (
        "PyTorch 1.0.0 \N{RIGHTWARDS ARROW} 2.13.0: not usable, another program used 1.1 of the 2 CPUs"
    )
    of_user = [
        Row(base=cell("torch-1.0", workload="nanogpt"), other=cell(workload="nanogpt"), ratio=0.5, verdict="faster")
    ]
    assert answered(of_user, (), NAMES, grade).headline.startswith(
        "nanogpt, PyTorch 1.0.0 \N{RIGHTWARDS ARROW} 2.13.0: "
    )


def test_times_of_a_run_that_cannot_be_used_are_no_other_changes() -> None:
    rows = [row()]
    changes: tuple[tuple[str, Verdict], ...] = (("p95", "slower"), ("memory", "more"))
    metrics = tuple(
        Row(base=rows[0].base, other=rows[0].other, metric=name, ratio=20.0, verdict=verdict)
        for name, verdict in changes
    )
    comparison = Comparison(
        base="torch-1.0", others=("torch-2.x",), device="cpu", device_name="", rows=tuple(rows), metrics=metrics
    )
    assert [each.metric for each, _, _ in changed_metrics([comparison], NAMES)] == ["p95", "memory"]
    disturbed = changed_metrics([comparison], NAMES, is_disturbed=True)
    assert [each.metric for each, _, _ in disturbed] == ["memory"]


def test_tests_without_a_ratio_are_counted_apart() -> None:
    missing: dict[str, Any] = {"ratio": None, "ratio_low": None, "ratio_high": None, "verdict": "not-measured"}
    change = answered([row(), row(case="b", **missing)], (), NAMES).cards[0].newest
    assert (change.counts, change.not_averaged) == ("1 test: 1 faster", "1 more test: 1 not measured")
    none = answered([row(**missing), row(case="b", **missing)], (), NAMES).cards[0].newest
    assert (none.big, none.counts, none.not_averaged) == ("not measured", "2 tests: 2 not measured", "")
    (line,) = answer_text.titled(none, None, 100)
    assert str(line).endswith(": not measured; 2 tests: 2 not measured")


def test_the_two_states_of_a_program_take_the_place_of_an_interval_that_says_nothing() -> None:
    reason = "torch-2.x takes in 4 of 6 processes 131 ms, else 0.130 ms: the state of a process decides which is faster"
    only = row(verdict="inconclusive", code="two-states", reason=reason, ratio=0.3, ratio_low=1 / 320, ratio_high=1e6)
    of_release = answered([only])
    assert of_release.headline == f"torch-2.x and torch-1.0 do not clearly differ: {reason}"
    for width in (60, 300):
        words = " ".join(answer_text.text(of_release, width=width, colour=False).split())
        assert f"no clear difference ({reason})" in words
    assert reason in of_release.cards[0].newest.scope
    poor = Grade(level="poor", reasons=(), figures=None)  # type: ignore[arg-type]
    assert answered([only], grade=poor).headline.endswith(f": not usable; {reason}")


def test_no_average_of_a_poor_run_is_probable() -> None:
    undecided: dict[str, Any] = {
        "verdict": "inconclusive",
        "code": "more-rounds",
        "ratio": 1.2,
        "ratio_low": 0.9,
        "ratio_high": 1.5,
    }
    rows, means = [row(**undecided), row(case="b", **undecided)], [mean(p_value=0.1)]
    assert answered(rows, means).cards[0].newest.big == "probably 2.00x faster"
    poor = Grade(level="poor", reasons=(), figures=None)  # type: ignore[arg-type]
    assert answered(rows, means, grade=poor).cards[0].newest.big == "no clear difference"
