"""Rounds that other programs disturbed: how they are told, and how they are measured again."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from runner.core.model import (
    CaseFinished,
    Cell,
    Event,
    Measurement,
    Outcome,
    Past,
    Provisioned,
    RoundDisturbed,
    RoundTimes,
    Signs,
)
from runner.measure.disturbances import Disturbances, signs_of
from tests.support.fake_servers import GB, FakeBackend, block, cells, events

A, B = cells("a/x", "b/x")
FORWARD = replace(A, phase="forward")
CASE = A.case_id
READY = Provisioned(environment="a", framework="torch", handle="h", digest="d", seconds=0.0, cached=True)
NOTHING = Past()


def outcome(cell: Cell, number: int, others: float | None = 0.0, turn: float = 0.0, attempt: int = 1) -> Outcome:
    """Return a good outcome beside so many busy CPUs, with two turns of so many seconds each."""
    reply: dict[str, Any] = {"status": "ok", "seconds": [1.0]}
    reply |= {} if others is None else {"others_busy": others}
    reply |= {"seconds": [turn, turn], "turns": [1, 1], "turns_with": f"{number}/0"} if turn else {}
    return Outcome(cell=cell, round=number, attempt=attempt, reply=reply, facts={}, ready=READY)


def tracker(*outcomes: Outcome, allowed: float | None = 0.5, past: Past = NOTHING, rounds: int = 3) -> Disturbances:
    """Return the disturbances of some outcomes, each round of them a step."""
    disturbances = Disturbances(Measurement(rounds=rounds), past, allowed)
    for each in outcomes:
        disturbances.note(each)
    return disturbances


def marks_of(disturbances: Disturbances) -> list[tuple[int, int, float]]:
    """Return round, attempt and extent of what is disturbed."""
    return [(event.round, event.attempt, round(event.extent, 2)) for event in disturbances.marks()]


@pytest.mark.parametrize(
    ("others", "events_found"),
    [((0.0, 0.5), []), ((0.0, 0.6), [(1, 1, 1.2)]), ((1.5, 0.0), [(1, 1, 3.0)]), ((None, None), [])],
)
def test_others_beside_either_side_disturb_a_round(
    others: tuple[float | None, float | None], events_found: list[tuple[int, int, float]]
) -> None:
    of_round = [outcome(cell, 1, each) for cell, each in zip((A, B), others, strict=True)]
    assert marks_of(tracker(*of_round)) == events_found
    assert marks_of(tracker(*of_round, allowed=None)) == []


def test_turns_that_all_cells_of_a_set_lost_disturb_a_round_and_a_slow_state_of_one_cell_does_not() -> None:
    good = [outcome(A, 1, turn=0.010), outcome(B, 1, turn=0.012)]
    lost = [outcome(A, 2, turn=0.025), outcome(B, 2, turn=0.030)]
    slow = [outcome(A, 3, turn=0.010), outcome(B, 3, turn=0.090)]
    assert marks_of(tracker(*good, *lost, *slow)) == [(2, 1, 1.25)]


def test_a_better_round_shows_that_an_earlier_one_was_disturbed() -> None:
    disturbances = tracker(outcome(A, 1, turn=0.05), outcome(B, 1, turn=0.05))
    assert marks_of(disturbances) == []
    for cell in (A, B):
        disturbances.note(outcome(cell, 2, turn=0.01))
    assert marks_of(disturbances) == [(1, 1, 2.5)]
    assert marks_of(disturbances) == []  # it is told once
    assert disturbances.in_vain == 0


def test_the_signs_of_a_record_are_its_facts_and_the_mean_time_of_its_calls() -> None:
    facts = {"turns": [2, 2], "turns_with": "1/0", "batch": 10, "others_busy": 0.25}
    assert signs_of(facts, [0.1] * 4) == Signs(0.25, "1/0", 0.1)
    assert signs_of({"turns": [2, 2]}, [0.1] * 4) == Signs()  # alone in its set


def test_only_the_phase_that_was_disturbed_is_measured_again() -> None:
    disturbances = tracker(outcome(A, 1, 0.9), outcome(B, 1), outcome(FORWARD, 1))
    (event,) = disturbances.marks()
    assert (event.cells, event.case_id) == ((A, B), CASE)
    (repeat,) = disturbances.to_repeat(0)
    assert repeat == (CASE, 1, frozenset({A, B}), 2)
    assert disturbances.to_repeat(1) == []
    assert disturbances.to_repeat(0, left_out=(A,))[0].cells == {B}


def test_a_case_is_repeated_as_often_as_it_has_planned_rounds_and_the_least_repeated_round_comes_first() -> None:
    disturbances = tracker(*(outcome(A, number, 0.9) for number in (1, 2)), rounds=3)
    list(disturbances.marks())
    repeated = []
    while repeats := disturbances.to_repeat(0):
        (repeat,) = repeats
        repeated.append((repeat.round, repeat.attempt))
        disturbances.begin(repeat)
        disturbances.note(outcome(A, repeat.round, 0.9, attempt=repeat.attempt))
        list(disturbances.marks())  # as if it were no repeat: nothing is in vain
    assert repeated == [(1, 2), (2, 2), (1, 3)]


def test_repeats_in_vain_end_until_a_round_is_undisturbed() -> None:
    disturbances = tracker(*(outcome(A, number, 0.9) for number in (1, 2, 3)), rounds=9)
    list(disturbances.marks())
    for _ in range(2):
        (repeat,) = disturbances.to_repeat(0)
        disturbances.begin(repeat)
        disturbances.note(outcome(A, repeat.round, 0.9, attempt=repeat.attempt))
        list(disturbances.marks(is_repeat=True))
    assert disturbances.is_in_vain
    assert disturbances.to_repeat(0) == []
    disturbances.note(outcome(A, 4))
    list(disturbances.marks())
    assert disturbances.to_repeat(0)[0].round == 3


def attempts(run_events: Collection[Event]) -> list[tuple[str, int, int]]:
    """Return environment, round and attempt of each outcome."""
    return [(each.cell.environment, each.round, each.attempt) for each in run_events if isinstance(each, Outcome)]


def test_a_disturbed_round_is_measured_again_after_the_other_cases_on_new_servers() -> None:
    backend = FakeBackend()
    backend.is_beside("b/x", 0.9)
    tiny, large = block(A, B), block(*cells("a/y", "b/y", case="large"))
    run_events = list(events(backend, tiny, large, rounds=1, restart=1, busy_allowed=0.5))
    assert sorted(attempts(run_events)[:4]) == [("a", 1, 1)] * 2 + [("b", 1, 1)] * 2
    assert sorted(attempts(run_events)[4:]) == [("a", 1, 2), ("b", 1, 2)]
    assert {each.cell.case for each in run_events if isinstance(each, Outcome) and each.attempt == 2} == {"tiny"}
    names = [each.facts["server"] for each in run_events if isinstance(each, Outcome) and each.cell == B]
    assert names == ["b#1", "b#2"]
    (marked,) = [each for each in run_events if isinstance(each, RoundDisturbed)]
    assert (marked.round, marked.attempt, set(marked.cells)) == (1, 1, {A, B})
    assert len([each for each in run_events if isinstance(each, RoundTimes)]) == 1
    assert [each.case_id for each in run_events if isinstance(each, CaseFinished)].count(CASE) == 2


def test_a_neighbour_that_never_ends_costs_two_repeats() -> None:
    backend = FakeBackend()
    backend.is_beside("a/x", *[0.9] * 100)
    run_events = list(events(backend, block(A, B), rounds=10, busy_allowed=0.5))
    repeats = [each for each in attempts(run_events) if each[0] == "a" and each[2] > 1]
    assert repeats == [("a", 1, 2), ("a", 2, 2)]
    assert len(attempts(run_events)) == 2 * (10 + 2)


@pytest.mark.parametrize("how", [{}, {"busy_allowed": 0.5, "has_time_for": lambda *_: False}])
def test_nothing_is_measured_again_where_busy_is_fine_or_the_budget_is_spent(how: dict[str, Any]) -> None:
    backend = FakeBackend()
    backend.is_beside("a/x", 0.9)
    assert {attempt for _, _, attempt in attempts(list(events(backend, block(A, B), **how)))} == {1}


def test_the_rounds_of_a_memory_group_are_repeated_with_it() -> None:
    backend = FakeBackend()
    backend.sizes = {"a": GB, "b": 2 * GB, "c": 2 * GB}
    backend.is_beside("c/x", 0.9)
    run_events = list(
        events(backend, block(*cells("a/x", "b/x", "c/x")), memory=7 * GB, rounds=2, busy_allowed=0.5, restart=1)
    )
    again = {(environment, number) for environment, number, attempt in attempts(run_events) if attempt == 2}
    assert again == {("a", 3), ("c", 3)}


def test_a_resumed_run_repeats_what_the_run_before_it_could_not() -> None:
    past = Past(
        finished=frozenset({(CASE, 1), (CASE, 2)}),
        attempts={(CASE, 1): 1, (CASE, 2): 2},
        groups={"cpu": (("a", "b"),)},
        signs={(A, 1): (1, Signs(0.9)), (B, 1): (1, Signs(0.0)), (A, 2): (2, Signs(0.0)), (B, 2): (2, Signs(0.0))},
        disturbed=frozenset({(A, 1, 1), (B, 1, 1), (A, 2, 1), (B, 2, 1)}),
    )
    run_events = list(events(FakeBackend(), block(A, B), rounds=2, past=past, busy_allowed=0.5))
    assert sorted(attempts(run_events)) == [("a", 1, 2), ("b", 1, 2)]
    assert not [each for each in run_events if isinstance(each, RoundDisturbed)]  # it is marked already
    used_up = tracker(past=replace(past, attempts={(CASE, 1): 3, (CASE, 2): 2}), rounds=2)
    list(used_up.marks())
    assert used_up.repeats[CASE] == 3
    assert used_up.to_repeat(0) == []
