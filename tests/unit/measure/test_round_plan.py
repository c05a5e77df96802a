"""The order of measuring: listed from a plan, without servers."""

import itertools
from dataclasses import replace

import pytest

from runner.core.model import Cell, Measurement, Past, Plan, PlannedCell, Round
from runner.core.model.cells import plain
from runner.core.model.plans import PLAIN_ROUNDS
from runner.measure.round_plan import RoundPlan, abandoned_cells
from tests.support.fake_servers import block, cells

FIRST = cells("a/x", "b/x", "c/x", case="one")
SECOND = cells("a/x", "b/x", case="two")


def plan(past: Past = Past(), seed: int = 7) -> Plan:  # noqa: B008  frozen
    return Plan(
        device="cpu",
        backend="fake",
        measurement=Measurement(rounds=3, max_rounds=5, seed=seed),
        cells=(),
        blocks=(block(*FIRST), block(*SECOND)),
        frameworks=dict.fromkeys("abc", "torch"),
        past=past,
    )


def steps(of: Plan, number: int = 1, groups: tuple[str, ...] = ("abc",)) -> list[tuple[str, tuple[Cell, ...]]]:
    order = RoundPlan(of, "abc", groups)
    selected = {*FIRST, *SECOND}
    return [(step.block.case_id, step.cells) for group in order.rounds(number) for step in order.steps(group, selected)]


def test_a_round_has_each_case_once_with_all_its_cells() -> None:
    listed = dict(steps(plan()))
    assert {case: set(measured) for case, measured in listed.items()} == {
        "rnn-step/one": set(FIRST),
        "rnn-step/two": set(SECOND),
    }


def test_the_order_depends_on_the_seed_and_the_round_alone() -> None:
    assert steps(plan()) == steps(plan())
    orders = {str(steps(plan(), number)) for number in range(1, 30)}
    assert len(orders) > 5
    assert len({str(steps(plan(seed=seed))) for seed in range(30)}) > 5


@pytest.mark.parametrize("group", [0, 1])
def test_an_even_round_reverses_the_order_of_the_round_before(group: int) -> None:
    order = RoundPlan(plan(), "abc", ("abc", "acb"))
    cells_by_round = [
        {step.block.case_id: step.cells for step in order.steps(Round(number, group), set(FIRST))}
        for number in range(1, 41)
    ]
    for odd, even in zip(cells_by_round[::2], cells_by_round[1::2], strict=True):
        assert even == {case: cells[::-1] for case, cells in odd.items()}
    assert len({str(cells) for cells in cells_by_round[::2]}) > 3


def test_networks_of_users_come_together_last_in_one_round_and_first_in_the_next() -> None:
    blocks = [block(*cells("a/x", "b/x", case=f"c{number}")) for number in range(6)]
    of_users = {each.case_id for each in blocks[::2]}
    blocks = [replace(each, spec={"family": "model"}) if each.case_id in of_users else each for each in blocks]
    order = RoundPlan(replace(plan(), blocks=tuple(blocks)), "ab", ("ab",))
    selected = {cell for each in blocks for cell in each.cells}
    for number in range(1, 9):
        flags = [step.block.case_id in of_users for step in order.steps(Round(number), selected)]
        assert flags == sorted(flags, reverse=number % 2 == 0)


def controlled(rounds: int) -> Plan:
    """Return a plan of two cells and their plain-process controls."""
    of_two = (block(*FIRST[:2], plain(FIRST[0]), plain(FIRST[1])),)
    return replace(plan(), blocks=of_two, measurement=Measurement(rounds=rounds, max_rounds=8))


def test_a_plain_process_repeats_a_cell_in_the_first_of_the_planned_rounds_alone() -> None:
    planned = controlled(rounds=5)
    order = RoundPlan(planned, ("a", "b", "a@plain", "b@plain"), (("a", "b", "a@plain", "b@plain"),))
    names = []
    for number in range(1, 6):
        (step,) = order.steps(Round(number), planned.blocks[0].cells)
        names.append(sorted(cell.environment for cell in step.cells))
    assert names == [["a", "a@plain", "b", "b@plain"]] * PLAIN_ROUNDS + [["a", "b"]] * (5 - PLAIN_ROUNDS)
    only_controls = [cell for cell in planned.blocks[0].cells if "@" in cell.environment]
    assert order.steps(Round(PLAIN_ROUNDS + 1), only_controls) == []


def test_further_rounds_measure_the_plain_processes_that_are_chosen() -> None:
    planned = controlled(rounds=3)
    order = RoundPlan(planned, ("a", "b", "a@plain", "b@plain"), (("a", "b", "a@plain", "b@plain"),))
    chosen = {plain(FIRST[0]), plain(FIRST[1])}
    (step,) = order.steps(Round(4), chosen)
    assert set(step.cells) == chosen


