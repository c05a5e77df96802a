"""Which pair a bisect measures next, and what its verdicts name."""

import math
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.stats import intervals
from runner.stats.bisection import (
    FoundChanges,
    LocatedChange,
    Outcome,
    PositionPair,
    Search,
    bisection,
    comparison_limit,
    every_neighbour,
    expected_comparisons,
    neighbours,
)
from runner.stats.paired_tests import evaluate

Judge = Callable[[PositionPair], Outcome]
OUTCOMES: tuple[Outcome, ...] = ("same", "changed", "open", "missing")


def answered(search: Search, judge: Judge) -> tuple[FoundChanges, list[PositionPair]]:
    """Return the answer of a search, and the pairs that it measured."""
    pairs: list[PositionPair] = []
    try:
        pair = next(search)
        while True:
            pairs.append(pair)
            pair = search.send(judge(pair))
    except StopIteration as end:
        answer: FoundChanges = end.value
        return answer, pairs


def exactly(levels: Sequence[float | None], margin: float = 0.02) -> Judge:
    """Return a judge that knows the times of all releases; None is one that cannot be measured."""

    def judge(pair: PositionPair) -> Outcome:
        base, other = levels[pair.base], levels[pair.other]
        if base is None or other is None:
            return "missing"
        return "same" if abs(math.log(other / base)) < math.log1p(margin) else "changed"

    return judge


@pytest.mark.parametrize("after", range(1, 12))
def test_a_single_step_is_named_wherever_it_is(after: int) -> None:
    answer, pairs = answered(bisection(12), exactly([1.0] * after + [1.05] * (12 - after)))
    assert answer == FoundChanges((LocatedChange(after - 1, after),))
    assert answer.changes[0].is_named
    assert len(pairs) <= expected_comparisons(12)


@given(st.integers(2, 400), st.data())
def test_the_comparisons_grow_with_the_logarithm(size: int, data: st.DataObject) -> None:
    after = data.draw(st.integers(1, size - 1))
    answer, pairs = answered(bisection(size), exactly([1.0] * after + [0.9] * (size - after)))
    assert [change.after for change in answer.changes] == [after]
    assert len(pairs) <= math.log2(size) + 4


def test_neighbours_are_compared_in_a_run_of_their_own() -> None:
    _, pairs = answered(bisection(8), exactly([1.0] * 5 + [1.1] * 3))
    assert PositionPair(4, 5, confirms=True) in pairs
    _, pairs = answered(bisection(2), exactly([1.0, 1.1]))
    assert pairs == [PositionPair(0, 1), PositionPair(0, 1, 1, confirms=True)]


@given(st.lists(st.sampled_from([0.9, 0.95, 1.0, 1.05, 1.1]), min_size=2, max_size=12))
def test_every_named_change_is_one_and_the_levels_lead_to_the_end(levels: list[float]) -> None:
    judge = exactly(levels)
    answer, _ = answered(bisection(len(levels), limit=1000), judge)
    for change in answer.changes:
        assert change.is_named
        assert judge(PositionPair(change.before, change.after)) == "changed"
    last = answer.changes[-1].after if answer.changes else 0
    assert judge(PositionPair(last, len(levels) - 1)) == "same" or last == len(levels) - 1


def test_steps_up_are_all_named() -> None:
    answer, _ = answered(bisection(9), exactly([1, 1, 1.1, 1.1, 1.2, 1.2, 1.2, 1.3, 1.3]))
    assert [change.after for change in answer.changes] == [2, 4, 7]


def test_a_slow_down_that_is_taken_back_shows_only_between_neighbours() -> None:
    levels = [1.0, 1.0, 1.1, 1.1, 1.0, 1.0]
    assert answered(bisection(6), exactly(levels))[0] == FoundChanges()
    answer, pairs = answered(every_neighbour(6), exactly(levels))
    assert [change.after for change in answer.changes] == [2, 4]
    assert len(pairs) == 5 + 2


def test_releases_that_cannot_be_measured_make_a_range() -> None:
    for search in (bisection(7), every_neighbour(7)):
        answer, _ = answered(search, exactly([1.0, 1.0, None, None, 1.1, 1.1, 1.1]))
        assert answer == FoundChanges((LocatedChange(1, 4, (2, 3)),))
        assert not answer.changes[0].is_named


