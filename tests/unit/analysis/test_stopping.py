"""The stopping rule: which pairs get another round, by their verdicts, the cost of deciding them, and the time left."""

from dataclasses import replace

import numpy as np
import pytest

from runner.analysis.compare.drafts import Draft
from runner.analysis.compare.metric_rounds import environment_cell
from runner.analysis.compare.verdicts import with_verdicts
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.stopping import StoppingRule
from runner.core.metrics import BY_NAME
from runner.core.model import Cell, Measurement, Plan, PlannedCell, Skip
from runner.core.model.cells import plain, twin
from runner.stats import intervals
from tests.support.fake_runs import cell

BASE, OTHER = "torch-1.0", "torch-2.x"


def pair(case: str) -> tuple[Cell, Cell]:
    """Return the cells of a case in both environments."""
    return cell(BASE, case=case), cell(OTHER, case=case)


CHEAP, COSTLY, DECIDED = pair("cheap"), pair("costly"), pair("decided")
ROUND_SECONDS = {
    **dict.fromkeys(CHEAP, 1.0),
    **dict.fromkeys(COSTLY, 5.0),
    **dict.fromkeys(DECIDED, 2.0),
}
RULE = StoppingRule(looks=(3, 4, 5, 7, 9), round_seconds=ROUND_SECONDS)


def row(cells: tuple[Cell, Cell], more_rounds: int) -> Row:
    """Return a row with three rounds, open where more of them should decide it."""
    base, other = cells
    verdict = "inconclusive" if more_rounds else "same"
    return Row(base=base, other=other, verdict=verdict, rounds=3, more_rounds=more_rounds)  # type: ignore[arg-type]


def comparison(*rows: Row, other: str = OTHER) -> Comparison:
    """Return a comparison with some rows."""
    return Comparison(base=BASE, others=(other,), device="cpu", device_name="", rows=rows)


TWO_OPEN = [comparison(row(COSTLY, 2), row(DECIDED, 0), row(CHEAP, 3))]


def test_open_pairs_get_another_round_and_the_reason_counts_them() -> None:
    decision = RULE.decide(TWO_OPEN, 3)
    assert decision.cells == {*CHEAP, *COSTLY}
    assert decision.reason == "after 3 rounds 2 verdicts are open: a further round for 4 tests"


def test_a_pair_that_is_compared_in_plain_processes_gets_further_rounds_of_these() -> None:
    rule = replace(RULE, round_seconds={**ROUND_SECONDS, **{plain(cell): 2.0 for cell in CHEAP}})
    decision = rule.decide([comparison(replace(row(CHEAP, 2), in_plain_processes=True))], 3)
    assert decision.cells == {plain(cell) for cell in CHEAP}


def test_the_verdicts_of_the_chosen_metrics_count_and_one_of_environments_needs_all_of_their_cells() -> None:
    open_memory = replace(row(CHEAP, 2), metric="memory")
    sides = [environment_cell(name, BY_NAME["import"]) for name in (BASE, OTHER)]
    open_import = replace(row((sides[0], sides[1]), 2), metric="import")
    compared = replace(comparison(row(COSTLY, 2)), metrics=(open_memory, open_import))
    assert RULE.decide([compared], 3).cells == {*COSTLY}
    assert replace(RULE, metrics=("memory",)).decide([compared], 3).cells == {*CHEAP}
    assert replace(RULE, metrics=("import",)).decide([compared], 3).cells == ROUND_SECONDS.keys()
    assert replace(RULE, metrics=("time", "memory")).decide([compared], 3).cells == {*CHEAP, *COSTLY}


def test_nothing_is_chosen_where_all_is_decided() -> None:
    assert RULE.decide([comparison(row(DECIDED, 0))], 3) == (frozenset(), "")


@pytest.mark.parametrize(
    ("remaining", "pace", "cells"),
    [
        (26.0, 1.0, {*CHEAP, *COSTLY}),  # 3 rounds of 2 cells of 1 s, and 2 rounds of 2 cells of 5 s
        (25.9, 1.0, {*CHEAP}),
        (26.0, 1.1, {*CHEAP}),
        (52.0, 2.0, {*CHEAP, *COSTLY}),
        (0.1, 1.0, {*CHEAP}),  # the cheapest pair is always taken
    ],
)
def test_the_cheapest_decisions_come_first_while_the_time_covers_them(
    remaining: float, pace: float, cells: set[Cell]
) -> None:
    assert RULE.decide(TWO_OPEN, 3, remaining, pace).cells == cells


