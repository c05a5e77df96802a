"""Cells that take turns: their sets, their order, the length of a turn, and how turns are compared."""

import itertools
import math
import random
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.analysis import dataset
from runner.analysis.compare import compare
from runner.analysis.controls import aa_pairs
from runner.analysis.model import TurnCalls, TurnMedians, log_ratio
from runner.analysis.tables import turns_of
from runner.core.model import Cell, Outcome, Provisioned, Record
from runner.harness import script_stack, timing, turn_plan
from runner.measure import turns
from runner.measure.record import collect
from tests.support.fake_runs import cell, good, make
from tests.support.fake_servers import GB, FakeBackend, block, cells, outcomes

FOUR = cells("a/x", "a/y", "b/x", "c/x")
CASE = st.lists(
    st.builds(
        Cell,
        environment=st.sampled_from("abcd"),
        implementation=st.sampled_from("xyz"),
        workload=st.just("rnn-step"),
        case=st.just("tiny"),
        phase=st.sampled_from(["forward", "gradient", "train"]),
    ),
    unique=True,
)


def record(*seconds: float, **facts: object) -> Record:
    """Return a good record with these samples and facts."""
    return replace(good(cell(), 1, seconds), facts=facts)


@given(CASE, st.integers(0, 6))
def test_sets_hold_every_cell_once_and_only_cells_that_may_take_turns(case: list[Cell], limit: int) -> None:
    sets = turns.sets(case, limit)
    assert sorted(map(repr, itertools.chain(*sets))) == sorted(map(repr, case))
    for turn_set in sets:
        assert len(turn_set) <= max(1, limit)
        assert len({cell.environment for cell in turn_set}) == len(turn_set)
        assert len({(cell.phase, cell.precision) for cell in turn_set}) == 1


def test_sets_keep_cells_of_one_implementation_together() -> None:
    mixed = cells("a/x", "b/y", "b/x", "a/y", "c/z")
    assert [{cell.implementation for cell in turn_set} for turn_set in turns.sets(mixed, 9)] == [{"x", "z"}, {"y"}]
    assert [len(turn_set) for turn_set in turns.sets(mixed, 2)] == [2, 2, 1]
    assert [len(turn_set) for turn_set in turns.sets(cells("a/x", "b/x", "c/x", "d/x"), 3)] == [2, 2]


def test_a_cell_that_runs_out_of_memory_is_measured_once_more_without_others() -> None:
    backend = FakeBackend()

    def measured_b() -> list[Outcome]:
        measured = outcomes(backend, block(*cells("a/x", "b/x", "c/x")), rounds=3)
        return [outcome for outcome in measured if outcome.cell.environment == "b"]

    backend.does("b/x", "oom")
    once = measured_b()
    assert [outcome.reply.get("class", "ok") for outcome in once] == ["oom", "ok", "ok"]
    assert not in_turns(once)
    backend.does("b/x", "oom", "oom")
    assert [outcome.reply.get("class", "ok") for outcome in measured_b()] == ["oom", "oom"]


@given(CASE, st.integers())
def test_order_keeps_cells_of_one_implementation_together(case: list[Cell], seed: int) -> None:
    ordered = turns.order(case, random.Random(seed))
    assert sorted(map(repr, ordered)) == sorted(map(repr, case))
    runs = [name for name, _ in itertools.groupby(ordered, key=lambda cell: cell.implementation)]
    assert len(runs) == len(set(runs))


def test_cells_take_turns_until_each_has_ended() -> None:
    backend = FakeBackend()
    backend.takes("b/x", "turn", "turn", "turn", "turn")
    measured = list(outcomes(backend, block(*cells("a/x", "b/x", "c/x")), rounds=1))
    assert [sorted(backend.turns[k : k + 3]) for k in (0, 3)] == [["a/x", "b/x", "c/x"]] * 2
    assert backend.turns[6:] == ["b/x", "b/x"]
    assert measured[-1].cell.environment == "b"
    assert {outcome.reply["turns_with"] for outcome in measured} == {"1/0"}
    lengths = {outcome.cell.environment: outcome.reply["turns"] for outcome in measured}
    assert lengths == {"a": [1] * 2, "b": [1] * 4, "c": [1] * 2}