def test_a_comparison_without_a_verdict_makes_its_release_unknown() -> None:
    judge = exactly([1.0, 1.0, 1.015, 1.1])
    answer, _ = answered(bisection(4), lambda pair: "open" if 2 in pair[:2] else judge(pair))
    assert answer == FoundChanges((LocatedChange(1, 3, (2,)),))


def test_a_release_that_is_undecided_against_the_base_may_be_clear_against_the_changed_one() -> None:
    judge = exactly([1.0, 1.0, 1.015, 1.1, 1.1])
    answer, pairs = answered(bisection(5), lambda pair: "open" if pair[:2] == (0, 2) else judge(pair))
    assert answer == FoundChanges((LocatedChange(2, 3),))
    assert {PositionPair(2, 3), PositionPair(2, 3, 1, confirms=True)} <= set(pairs)
    judge = exactly([1.0, 1.0, 1.1, 1.1, 1.1])
    answer, _ = answered(bisection(5), lambda pair: "open" if pair[:2] == (0, 2) else judge(pair))
    assert answer == FoundChanges((LocatedChange(1, 2),))


def test_what_was_clear_only_once_is_a_range() -> None:
    judge = exactly([1.0, 1.0, 1.015, 1.1, 1.1])
    opens = {(0, 2, 0), (2, 3, 1)}
    answer, _ = answered(bisection(5), lambda pair: "open" if pair[:3] in opens else judge(pair))
    assert answer.changes[0] == LocatedChange(2, 3, (), "unconfirmed")
    assert not answer.changes[0].is_named
    outcomes: dict[PositionPair, Outcome] = {
        PositionPair(0, 2): "open",
        PositionPair(2, 3, 1, confirms=True): "same",
        PositionPair(2, 3, 2, confirms=True): "same",
    }
    answer, _ = answered(bisection(5), lambda pair: outcomes.get(pair) or judge(pair))
    assert answer.changes[0] == LocatedChange(1, 3, (2,), "unconfirmed")


def test_ends_without_a_verdict_are_undecided_and_equal_ends_are_an_answer() -> None:
    assert answered(bisection(5), lambda _: "open") == (FoundChanges((), (0, 4)), [PositionPair(0, 4)])
    assert answered(bisection(5), lambda _: "same") == (FoundChanges(), [PositionPair(0, 4)])


def test_many_small_steps_are_gradual() -> None:
    answer, _ = answered(bisection(6), exactly([1.0, 1.012, 1.024, 1.036, 1.048, 1.06]))
    assert answer.changes[0].kind == "gradual"
    assert not answer.changes[0].is_named


def test_a_false_verdict_in_the_search_is_measured_again() -> None:
    judge = exactly([1.0] * 6 + [1.05] * 2)

    def wrong_once(pair: PositionPair) -> Outcome:
        return "changed" if pair == PositionPair(0, 4) else judge(pair)

    answer, pairs = answered(bisection(8), wrong_once)
    assert PositionPair(0, 4, 1) in pairs
    assert answer == FoundChanges((LocatedChange(5, 6),))


def test_what_a_second_run_does_not_confirm_is_not_named() -> None:
    answer, _ = answered(bisection(2), lambda pair: "open" if pair.repeats else "changed")
    assert answer.changes[0].kind == "unconfirmed"
    assert not answer.changes[0].is_named
    answer, pairs = answered(bisection(2), lambda pair: "same" if pair.repeats else "changed")
    assert answer == FoundChanges()
    assert len(pairs) == 3


@given(st.integers(2, 40), st.sampled_from([bisection, every_neighbour]), st.integers(0, 2**32))
def test_whatever_the_verdicts_are_the_search_ends_and_repeats_itself(
    size: int, search: Callable[[int], Search], seed: int
) -> None:
    outcomes = Random(seed)
    answer, pairs = answered(search(size), lambda _: outcomes.choice(OUTCOMES))
    assert all(0 <= pair.base < pair.other < size and pair.repeats < 3 for pair in pairs)
    ends = [position for change in answer.changes for position in (change.before, change.after)]
    assert ends == sorted(ends)
    again = Random(seed)
    assert answered(search(size), lambda _: again.choice(OUTCOMES)) == (answer, pairs)


