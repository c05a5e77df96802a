"""The plan of the turns of programs that are compared: the same calls for all, unless they are too far apart."""

import itertools
import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from runner.analysis.model import Round, TurnCalls, TurnMedians, log_ratio
from runner.harness import script_stack, timing, turn_plan
from runner.harness.turn_plan import pace

Calls = Callable[[int], float]
"""The seconds of call n."""


def plans(*steps: float, seconds: float = 0.5, calls: int = 20) -> list[dict[str, int]]:
    planned: list[dict[str, int]] = turn_plan.plans([pace(calls, 1, step) for step in steps], seconds)
    return planned


@pytest.mark.parametrize(
    ("milliseconds", "samples", "leads"),
    [
        (0.1, 100, 20),  # for 2 ms the samples do not count
        (1.5, 7, 2),  # as many as fill a turn
        (4.0, 3, 1),
        (12.0, 2, 1),  # at most a third of the calls lead
        (24.0, 2, 1),
        (26.0, 1, 0),
        (2000.0, 1, 0),
    ],
)
def test_turns_of_equal_programs_last_ten_milliseconds(milliseconds: float, samples: int, leads: int) -> None:
    for plan in plans(milliseconds / 1e3, milliseconds / 1e3):
        assert (plan["samples"], plan["leads"], plan["batch"], plan["first_call"]) == (samples, leads, 1, 20)


def test_programs_share_the_turns_of_the_typical_one() -> None:
    quick, slow = plans(0.001, 0.004, seconds=2.0)
    assert quick == slow
    assert quick["samples"] == 5  # 10 ms at 2 ms a call


def test_the_slowest_has_room_for_ten_turns() -> None:
    assert plans(0.001, 0.008, seconds=0.5)[0]["samples"] == 4  # what fills 10 ms at 2.8 ms a call
    assert plans(0.001, 0.008, seconds=0.25)[0]["samples"] == 3  # ten turns of 25 ms
    assert plans(0.001, 0.008, seconds=0.1)[0]["samples"] == turn_plan.LED_SAMPLES


def test_the_first_call_is_that_of_the_program_that_has_made_most() -> None:
    quick, slow = turn_plan.plans([pace(100, 1, 0.001), pace(40, 1, 0.003)], 0.5)
    assert quick == slow
    assert quick["first_call"] == 100


def test_a_program_that_would_take_too_long_to_catch_up_begins_where_it_is() -> None:
    quick, slow = turn_plan.plans([pace(1000, 1, 0.001), pace(40, 1, 0.003)], 0.5)
    assert (quick.pop("first_call"), slow.pop("first_call")) == (1000, 40)
    assert quick == slow


def test_all_programs_have_the_largest_batch() -> None:
    quick, slow = turn_plan.plans([pace(1000, 50, 1e-6), pace(1000, 13, 4e-6)], 0.5)
    assert quick == slow
    assert quick["batch"] == 50
    assert quick["samples"] * quick["batch"] * 2e-6 == pytest.approx(0.01, rel=0.02)


def test_a_batch_that_a_program_announces_makes_no_sample_of_another_longer_than_a_turn() -> None:
    for plan in turn_plan.plans([pace(10, 1_000_000, 0.001), pace(10, 1, 0.001)], 0.5):
        assert plan["batch"] == 10
    for plan in turn_plan.plans([pace(10, 1_000_000, 0.5), pace(10, 1, 0.5)], 0.5):
        assert plan["batch"] == 1


def test_programs_that_are_far_apart_are_divided_at_the_widest_gap() -> None:
    planned = plans(0.1, 0.0011, 0.02, 0.001)
    assert planned[1] == planned[3]
    assert planned[0] == planned[2]
    assert planned[1]["samples"] == 10
    assert planned[0]["samples"] == 1


def test_many_programs_in_any_order_get_plans_that_can_be_kept() -> None:
    draw = random.Random(1)
    for _ in range(300):
        seconds = draw.choice((0.05, 0.25, 2.0))
        paces = [
            pace(draw.randrange(2, 500), draw.choice((1, 1, 7, 1000)), 10 ** draw.uniform(-9, 1))
            for _ in range(draw.randrange(1, 8))
        ]
        planned = turn_plan.plans(paces, seconds)
        for paced, plan in zip(paces, planned, strict=True):
            assert plan["first_call"] >= paced["calls"]
            assert (plan["first_call"] - paced["calls"]) * paced["step"] <= turn_plan.CATCH_UP * seconds
            fits = int(turn_plan.TURN / turn_plan.SPAN / paced["step"])  # also in the slowest of its group
            assert plan["batch"] >= min(paced["batch"], max(1, fits))
            assert plan["samples"] >= 1


# A step whose calls differ, as a loop over batches of different lengths has


