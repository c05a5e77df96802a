"""Extra rounds as they are measured: which cells they have, how they are numbered, and when they end."""

import itertools

from runner.core.model import Block, CaseSkipped, ExtraRound, Measurement, Outcome, Past
from tests.support.fake_servers import FakeBackend, block, cells, events, outcomes


def test_rounds_of_a_further_group_are_those_of_the_first() -> None:
    measurement = Measurement(rounds=3, max_rounds=5)
    assert [measurement.round_of(number).number for number in (1, 5, 6, 10, 11)] == [1, 5, 1, 5, 1]


def test_further_rounds_that_are_whole_are_not_announced_again() -> None:
    two = cells("a/x", "b/x")
    attempts = {("rnn-step/tiny", number): 1 for number in (1, 2, 3)}
    finished = frozenset({("rnn-step/tiny", 1), ("rnn-step/tiny", 2)})
    behind = Past(attempts=attempts, finished=finished, groups={"cpu": (("a", "b"),)})
    all_events = list(
        events(FakeBackend(), block(*two), rounds=1, max_rounds=4, extra_rounds=lambda _: two, past=behind)
    )
    assert [event.round for event in all_events if isinstance(event, ExtraRound)] == [3, 4]
    assert [(event.round, event.attempt) for event in all_events if isinstance(event, Outcome)] == [
        (3, 2),
        (3, 2),
        (4, 1),
        (4, 1),
    ]


def test_further_rounds_measure_the_wanted_cells_and_say_so() -> None:
    four = cells("a/x", "a/y", "b/x", "b/y")
    some = cells("a/x", "b/x")
    all_events = list(
        events(
            FakeBackend(), block(*four), rounds=2, max_rounds=5, extra_rounds=lambda done: four if done < 2 else some
        )
    )
    by_round = itertools.groupby(
        (event for event in all_events if isinstance(event, Outcome)), key=lambda event: event.round
    )
    assert {number: {event.cell for event in turn} for number, turn in by_round} == {
        **{number: set(four) for number in (1, 2)},
        **{number: set(some) for number in (3, 4, 5)},
    }
    assert [event.round for event in all_events if isinstance(event, ExtraRound)] == [3, 4, 5]


def test_when_no_cell_is_wanted_the_rounds_are_over() -> None:
    two = cells("a/x", "b/x")
    of_rounds = outcomes(
        FakeBackend(), block(*two), rounds=2, max_rounds=9, extra_rounds=lambda done: two if done < 4 else ()
    )
    assert max(outcome.round for outcome in of_rounds) == 4


def test_groups_number_their_rounds_apart_up_to_the_cap() -> None:
    backend = FakeBackend()
    backend.sizes = dict.fromkeys("abc", 3)
    three = cells("a/x", "b/x", "c/x")
    of_rounds = list(outcomes(backend, block(*three), rounds=1, max_rounds=2, memory=12, extra_rounds=lambda _: three))
    assert [(outcome.cell.environment, outcome.round) for outcome in of_rounds if outcome.cell.environment != "a"] == [
        ("b", 1),
        ("c", 3),
        ("b", 2),
        ("c", 4),
    ]


def test_a_case_over_budget_is_left_out_of_all_rounds_and_its_cells_are_named() -> None:
    first, second = block(*cells("a/x", "b/x", case="one")), block(*cells("a/x", "b/x", case="two"))
    requested: list[str] = []

    def over_budget(of: Block, _: float) -> str:
        requested.append(of.case_id)
        return "no time" if of.case_id == "rnn-step/two" else ""

    all_events = list(events(FakeBackend(), first, second, over_budget=over_budget))
    assert [event for event in all_events if isinstance(event, CaseSkipped)] == [
        CaseSkipped("rnn-step/two", second.cells, "no time")
    ]
    assert sorted(requested) == ["rnn-step/one", "rnn-step/two"]  # in the first round alone
    measured = [event.cell.case for event in all_events if isinstance(event, Outcome)]
    assert measured == ["one"] * 6