def test_a_pair_costs_no_more_rounds_than_the_maximum_allows() -> None:
    many = [comparison(row(COSTLY, 900), row(CHEAP, 900))]
    assert RULE.decide(many, 3, remaining=6 * 2 * 6.0).cells == {*CHEAP, *COSTLY}
    assert RULE.decide(many, 3, remaining=6 * 2 * 6.0 - 0.1).cells == {*CHEAP}


def test_the_twins_of_open_pairs_are_measured_with_them_and_have_no_rounds_of_their_own() -> None:
    of_base = twin(CHEAP[0])
    rule = replace(RULE, round_seconds={**ROUND_SECONDS, of_base: 1.0})
    a_a = comparison(row((CHEAP[0], of_base), 4), other=of_base.environment)
    assert rule.decide([a_a], 3).cells == frozenset()
    assert rule.decide([comparison(row(CHEAP, 1)), a_a], 3).cells == {*CHEAP, of_base}


def test_pairs_with_a_cell_outside_the_plan_are_left_out() -> None:
    assert RULE.decide([comparison(row(pair("another"), 2))], 3).cells == frozenset()


def test_the_last_look_gives_no_reason_for_another_round() -> None:
    assert RULE.decide([comparison(row(CHEAP, 2))], 9).reason == ""


def test_the_rule_of_a_plan_has_its_looks_and_the_cost_of_a_round_of_each_cell_that_runs() -> None:
    skipped = PlannedCell(cell=COSTLY[0], device="cpu", skip=Skip("no-memory", "too large"))
    plan = Plan(
        device="cpu",
        backend="venv",
        measurement=Measurement(rounds=3, max_rounds=9),
        cells=(PlannedCell(cell=CHEAP[0], device="cpu", seconds=6.0), skipped),
        blocks=(),
        frameworks={BASE: "torch"},
    )
    assert StoppingRule.of_plan(plan) == StoppingRule(looks=(3, 4, 5, 7, 9), round_seconds={CHEAP[0]: 2.0})


def test_pairs_that_are_given_up_get_no_further_round_and_are_counted() -> None:
    gone = replace(row(COSTLY, 31), abandoned=True, rounds=5)
    decision = RULE.decide([comparison(row(CHEAP, 2), gone)], 5)
    assert decision.cells == {*CHEAP}
    assert decision.reason == "after 5 rounds 2 verdicts are open, 1 of them given up: a further round for 2 tests"
    assert RULE.decide([comparison(gone)], 5) == (
        frozenset(),
        "after 5 rounds 1 verdict is open, 1 of them given up: no further round",
    )


def test_a_pair_of_three_rounds_is_measured_further_however_poor_its_chance_is() -> None:
    assert RULE.decide([comparison(replace(row(CHEAP, 31), more_rounds_low=31))], 3).cells == {*CHEAP}


def test_what_a_table_forecasts_reaches_the_rule() -> None:
    def decided(*log_ratios: float) -> Row:
        values = np.array(log_ratios)
        numbers = range(1, len(values) + 1)
        draft = Draft(
            Row(base=CHEAP[0], other=CHEAP[1], verdict="inconclusive", runs=("run",)),
            intervals.paired(values),
            RULE.looks,
            ratios=dict(zip(numbers, values.tolist(), strict=True)),
            groups={number: (f"a#{number}", f"b#{number}") for number in numbers},
        )
        (only,) = with_verdicts([draft], 0.02)
        return only

    hopeless, open_row = decided(0.3, -0.3, 0.2, -0.25, 0.1), decided(0.05, 0.04, 0.09, 0.05, 0.01)
    assert (hopeless.abandoned, open_row.abandoned) == (True, False)
    assert "given up: the chance of a verdict within the rounds of this run was below 1 in 20" in hopeless.reason
    assert RULE.decide([comparison(hopeless)], 5).cells == frozenset()
    assert RULE.decide([comparison(open_row)], 5).cells == {*CHEAP}
    assert not decided(0.3, -0.3, 0.2, -0.25).abandoned
