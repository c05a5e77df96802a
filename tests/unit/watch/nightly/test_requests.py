"""Which cells a night measures in turns, in which order, and how many."""

from dataclasses import replace

import pytest

from runner.analysis.compare.pairing import Side
from runner.analysis.comparison_model import Row
from runner.core.model import Cell
from runner.nights.looks import Look
from runner.plan.pairs import MAX_ROUNDS_IN_TURNS
from runner.watch.nightly.baseline import Baseline
from runner.watch.nightly.requests import (
    MIN_VERDICT_ROUNDS,
    NightCandidate,
    groups_by_environment,
    in_order,
    next_batch,
    turn_seconds,
    verdict_rounds,
)
from tests.support.fake_runs import cell

NO_TIME = Look("night", "no-time")


def candidate(
    case: str, ratio: float = 1.0, *looks: Look, run: str = "run-a", more: int = 0, phase: str = "train"
) -> NightCandidate:
    """Return a candidate of one case."""
    of = cell(case=case, phase=phase)
    row = Row(base=of, other=of, ratio=ratio, rounds=3, more_rounds=more, verdict="inconclusive")
    return NightCandidate(of, row, Baseline(run=run, side=Side(environment=run), digest=run, facts={}), looks=looks)


def cases(candidates: list[NightCandidate]) -> list[str]:
    return [each.cell.case for each in candidates]


def seconds(candidates: list[NightCandidate]) -> dict[Cell, float]:
    """Return 1 s for a round of each cell."""
    return dict.fromkeys((each.cell for each in candidates), 1.0)


def test_of_equal_suspicion_the_cell_that_waited_longest_comes_first() -> None:
    queue = [candidate("new"), candidate("two", 1.0, NO_TIME, NO_TIME), candidate("single", 1.0, NO_TIME)]
    assert cases(in_order(queue, 0.02)) == ["two", "single", "new"]


def test_of_equal_age_the_largest_suspicion_comes_first() -> None:
    queue = [candidate("equal"), candidate("slow", 1.05), candidate("fast", 0.9)]
    assert cases(in_order(queue, 0.02)) == ["slow", "equal", "fast"]


def test_a_night_of_waiting_counts_as_a_margin_of_suspicion() -> None:
    waited = candidate("waited", 1.0, NO_TIME)
    assert cases(in_order([candidate("less", 1.019), waited], 0.02)) == ["waited", "less"]
    assert cases(in_order([waited, candidate("more", 1.021)], 0.02)) == ["more", "waited"]


def test_what_a_second_night_has_to_confirm_comes_first_and_what_is_confirmed_last() -> None:
    once = Look("night", "measured-again", "slower", leans_slower=True)
    confirmed = once._replace(confirmed_in="night")
    queue = [candidate("confirmed", 1.2, confirmed), candidate("some", 1.01), candidate("once", 1.03, once)]
    assert cases(in_order(queue, 0.02)) == ["once", "some", "confirmed"]


@pytest.mark.parametrize(("more", "expected"), [(0, MIN_VERDICT_ROUNDS), (2, MIN_VERDICT_ROUNDS), (9, 12), (99, 20)])
def test_rounds_are_reserved_by_the_forecast_between_nine_and_the_cap(more: int, expected: int) -> None:
    assert verdict_rounds(candidate("a", more=more), MAX_ROUNDS_IN_TURNS) == expected


def test_the_forecast_of_rounds_in_turns_counts_more_than_that_of_two_runs() -> None:
    known = Look("night", "measured-again", "inconclusive", rounds=5, more_rounds=6)
    assert verdict_rounds(candidate("a", 1.0, known, more=99), MAX_ROUNDS_IN_TURNS) == 11


def test_a_cell_costs_both_sides_and_an_a_a_pair_for_each_case() -> None:
    alone = [candidate("a")]
    assert turn_seconds(alone, seconds(alone), MAX_ROUNDS_IN_TURNS, twins=False) == 2 * 9
    assert turn_seconds(alone, seconds(alone), MAX_ROUNDS_IN_TURNS, twins=True) == 3 * 9
    of_a_case = [candidate("a"), candidate("a", phase="forward")]
    assert turn_seconds(of_a_case, seconds(of_a_case), MAX_ROUNDS_IN_TURNS, twins=True) == 5 * 9
    of_two_runs = [candidate("a"), candidate("a", run="run-b")]
    assert turn_seconds(of_two_runs, seconds(of_two_runs), MAX_ROUNDS_IN_TURNS, twins=True) == 6 * 9


@pytest.mark.parametrize(("budget", "count"), [(53.9, 1), (54.0, 2), (80.9, 2), (81.0, 3), (0.0, 1)])
def test_a_night_starts_no_more_cells_than_it_brings_to_a_verdict(budget: float, count: int) -> None:
    queue = [candidate(name) for name in "abc"]
    batch = next_batch(queue, seconds(queue), MAX_ROUNDS_IN_TURNS, budget, twins=True, is_first=True)
    assert cases(batch) == list("abc")[:count]


def test_the_metrics_of_the_first_cell_are_taken_together_for_they_share_its_rounds() -> None:
    time, memory = candidate("a"), candidate("a")
    memory = memory._replace(row=replace(memory.row, metric="memory"))
    queue = [time, candidate("b"), memory, candidate("a", run="run-b")]
    assert next_batch(queue, seconds(queue), MAX_ROUNDS_IN_TURNS, 0.0, twins=True, is_first=True) == [time, memory]


def test_once_something_was_measured_nothing_starts_that_does_not_fit() -> None:
    queue = [candidate(name) for name in "abc"]
    assert next_batch(queue, seconds(queue), MAX_ROUNDS_IN_TURNS, 26.9, twins=True, is_first=False) == []


def test_a_cell_that_does_not_fit_is_passed_over_for_a_cheaper_cell() -> None:
    queue = [candidate("dear"), candidate("cheap")]
    costs = {queue[0].cell: 100.0, queue[1].cell: 1.0}
    assert cases(next_batch(queue, costs, MAX_ROUNDS_IN_TURNS, 30.0, twins=True, is_first=True)) == ["cheap"]


def test_candidates_of_the_same_environment_and_run_share_a_run_in_turns() -> None:
    other = candidate("c")
    other = other._replace(cell=replace(other.cell, environment="torch-1.x"))
    groups = groups_by_environment([candidate("a"), candidate("b", run="run-b"), other, candidate("d")])
    assert [cases(group) for group in groups] == [["a", "d"], ["b"], ["c"]]