def test_cells_that_take_turns_get_the_plan_of_all_of_them() -> None:
    """Those whose calls take as long, and not a cell that is far slower."""
    backend = FakeBackend()
    backend.paces = {
        "a/x": turn_plan.pace(30, 1, 0.004),
        "b/x": turn_plan.pace(50, 1, 0.003),
        "c/x": turn_plan.pace(20, 1, 2.0),
    }
    measured = list(outcomes(backend, block(*cells("a/x", "b/x", "c/x")), rounds=1))
    assert {outcome.reply["status"] for outcome in measured} == {"ok"}
    assert backend.plans["a/x"] == backend.plans["b/x"] == {"batch": 1, "samples": 3, "leads": 1, "first_call": 50}
    assert backend.plans["c/x"] == {"batch": 1, "samples": 1, "leads": 0, "first_call": 20}


def test_cells_that_take_turns_build_at_the_same_time() -> None:
    backend = FakeBackend()
    backend.building = threading.Barrier(2)
    measured = list(outcomes(backend, block(*cells("a/x", "b/x")), rounds=2, side_by_side=2))
    assert [outcome.reply["status"] for outcome in measured] == ["ok"] * 4
    with pytest.raises(threading.BrokenBarrierError):
        list(outcomes(backend, block(*cells("a/x", "b/x")), rounds=1, side_by_side=1))


def test_one_child_at_a_time_makes_its_first_call() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*cells("a/x", "b/x")), rounds=1, side_by_side=2))
    assert backend.threads["hello"] == backend.threads["called"] == backend.threads["measure"] == {"concurrent"}
    assert backend.threads["first"] == backend.threads["turn"] == {threading.current_thread().name}


def test_cells_verify_once_all_of_them_have_their_samples() -> None:
    backend = FakeBackend()
    backend.takes("b/x", "turn", "turn", "turn", "turn")
    ended = [outcome.cell.environment for outcome in outcomes(backend, block(*cells("a/x", "b/x", "c/x")), rounds=1)]
    assert sorted(ended) == ["a", "b", "c"]
    assert ended[-1] == "b"


def test_the_order_of_turns_is_random_and_repeats_with_the_seed() -> None:
    def order(seed: int) -> list[str]:
        backend = FakeBackend()
        backend.patterns = {f"{name}/x": ["turn"] * 6 for name in "abc"}
        list(outcomes(backend, block(*cells("a/x", "b/x", "c/x")), rounds=2, seed=seed))
        return backend.turns

    assert order(1) == order(1) != order(2)
    assert len({tuple(order(1)[k : k + 3]) for k in range(0, 36, 3)}) > 2


@pytest.mark.parametrize(
    ("pattern", "kind"), [(["turn", "dies"], "crash"), (["turn", "oom"], "oom"), (["turn", "hangs"], "timeout")]
)
def test_a_cell_that_fails_in_a_turn_does_not_stop_the_others(pattern: list[str], kind: str) -> None:
    backend = FakeBackend()
    backend.takes("b/x", *pattern)
    measured = outcomes(backend, block(*cells("a/x", "b/x", "c/x")), rounds=1)
    replies = {outcome.cell.environment: outcome.reply for outcome in measured}
    assert {name: reply["status"] for name, reply in replies.items()} == {"a": "ok", "b": "failed", "c": "ok"}
    assert replies["b"]["class"] == kind
    assert "turns_with" not in replies["b"]
    assert all(server.closed for server in backend.opened)


