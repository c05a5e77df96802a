"""When a median is precise: the interval by order statistics that ends measuring, and the cost of computing it."""

import itertools
import math
import random

import pytest

from runner.harness import script_stack, timing


def chance(count: int, limit: int) -> float:
    """Return the chance that at most ``limit`` of ``count`` times lie below the median."""
    return float(sum(math.comb(count, below) for below in range(limit + 1)) / 2**count)


def exact_ranks(count: int) -> tuple[int, int]:
    """Return the ranks, from 1, of the narrowest symmetric interval that holds the median with at least 95 %."""
    low = max(r for r in range(1, count // 2 + 1) if chance(count, r - 1) <= 0.025)
    return low, count + 1 - low


def test_median_of_odd_and_even_counts() -> None:
    assert timing.median([3.0, 1.0, 2.0]) == 2.0
    assert timing.median([4.0, 1.0, 2.0, 3.0]) == 2.5
    assert timing.median([7.0]) == 7.0


def test_precise_needs_twenty_times() -> None:
    assert not timing.precise([1.0] * 19)
    assert timing.precise([1.0] * 20)


@pytest.mark.parametrize("count", [20, 50, 100, 500])
def test_precise_agrees_with_the_exact_interval_of_blocks(count: int) -> None:
    """Times of mixed spread, so that many are precise and many are not."""
    draw = random.Random(count)
    low, high = exact_ranks(timing.BLOCKS)
    answers = []
    for _ in range(300):
        spread = timing.TARGET * math.sqrt(count) * draw.uniform(0.1, 1.0)
        times = [draw.lognormvariate(0.0, spread) for _ in range(count)]
        starts = [count * block // timing.BLOCKS for block in range(timing.BLOCKS + 1)]
        ranked = sorted(timing.median(times[begin:end]) for begin, end in itertools.pairwise(starts))
        exact = ranked[high - 1] - ranked[low - 1] <= 2 * timing.TARGET * timing.median(ranked)
        answers.append((timing.precise(times), exact))
    assert sum(answer == exact for answer, exact in answers) > 0.9 * len(answers)
    assert 50 < sum(answer for answer, _ in answers) < 250


def test_interval_of_precise_contains_the_median_with_95_percent() -> None:
    """A step in the sorted medians of blocks is seen where it lies between the two ranks."""
    count = timing.BLOCKS
    seen = [k for k in range(1, count) if not timing.precise([1.0] * k + [2.0] * (count - k))]
    below, above = seen[0], seen[-1]  # the interval is from the value of rank ``below`` to that of rank ``above + 1``
    coverage = chance(count, above) - chance(count, below - 1)
    assert 0.9499 < coverage < 0.98
    assert seen == list(range(below, above + 1))


def test_times_that_are_alike_for_a_while_are_not_precise() -> None:
    """A machine that is slow for 50 of 150 samples: its samples in random order would look precise."""
    times = ([1.0] * 100 + [1.5] * 50) * 4
    shuffled = random.Random(3).sample(times, len(times))
    assert timing.precise(shuffled)
    assert not timing.precise(times)


class _Counted(float):
    """A time that counts comparisons."""

    compared = 0

    def __sub__(self, other: float) -> "_Counted":
        return _Counted(float(self) - other)

    def __truediv__(self, other: float) -> "_Counted":
        return _Counted(float(self) / other)

    def __lt__(self, other: float) -> bool:
        _Counted.compared += 1
        return float(self) < other


def test_until_precise_compares_each_sample_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting n times takes at least log2(n!) comparisons, 13 for each of them here; looks may double that."""
    noise = random.Random(5)
    now = itertools.accumulate(noise.uniform(0.5, 1.5) for _ in itertools.count())
    monkeypatch.setattr(_Counted, "compared", 0)
    times = script_stack.run(timing.until_precise(lambda: None, lambda: None, lambda: _Counted(next(now)), 50_000.0, 1))
    assert len(times) > 10_000
    assert 10 * len(times) < _Counted.compared < 26 * len(times)