@given(st.integers(2, 60), st.integers(1, 70), st.sampled_from([bisection, every_neighbour]), st.integers(0, 2**32))
def test_a_search_stops_at_its_limit_with_what_it_knows(
    size: int, limit: int, search: Callable[[int, int], Search], seed: int
) -> None:
    outcomes = Random(seed)
    answer, pairs = answered(search(size, limit), lambda _: outcomes.choice(OUTCOMES))
    assert len(pairs) <= limit
    assert answer.stopped <= (len(pairs) == limit)
    if answer.stopped:
        assert answer.undecided or answer.changes[-1].kind == "stopped"
        assert not (answer.undecided and answer.changes and answer.changes[-1].kind == "stopped")


def test_a_stopped_search_has_the_range_that_it_narrowed_down_to() -> None:
    judge = exactly([1.0] * 20 + [1.1] * 13)
    answer, _ = answered(bisection(33, 4), judge)
    assert answer == FoundChanges((LocatedChange(16, 20, (17, 18, 19), "stopped"),), None, stopped=True)
    assert answered(bisection(33, 1), lambda _: "open")[0] == FoundChanges((), (0, 32))


def test_a_gradual_change_takes_no_more_comparisons_than_all_neighbours() -> None:
    levels = [1.1 ** (position / 32) for position in range(33)]
    judge = exactly(levels)
    assert len(answered(bisection(33, 1000), judge)[1]) > comparison_limit(33)
    answer, pairs = answered(bisection(33), judge)
    assert len(pairs) == comparison_limit(33) == 33
    assert answer.stopped


def test_the_neighbours_of_a_change_are_the_nearest_that_were_not_tried() -> None:
    change, later = LocatedChange(3, 4), LocatedChange(7, 8)
    pairs = neighbours(12, [change, later], change, {0, 3, 4, 5, 11})
    assert [pair.other for pair in pairs] == [2, 6]
    assert [pair.other for pair in neighbours(12, [change, later], change, {0, 2, 3, 4, 5, 6, 7})] == [1]
    assert neighbours(5, [change], change, {0, 1, 2, 3, 4}) == ()


def outcome_pool(change: float, count: int, random: np.random.Generator) -> list[Outcome]:
    """Return how simulated comparisons end, by the statistics of real ones: rounds with a standard deviation of 2 %."""
    looks = intervals.looks(3, 20)
    rounds = random.normal(math.log1p(change), 0.02, (count, looks[-1]))
    outcomes: list[Outcome] = ["open"] * count
    undecided = np.arange(count)
    for look in looks:
        ratios = [rounds[row, :look] for row in undecided]
        evidence = intervals.PairedEvidence(
            *(np.array(column) for column in zip(*map(intervals.paired, ratios), strict=True))
        )
        p, _, _, deciding = evaluate(evidence, ratios, [looks] * len(ratios), table_rows=1)
        verdicts = intervals.verdicts(deciding, p <= intervals.FALSE_ALARM_LEVEL)
        for row, verdict in zip(undecided, verdicts, strict=True):
            outcomes[row] = "open" if verdict == "inconclusive" else "same" if verdict == "same" else "changed"
        undecided = np.array([row for row in undecided if outcomes[row] == "open"], dtype=int)
        if not len(undecided):
            break
    return outcomes


@pytest.mark.simulation
def test_in_simulated_searches_a_wrong_release_is_named_in_at_most_one_of_a_hundred() -> None:
    """Noise of 2 %, a step of 5 % at a random release of 33: the wrong one is named in at most 1 %."""
    random = np.random.default_rng(20)
    pools = {change: outcome_pool(change, 1500, random) for change in (0.0, 0.05)}
    named = wrong = comparisons = 0
    searches = 2000
    for _ in range(searches):
        after = int(random.integers(1, 33))

        def judge(pair: PositionPair, after: int = after) -> Outcome:
            pool = pools[0.05 if pair.base < after <= pair.other else 0.0]
            return pool[int(random.integers(len(pool)))]

        answer, pairs = answered(bisection(33), judge)
        names = [change.after for change in answer.changes if change.is_named]
        named += names == [after]
        wrong += any(name != after for name in names)
        comparisons += len(pairs)
    assert wrong / searches <= 0.01
    assert named / searches >= 0.95
    assert comparisons / searches <= math.log2(32) + 4