def in_turns(measured: list[Outcome]) -> int:
    """Return how many outcomes are of cells that took turns with others."""
    return sum("turns_with" in outcome.reply for outcome in measured)


def test_no_turns_for_one_environment_on_a_gpu_or_without_memory_for_two() -> None:
    assert in_turns(list(outcomes(FakeBackend(), block(*cells("a/x", "a/y")), rounds=1))) == 0
    on_gpu = replace(block(*FOUR), device="cuda")
    assert in_turns(list(outcomes(FakeBackend(), on_gpu, rounds=1))) == 0
    large = replace(block(*cells("a/x", "b/x", "c/x")), memory_bytes=2 * GB)
    assert in_turns(list(outcomes(FakeBackend(), large, rounds=1, memory=6 * GB))) == 0
    assert in_turns(list(outcomes(FakeBackend(), large, rounds=1, memory=8 * GB))) == 2
    assert in_turns(list(outcomes(FakeBackend(), large, rounds=1, memory=12 * GB))) == 3


class _Calls:
    """Calls of a fixed time, on a clock that a wait for a turn moves on by a second."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds, self.log = 0.0, seconds, ""

    def call(self) -> None:
        self.now += self.seconds
        self.log += "c"

    def wait(self) -> None:
        self.now += 1.0
        self.log += "w"

    def turns(self, budget: float) -> dict[str, list[float]]:
        (plan,) = turn_plan.plans([turn_plan.pace(0, 1, self.seconds)], budget)
        times: dict[str, list[float]] = script_stack.run(
            timing.in_turns(self.call, lambda: None, lambda: self.now, budget, plan, self.wait)
        )
        return times


def test_a_turn_is_a_lead_and_calls_that_fill_it() -> None:
    calls = _Calls(0.003)
    times = calls.turns(60.0)
    assert times["turns"] == [4] * len(times["turns"])
    assert calls.log == "wccccc" * len(times["turns"])
    assert times["seconds"] == pytest.approx([0.003] * 4 * len(times["turns"]))
    assert times["leads"] == pytest.approx([0.003] * len(times["turns"]))


def test_a_precise_median_ends_the_turns_once_a_quarter_of_the_budget_has_passed() -> None:
    assert sum(_Calls(0.003).turns(4.0)["seconds"]) == pytest.approx(1.0, abs=0.02)
    assert _Calls(0.003).turns(0.4)["turns"] == [4] * turn_plan.TURNS


def test_a_long_call_is_a_turn_without_a_lead() -> None:
    calls = _Calls(0.5)
    assert calls.turns(2.4)["turns"] == [1] * 5
    assert calls.log == "wc" * 5
    assert _Calls(0.5).turns(0.1)["turns"] == [1] * timing.MIN_SAMPLES


def test_waiting_for_a_turn_counts_in_no_time_and_no_budget() -> None:
    times = _Calls(0.02).turns(0.09)
    assert times["turns"] == [2] * 3
    assert max(times["seconds"] + times["leads"]) < 0.021


def test_log_ratio_of_a_round_is_the_median_over_shared_turns() -> None:
    base, other = TurnMedians("a", (1.0, 9.0, 1.0, 1.0)), TurnMedians("a", (1.1, 9.9, 9.9))
    assert log_ratio((1.0, base), (9.9, other)) == pytest.approx(math.log(1.1))
    assert log_ratio((9.9, other), (1.0, base)) == pytest.approx(-math.log(1.1))
    for unpaired in (None, TurnMedians("b", other.medians)):
        assert log_ratio((1.0, base), (9.9, unpaired)) == pytest.approx(math.log(9.9))


def test_compare_uses_the_turns_and_not_the_medians(tmp_path: Path) -> None:
    """By the medians the other side takes little more than half; in each turn that both had, a tenth more."""
    base, other, twin = (cell(name) for name in ("torch-1.0", "torch-2.x", "torch-1.0@twin"))
    times = {
        base: [2.0, 2.0, 2.0, 1.0, 1.0],
        other: [2.2, 2.2, 2.2, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1],
        twin: [2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    }
    ready = Provisioned(environment="x", framework="torch", handle="h", digest="d", seconds=0.0, cached=True)
    records = []
    for number, (measured, seconds) in itertools.product(range(1, 4), times.items()):
        seconds = [second * (1 + 1e-6 * index) for index, second in enumerate(seconds)]  # noqa: PLW2901 - a fine clock
        reply = {"status": "ok", "seconds": seconds, "turns": [1] * len(seconds), "turns_with": f"{number}/0"}
        outcome = Outcome(cell=measured, round=number, reply=reply, facts={}, ready=ready)
        facts = collect(outcome, "run", {})[0].facts
        records.append(good(measured, number, seconds, **{name: facts[name] for name in ("turns", "turns_with")}))
    results = dataset.load_dataset(make(tmp_path, records))
    (row,) = compare([results], "torch-1.0", ["torch-2.x"]).rows
    assert (row.base_seconds, row.seconds) == pytest.approx((2.0, 1.1), rel=1e-5)
    assert row.ratio == pytest.approx(1.1)
    assert row.verdict == "slower"
    (a_a,) = aa_pairs(results.rounds)
    assert a_a.ratio == pytest.approx(1.0)


def calls(*seconds: float, first: int = 30) -> TurnMedians:
    """Return turns of one call each, of which it is known which calls they are."""
    return TurnMedians("a", seconds, TurnCalls(np.array(seconds), (1, 1, False, first)))


def test_log_ratio_of_a_round_is_the_median_over_calls_that_both_sides_made() -> None:
    """The fourth call is disturbed on one side; the other side made no more than four."""
    base, other = calls(1.0, 9.0, 2.0, 1.0, 7.0), calls(1.1, 9.9, 2.2, 50.0)
    assert log_ratio((1.0, base), (9.9, other)) == pytest.approx(math.log(1.1))
    assert log_ratio((9.9, other), (1.0, base)) == pytest.approx(-math.log(1.1))


def test_sides_whose_turns_hold_other_calls_are_compared_turn_by_turn() -> None:
    base, other = calls(1.0, 2.0, 4.0, first=30), calls(1.0, 3.0, 5.0, first=31)
    by_turns = log_ratio((1.0, base._replace(calls=None)), (1.0, other._replace(calls=None)))
    assert log_ratio((1.0, base), (1.0, other)) == by_turns == pytest.approx(math.log(1.25))


def test_calls_are_read_only_from_a_record_that_says_which_they_are() -> None:
    facts = {"turns": [2, 2], "turns_with": "1/0", "batch": 3, "leads": [1.0, 1.0], "first_call": 40}
    known = turns_of(record(1.0, 2.0, 3.0, 4.0, **facts))
    assert known is not None
    assert known.calls is not None
    assert (known.calls.seconds.tolist(), known.calls.plan) == ([1.0, 2.0, 3.0, 4.0], (3, 2, True, 40))
    for changes in ({"first_call": None}, {"turns": [1, 3]}, {"batch": None}):
        unknown = turns_of(record(1.0, 2.0, 3.0, 4.0, **{**facts, **changes}))
        assert unknown is not None
        assert unknown.calls is None


def test_turns_are_read_only_from_a_complete_record() -> None:
    assert turns_of(record(1.0, 3.0, 2.0, turns=[1, 2], turns_with="1/0")) == TurnMedians("1/0/1", (1.0, 2.5))
    for facts in (
        {},
        {"turns": [1, 2]},
        {"turns": "1", "turns_with": "x"},
        {"turns": [1.0, 2.0], "turns_with": "x"},
        {"turns": [1, 1], "turns_with": "x"},
        {"turns": [3, 0], "turns_with": "x"},
    ):
        assert turns_of(record(1.0, 3.0, 2.0, **facts)) is None