class _Program:
    """Calls whose length depends on their number, on a clock of their own."""

    def __init__(self, seconds: Calls, noise: random.Random) -> None:
        self.now, self.number, self.seconds, self.noise = 0.0, 0, seconds, noise

    def call(self) -> None:
        self.now += self.seconds(self.number) * self.noise.lognormvariate(0.0, 0.01)
        self.number += 1

    def clock(self) -> float:
        return self.now

    def pace(self, budget: float) -> dict[str, float]:
        """Warm up; return the pace."""
        warmup, batch, _, _, calls = script_stack.run(
            timing.warm_up(self.call, lambda: None, self.clock, budget, lambda _, batch: batch, alone=False)
        )
        announced: dict[str, float] = pace(calls, batch, timing.median(warmup[-timing.LAST :]))
        return announced

    def round(self, plan: dict[str, int], budget: float) -> Round:
        """Take turns by a plan."""
        script_stack.run(timing.catch_up(self.call, lambda: None, self.clock, plan["first_call"] - self.number))
        times = script_stack.run(timing.in_turns(self.call, lambda: None, self.clock, budget, plan, lambda: None))
        calls = TurnCalls(np.array(times["seconds"]), (plan["batch"], plan["samples"], True, plan["first_call"]))
        return timing.median(times["seconds"]), TurnMedians("a", (), calls)


def shown(seconds: Calls, rho: float, seed: int, budget: float = 0.5) -> float:
    """Return the ratio of a round of two programs, the other of which takes ``rho`` times as long in each call."""
    base = _Program(seconds, random.Random(seed))
    other = _Program(lambda number: rho * seconds(number), random.Random(seed + 10_000))
    planned = turn_plan.plans([base.pace(budget), other.pace(budget)], budget)
    return math.exp(log_ratio(base.round(planned[0], budget), other.round(planned[1], budget)))


def buckets(shortest: float, longest: float, count: int = 8) -> Calls:
    lengths = [shortest + (longest - shortest) * k / (count - 1) for k in range(count)]
    return lambda number: lengths[number % count]


def geometric(shortest: float, longest: float) -> Calls:
    return lambda number: shortest * (longest / shortest) ** (number % 8 / 7)


def shuffled(shortest: float, longest: float) -> Calls:
    """Return the calls of epochs over eight lengths, each in an order of its own."""
    in_order, draw = buckets(shortest, longest), random.Random(7)
    epochs = [draw.sample(range(8), 8) for _ in range(1000)]
    return lambda number: in_order(epochs[number // 8][number % 8])


@pytest.mark.parametrize(
    ("seconds", "rho"),
    [
        (buckets(0.001, 0.012), 1.5),
        (buckets(0.001, 0.012), 3.0),
        (shuffled(0.001, 0.012), 1.5),
        (buckets(0.010, 0.120), 3.0),
        (geometric(0.010, 0.120), 1.5),
        (buckets(0.001, 0.001), 1.5),
        (lambda number: 0.05 if number % 20 == 0 else 0.001, 1.5),
    ],
    ids=["buckets", "three times", "shuffled", "long", "geometric", "equal calls", "every 20th"],
)
def test_a_step_whose_calls_differ_shows_its_ratio(seconds: Calls, rho: float) -> None:
    ratios = [shown(seconds, rho, seed) for seed in range(6)]
    assert ratios == pytest.approx([rho] * 6, rel=0.015)


def by_the_clock(seconds: Calls, rho: float) -> float:
    """Return the ratio of a round in which a turn is a call that leads and what fits into 10 ms, at least two calls."""
    sides = []
    for factor in (1.0, rho):
        calls = (factor * seconds(number) for number in itertools.count())
        turns: list[list[float]] = []
        used = 0.0
        while used < 0.5:
            last = next(calls) if not turns or turns[-1][-1] < turn_plan.LEAD_BELOW else turn_plan.LEAD_BELOW
            turn: list[float] = []
            while sum(turn) < turn_plan.TURN or len(turn) < 1 + (last < turn_plan.LEAD_BELOW):
                turn.append(next(calls))
            turns.append(turn)
            used += sum(turn)
        sides.append((1.0, TurnMedians("a", tuple(map(timing.median, turns)))))
    return math.exp(log_ratio(*sides))


def test_turns_of_equal_time_do_not_show_the_ratio() -> None:
    """What the plan is for: turns by the clock hold other calls on a slower side."""
    assert by_the_clock(buckets(0.001, 0.001), 1.5) == pytest.approx(1.5)
    assert by_the_clock(geometric(0.010, 0.120), 1.5) == pytest.approx(1.06, abs=0.01)
    assert by_the_clock(buckets(0.001, 0.012), 1.5) == pytest.approx(1.26, abs=0.01)
    assert by_the_clock(buckets(0.001, 0.012), 3.0) == pytest.approx(2.47, abs=0.01)