def test_a_group_without_a_partner_measures_no_control_of_the_base() -> None:
    of_two = replace(plan(), blocks=(block(*FIRST[:2], plain(FIRST[0]), plain(FIRST[1])),))
    order = RoundPlan(
        of_two, ("a", "b", "c", "a@plain", "b@plain"), (("a", "b", "a@plain", "b@plain"), ("a", "c", "a@plain"))
    )
    cells_of = [order.steps(Round(1, group), of_two.blocks[0].cells) for group in (0, 1)]
    assert [len(step.cells) for step in cells_of[0]] == [4]
    assert cells_of[1] == []


def test_finished_cases_are_left_out_and_the_others_keep_their_order() -> None:
    behind = Past(finished=frozenset({("rnn-step/one", 1)}), attempts={("rnn-step/two", 1): 2})
    assert steps(plan(behind)) == [item for item in steps(plan()) if item[0] == "rnn-step/two"]
    order = RoundPlan(plan(behind), "abc", ("abc",))
    (step,) = order.steps(Round(1), {*FIRST, *SECOND})
    assert (step.number, step.attempt) == (1, 3)


def test_abandoned_and_unselected_cells_and_failed_cases_are_left_out() -> None:
    order = RoundPlan(plan(), "abc", ("abc",))
    (step,) = order.steps(Round(2), {FIRST[0], FIRST[1], SECOND[0]}, {FIRST[0]}, {"rnn-step/two"})
    assert step.cells == (FIRST[1],)


def test_deferred_cases_come_last_in_the_first_round_alone() -> None:
    for case_id in ("rnn-step/one", "rnn-step/two"):
        cells = tuple(cell for cell in (*FIRST, *SECOND) if cell.case_id == case_id)
        planned = tuple(PlannedCell(cell=cell, device="cpu", deferred="large") for cell in cells)
        order = RoundPlan(replace(plan(), cells=planned), "abc", ("abc",))
        assert [step.block.case_id for step in order.steps(Round(1), {*FIRST, *SECOND})][-1] == case_id
        later = [order.steps(Round(number), {*FIRST, *SECOND})[-1].block.case_id for number in range(2, 12)]
        assert len(set(later)) == 2


def test_each_group_has_the_base_and_its_own_numbers() -> None:
    order = RoundPlan(plan(), "abc", ("ab", "ac"))
    listed = [order.steps(group, {*FIRST, *SECOND}) for group in order.rounds(2)]
    assert [{step.number for step in group} for group in listed] == [{2}, {7}]
    assert {cell.environment for step in listed[1] for cell in step.cells} == {"a", "c"}
    assert [step.block.case_id for step in listed[1]] == ["rnn-step/one"]  # the base would be alone in the other


def test_environments_that_were_not_built_are_left_out() -> None:
    (first, *_) = RoundPlan(plan(), "ab", ("ab",)).steps(Round(1), {*FIRST})
    assert {cell.environment for cell in first.cells} == {"a", "b"}


@pytest.mark.parametrize(("limit", "sizes"), [(9, [3]), (2, [1, 2]), (0, [1, 1, 1])])
def test_turn_sets_hold_as_many_cells_as_memory(limit: int, sizes: list[int]) -> None:
    order = RoundPlan(plan(), "abc", ("abc",))
    (step, *_) = order.steps(Round(1), set(FIRST))
    sets = order.turn_sets(step, set(FIRST), limit)
    assert sorted(len(turn_set.cells) for turn_set in sets) == sizes
    assert sorted(turn_set.name for turn_set in sets) == [f"1/{index}" for index in range(len(sizes))]


def test_a_cell_that_ran_out_of_memory_gets_a_set_of_its_own() -> None:
    order = RoundPlan(plan(), "abc", ("abc",))
    (step, *_) = order.steps(Round(1), set(FIRST))
    sets = order.turn_sets(step, set(FIRST), 9, {FIRST[0]})
    assert sorted((set(turn_set.cells) for turn_set in sets), key=len) == [{FIRST[0]}, set(FIRST[1:])]


def test_stored_round_numbers_are_decoded() -> None:
    measurement = Measurement(rounds=3, max_rounds=5)
    for group in range(3):
        for number in range(1, 6):
            assert measurement.round_of(measurement.stored_number(Round(number, group))) == Round(number, group)


def test_only_failures_that_may_pass_are_measured_again() -> None:
    first, second = FIRST[:2]
    past = Past(failed=frozenset({(first, "crash"), (second, "oom"), (replace(first, phase="forward"), "device")}))
    assert abandoned_cells(past) == {second}


def test_servers_start_in_a_drawn_order_that_the_next_round_reverses() -> None:
    drawn = [RoundPlan(plan(seed=seed), "abc", ("abc",)).server_order({"c", "a", "b"}, Round(1)) for seed in range(20)]
    assert {*map(tuple, drawn)} == {*itertools.permutations("abc")}
    order = RoundPlan(plan(), "abc", ("abc",))
    assert order.server_order("abc", Round(2)) == order.server_order("cab", Round(1))[::-1]
    assert len({tuple(order.server_order("abc", Round(number))) for number in range(1, 40)}) == 6
