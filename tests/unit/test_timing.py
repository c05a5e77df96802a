"""When warming up ends, when measuring ends, and that a sample is the time between two readings of the clock."""

import itertools
import math
import random

import pytest

from runner.harness import timing


class _Machine:
    """A device with its own time: every call takes what is next in ``durations``, the last one for ever.

    Reading the clock costs nothing; the time passes in ``synchronize``, as it does on a GPU.
    """

    def __init__(self, *durations: float) -> None:
        self.now = 0.0
        self.events: list[str] = []
        self.waiting = 0.0
        self.durations = itertools.chain(durations, itertools.repeat(durations[-1]))

    def call(self) -> None:
        self.events.append("call")
        self.waiting = next(self.durations)

    def synchronize(self) -> None:
        self.events.append("sync")
        self.now, self.waiting = self.now + self.waiting, 0.0

    def clock(self) -> float:
        self.events.append("clock")
        return self.now

    def measure(self, seconds: float) -> tuple[list[float], list[float]]:
        warmup, times = timing.measure(self.call, self.synchronize, self.clock, seconds)
        return warmup, times


def chance(count: int, most: int) -> float:
    """Return the chance that at most ``most`` of ``count`` times lie below the median."""
    return float(sum(math.comb(count, below) for below in range(most + 1)) / 2**count)


def exact_ranks(count: int) -> tuple[int, int]:
    """Return the ranks, from 1, of the narrowest symmetric interval that holds the median with at least 95 %."""
    low = max(r for r in range(1, count // 2 + 1) if chance(count, r - 1) <= 0.025)
    return low, count + 1 - low


def test_samples_are_the_times_the_device_took_in_order() -> None:
    warmup, times = _Machine(8.0, 4.0, 2.0, 0.5, 1.0, 0.25).measure(1.0)
    assert warmup == [8.0, 4.0]
    assert times == [2.0, 0.5, 1.0]


def test_the_device_is_idle_before_every_reading_of_the_clock() -> None:
    machine = _Machine(8.0)
    machine.measure(1.0)
    once = ["clock", "call", "sync", "clock"]
    begin = ["sync", "clock", *once, *once, "clock"]  # the last reading: is half of the budget spent?
    assert machine.events == [*begin, "clock", *once, *once, *once, "clock"]


def test_every_call_is_followed_by_a_synchronisation() -> None:
    machine = _Machine(0.125)
    machine.measure(4.0)
    following = [after for event, after in itertools.pairwise(machine.events) if event == "call"]
    assert set(following) == {"sync"}


def test_warming_up_ends_at_half_of_the_budget_when_it_never_becomes_steady() -> None:
    machine = _Machine(*(2.0**-k for k in range(3, 5)), *(0.0625 * (1 + k % 7) for k in range(1000)))
    warmup, _ = machine.measure(4.0)
    assert sum(warmup) >= 2.0
    assert sum(warmup[:-1]) < 2.0


def test_warming_up_ends_as_soon_as_two_windows_agree() -> None:
    warmup, times = _Machine(*[4.0] * 3, *[1.0] * 1000).measure(1000.0)
    assert warmup == [4.0] * 3 + [1.0] * 8  # three of the five older ones are then 1 s
    assert set(times) == {1.0}


def test_steady_needs_two_windows() -> None:
    assert not timing.steady([1.0] * 9)
    assert timing.steady([1.0] * 10)


@pytest.mark.parametrize(("later", "answer"), [(1.0199, True), (0.9801, True), (1.0201, False), (0.9799, False)])
def test_steady_allows_two_in_a_hundred(later: float, answer: bool) -> None:  # noqa: FBT001
    assert timing.steady([1.0] * 5 + [later] * 5) is answer


def test_steady_forgets_what_was_before_the_last_two_windows() -> None:
    assert timing.steady([50.0] * 100 + [1.0] * 10)


def test_a_slow_case_is_still_measured_three_times() -> None:
    warmup, times = _Machine(100.0).measure(1.0)
    assert (warmup, times) == ([100.0] * 2, [100.0] * timing.LEAST)


def test_measuring_stops_when_the_median_is_precise() -> None:
    _, times = _Machine(1.0).measure(1e6)
    assert len(times) == 20


def test_measuring_stops_when_the_budget_is_spent() -> None:
    noise = random.Random(1)
    _, times = _Machine(*(noise.uniform(0.5, 1.5) for _ in range(1000))).measure(100.0)
    assert sum(times) >= 100.0
    assert sum(times[:-1]) < 100.0


def test_median_of_odd_and_even_counts() -> None:
    assert timing.median([3.0, 1.0, 2.0]) == 2.0
    assert timing.median([4.0, 1.0, 2.0, 3.0]) == 2.5
    assert timing.median([7.0]) == 7.0


def test_fewer_than_twenty_times_are_never_precise() -> None:
    assert not timing.precise([1.0] * 19)
    assert timing.precise([1.0] * 20)


@pytest.mark.parametrize("count", [20, 50, 100, 500])
def test_precise_agrees_with_the_exact_interval(count: int) -> None:
    """Times of mixed spread, so that many are precise and many are not."""
    draw = random.Random(count)
    low, high = exact_ranks(count)
    answers = []
    for _ in range(300):
        spread = timing.TARGET * math.sqrt(count) * draw.uniform(0.1, 1.2)
        times = [draw.lognormvariate(0.0, spread) for _ in range(count)]
        ranked = sorted(times)
        exact = ranked[high - 1] - ranked[low - 1] <= 2 * timing.TARGET * timing.median(times)
        answers.append((timing.precise(times), exact))
    assert sum(found == exact for found, exact in answers) > 0.9 * len(answers)
    assert 50 < sum(found for found, _ in answers) < 250


@pytest.mark.parametrize("count", [20, 30, 100, 1000, 2300, 2500])
def test_the_ranks_that_precise_compares_hold_the_median_with_95_percent(count: int) -> None:
    """A step in the sorted times is seen where it lies between the two ranks; 2300 is the worst that is asked for."""
    near = range(max(1, count // 2 - 100), min(count, count // 2 + 100))
    seen = [k for k in near if not timing.precise([1.0] * k + [2.0] * (count - k))]
    below, above = seen[0], seen[-1]  # the interval is from the value of rank ``below`` to that of rank ``above + 1``
    coverage = chance(count, above) - chance(count, below - 1)
    assert 0.9499 < coverage < 0.98
    assert seen == list(range(below, above + 1))


def test_order_does_not_matter_for_precise() -> None:
    draw = random.Random(3)
    times = [draw.gauss(1.0, 0.01) for _ in range(60)]
    assert timing.precise(times) == timing.precise(sorted(times)) == timing.precise(sorted(times, reverse=True))
