"""What ``--fail-on`` does not accept, by verdict and estimate, and how its conditions are read."""

from dataclasses import replace
from typing import Any

import pytest

from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.gate import Condition, gate, parse_conditions
from runner.core.errors import UsageError
from tests.support.fake_runs import cell


def row(verdict: Any, ratio: float | None, *, measured: bool = True, environment: str = "torch-2.x") -> Row:
    seconds = (1.0, ratio or 1.0) if measured else (None, None)
    cells = cell("torch-1.0"), cell(environment)
    return Row(base=cells[0], other=cells[1], base_seconds=seconds[0], seconds=seconds[1], ratio=ratio, verdict=verdict)


def comparison(*rows: Row, other: str = "torch-2.x") -> Comparison:
    return Comparison(base="torch-1.0", others=(other,), device="cpu", device_name="EPYC", rows=rows)


def broken(text: str, *rows: Row) -> list[tuple[str, float | None]]:
    result = gate([comparison(*rows)], parse_conditions([text]))
    return [(each.condition.text, each.row.ratio) for each in result.broken]


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("slower", [Condition("slower")]),
        ("slower:5%", [Condition("slower", 0.05)]),
        ("memory:5%,first-call", [Condition("memory", 0.05), Condition("first-call")]),
        ("slower:2.5 %, undecided", [Condition("slower", 0.025), Condition("undecided")]),
        ("slower:5%,slower:5%", [Condition("slower", 0.05)]),
    ],
)
def test_conditions_are_read(text: str, conditions: list[Condition]) -> None:
    assert parse_conditions([text]) == tuple(conditions)
    assert parse_conditions([each.text for each in conditions]) == tuple(conditions)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read ''"),
        ("slower:5", "cannot read 'slower:5'\nhint: write --fail-on slower:5%"),
        ("slower:-5%", "cannot read"),
        ("slower,", "cannot read ''"),
        ("slowr:5%", "there is no condition 'slowr'\nhint: did you mean slower?"),
        ("memry:5%", "there is no condition 'memry'\nhint: did you mean memory?"),
        ("x:5%", "there is no condition 'x'\nhint: there are slower, memory, first-call"),
        ("undecided:5%", "undecided takes no limit"),
        (f"slower:{'9' * 400}%", "slower takes no limit"),
    ],
)
def test_a_mistake_is_an_error_with_a_hint(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_conditions([text])
    assert message in str(error.value)


def test_the_verdict_says_that_there_is_a_change_and_the_estimate_how_large_it_is() -> None:
    assert broken("slower:5%", row("slower", 1.05), row("slower", 1.3)) == [("slower:5%", 1.3), ("slower:5%", 1.05)]
    assert not broken("slower:5%", row("slower", 1.0499))
    assert broken("slower", row("slower", 1.03))
    for verdict in ("inconclusive", "same", "same-median", "not-comparable"):
        assert not broken("slower:5%", row(verdict, 1.3))
    assert not broken("slower:5%", row("faster", 0.5))


def test_undecided_rows_break_a_condition_of_their_own_only() -> None:
    rows = row("inconclusive", 1.3), row("not-comparable", None), row("same", 1.0), row("slower", 1.2)
    assert broken("undecided", *rows) == [("undecided", 1.3), ("undecided", None)]
    assert broken("slower,undecided", *rows) == [("slower", 1.2), ("undecided", 1.3), ("undecided", None)]


def test_controls_do_not_count() -> None:
    of_twin = row("slower", 1.3, environment="torch-1.0@twin")
    control = comparison(of_twin, other="torch-1.0@twin")
    result = gate([comparison(row("same", 1.0)), control], parse_conditions(["slower"]))
    assert (result.passed, result.compared) == (True, 1)


def test_a_gate_that_compared_nothing_does_not_pass() -> None:
    conditions = parse_conditions(["slower"])
    assert not gate([], conditions).passed
    assert not gate([comparison(row("not-measured", None, measured=False))], conditions).passed
    assert gate([comparison(row("same", 1.0))], conditions).passed


def of_memory(verdict: Any, ratio: float) -> Row:
    cells = cell("torch-1.0"), cell("torch-2.x")
    amounts: dict[str, Any] = {"base_amount": 1e6, "amount": 1e6 * ratio}
    return Row(base=cells[0], other=cells[1], metric="memory", ratio=ratio, verdict=verdict, **amounts)


def test_a_condition_is_about_the_rows_of_its_metric() -> None:
    both = replace(comparison(row("slower", 1.5)), metrics=(of_memory("more", 1.1),))
    result = gate([both], parse_conditions(["memory:5%"]))
    assert [(each.condition.word, each.row.ratio) for each in result.broken] == [("memory", 1.1)]
    assert result.compared == 1
    assert gate([both], parse_conditions(["memory:20%"])).passed
    assert len(gate([both], parse_conditions(["memory,slower"])).broken) == 2


def test_undecided_is_about_the_metrics_of_the_other_conditions() -> None:
    both = replace(comparison(row("same", 1.0)), metrics=(of_memory("inconclusive", 1.1),))
    assert gate([both], parse_conditions(["undecided"])).passed
    assert gate([both], parse_conditions(["slower,undecided"])).passed
    assert not gate([both], parse_conditions(["slower,memory,undecided"])).passed


def test_a_metric_without_rows_does_not_pass() -> None:
    result = gate([comparison(row("same", 1.0))], parse_conditions(["slower,memory"]))
    assert [each.word for each in result.without_rows] == ["memory"]
    assert not result.passed
