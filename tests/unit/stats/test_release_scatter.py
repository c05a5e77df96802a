"""Whether a change stands out from how much releases differ from each other."""

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.bisects import RELEASES, searched, truth
from runner.stats.bisection import LocatedChange
from runner.stats.release_scatter import LEVEL, ReleaseRatio, from_levels, from_neighbours


def against_first(levels: Sequence[float]) -> list[ReleaseRatio]:
    """Return the comparisons of releases with the first one."""
    return [ReleaseRatio(0, position, level - levels[0]) for position, level in enumerate(levels) if position]


def neighbours(levels: Sequence[float]) -> list[ReleaseRatio]:
    """Return the comparisons of each release with the one before it."""
    return [ReleaseRatio(index, index + 1, levels[index + 1] - levels[index]) for index in range(len(levels) - 1)]


CHANGE = LocatedChange(3, 4)


def test_a_change_stands_out_of_releases_that_hardly_differ() -> None:
    standing = from_levels(against_first([0.0, 0.002, -0.001, 0.001, 0.05, 0.051, 0.048]), [CHANGE], CHANGE)
    assert standing is not None
    assert standing.stands_out(CHANGE)
    assert standing.ratio_low < np.exp(0.049) < standing.ratio_high
    assert standing.scatter == pytest.approx(0.0015, rel=0.2)
    assert standing.range == (3, 4)


def test_the_same_change_does_not_stand_out_of_releases_that_differ_by_as_much() -> None:
    standing = from_levels(against_first([0.0, 0.03, -0.02, 0.0, 0.05, 0.01, 0.06]), [CHANGE], CHANGE)
    assert standing is not None
    assert standing.p_value > LEVEL
    assert not standing.stands_out(CHANGE)


def test_a_change_that_may_be_at_another_place_has_a_range() -> None:
    standing = from_levels(against_first([0.0, 0.001, -0.001, 0.028, 0.05, 0.051, 0.049, 0.05]), [CHANGE], CHANGE)
    assert standing is not None
    assert standing.p_value <= LEVEL
    assert standing.range == (2, 4)
    assert not standing.stands_out(CHANGE)


def test_further_changes_are_no_scatter_and_what_is_between_two_ends_is_unknown() -> None:
    levels = [0.0, 0.001, 0.0, -0.001, 0.05, 0.051, 0.3, 0.2, 0.201]
    second = LocatedChange(5, 7, (6,))
    standing = from_levels(against_first(levels), [CHANGE, second], CHANGE)
    assert standing is not None
    assert standing.stands_out(CHANGE)
    assert standing.scatter < 0.002


def test_a_repeated_comparison_of_two_releases_adds_to_their_levels() -> None:
    comparisons = [*against_first([0.0, 0.001, 0.0, 0.002, 0.05, 0.05, 0.05]), ReleaseRatio(3, 4, 0.06)]
    standing = from_levels(comparisons, [CHANGE], CHANGE)
    assert standing is not None
    assert standing.ratio > np.exp(0.05)


def test_a_second_build_is_a_release_with_a_level_of_its_own_at_the_same_place() -> None:
    short = against_first([0.0, 0.05, 0.051])
    change = LocatedChange(0, 1)
    assert from_levels(short, [change], change) is None
    rebuilt = [ReleaseRatio(0, 0, 0.002, is_rebuilt=True), ReleaseRatio(2, 2, -0.001, is_rebuilt=True)]
    standing = from_levels([*short, *rebuilt], [change], change)
    assert standing is not None
    assert standing.stands_out(change)
    loud = [ReleaseRatio(0, 0, 0.04, is_rebuilt=True), ReleaseRatio(2, 2, -0.03, is_rebuilt=True)]
    standing = from_levels([*short, *loud], [change], change)
    assert standing is not None
    assert not standing.stands_out(change)


def test_few_releases_tell_nothing() -> None:
    assert from_levels(against_first([0.0, 0.0, 0.0, 0.05]), [LocatedChange(2, 3)], LocatedChange(2, 3)) is None
    assert from_neighbours(neighbours([0.0, 0.001, 0.0, 0.0, 0.05, 0.05]), CHANGE) is None
    assert from_neighbours([], CHANGE) is None


def test_a_change_between_neighbours_stands_beside_the_ratios_of_all() -> None:
    draw = np.random.default_rng(1)
    quiet, loud = (draw.normal(0, sd, 33) for sd in (0.002, 0.02))
    for levels, stands_out in ((quiet, True), (loud, False)):
        levels[4:] += 0.05
        standing = from_neighbours(neighbours(levels.tolist()), CHANGE)
        assert standing is not None
        assert standing.stands_out(CHANGE) == stands_out


@pytest.mark.simulation
@pytest.mark.parametrize("every", [False, True])
def test_releases_that_only_scatter_are_rarely_named(every: bool) -> None:  # noqa: FBT001
    draw = np.random.default_rng(2)
    count = 10 if every else 40
    results = [searched(draw, truth(draw, "equal", 0.02), 0.02, every=every) for _ in range(count)]
    assert sum(bool(each.alone) for each in results) >= count / 4
    assert sum(bool(each.named) for each in results) <= count / 5


@pytest.mark.simulation
def test_a_step_among_releases_that_hardly_differ_is_named_in_few_comparisons() -> None:
    draw = np.random.default_rng(3)
    truths = [truth(draw, "step", 0.0) for _ in range(30)]
    results = [searched(draw, of, 0.02) for of in truths]
    assert sum(each.named == (of.after,) for of, each in zip(truths, results, strict=True)) >= 28
    assert np.mean([each.comparisons for each in results]) <= 11
    assert max(each.comparisons for each in results) <= RELEASES
