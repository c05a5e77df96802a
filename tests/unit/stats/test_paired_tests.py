"""Which test a pair gets, and how inflated errors act on it."""

from collections.abc import Sequence

import numpy as np
import pytest

from runner.stats import intervals, paired_tests, signed_rank
from runner.stats.intervals import Floats, PairedEvidence
from runner.stats.paired_tests import Evaluation, evaluate

AT = intervals.looks(3, 20)


def evidence_of(rows: Sequence[Floats]) -> PairedEvidence:
    columns = zip(*map(intervals.paired, rows), strict=True)
    return PairedEvidence(*(np.array(column) for column in columns))


def evaluated(rows: Sequence[Floats], at: tuple[int, ...], factor: float = 1.0, table: int = 1) -> Evaluation:
    return evaluate(evidence_of(rows), list(rows), [at] * len(rows), factor, table)


def drawn(*rounds: int) -> list[Floats]:
    draw = np.random.default_rng(8)
    return [draw.normal(0.03, 0.03, count) for count in rounds]


def same(first: Sequence[Floats], second: Sequence[Floats]) -> bool:
    return all((left == right).all() for left, right in zip(first, second, strict=True))


def test_few_rounds_have_student_s_intervals_and_p_values() -> None:
    rows = drawn(3, 4, 5, 7)
    evidence, tested = evidence_of(rows), evaluated(rows, AT)
    assert (tested.p_value == intervals.p_value(evidence, AT)).all()
    assert (tested.level == intervals.level(evidence.rounds, AT, 1 - intervals.CONFIDENCE)).all()
    assert same(tested.shown, intervals.interval(evidence, intervals.SHOWN_LEVEL))
    assert same(tested.deciding, intervals.interval(evidence, tested.level))


@pytest.mark.parametrize("at", [(12,), AT])
def test_many_rounds_have_those_of_signed_ranks(at: tuple[int, ...]) -> None:
    rows = drawn(12, 12)
    tested, ranked = evaluated(rows, at), signed_rank.Ranked(np.array(rows))
    nominal = ranked.p_value()
    assert tested.p_value == pytest.approx(intervals.repeated_p_value(nominal, np.full(2, 12.0), at))
    assert (tested.shown.estimate == ranked.estimate()).all()
    assert (tested.shown.low == ranked.ends(np.full(2, 0.05 if at == (12,) else 0.035))[0]).all()
    assert (tested.deciding.high == ranked.ends(tested.level)[1]).all()


def test_rounds_that_share_servers_or_are_coarse_stay_with_student() -> None:
    rows = drawn(12)
    tested = evaluate(evidence_of(rows), [None], [(12,)])
    assert tested.shown.estimate == pytest.approx(rows[0].mean())
    assert (tested.p_value == intervals.p_value(evidence_of(rows), (12,))).all()


@pytest.mark.parametrize(("at", "table"), [(AT, 1), ((9,), 20), ((12,), 1000)])
def test_what_ranks_cannot_reach_stays_with_student(at: tuple[int, ...], table: int) -> None:
    rows = drawn(9 if at != (12,) else 12)
    tested = evaluated(rows, at, table=table)
    assert (tested.p_value == intervals.p_value(evidence_of(rows), at)).all()
    assert (tested.shown.estimate == signed_rank.Ranked(np.array(rows)).estimate()).all()


def test_an_interval_that_ranks_cannot_bound_is_student_s() -> None:
    rows = drawn(9)
    at = intervals.looks(3, 1000)
    tested = evaluated(rows, at)
    assert same(tested.deciding, intervals.interval(evidence_of(rows), tested.level))
    assert np.isfinite(tested.shown.low).all()


@pytest.mark.parametrize("rounds", [5, 15])
def test_inflated_errors_widen_intervals_around_the_estimate(rounds: int) -> None:
    rows = drawn(rounds)
    plain, wide = evaluated(rows, (rounds,)), evaluated(rows, (rounds,), factor=4.0)
    for before, after in ((plain.shown, wide.shown), (plain.deciding, wide.deciding)):
        assert (after.estimate == before.estimate).all()
        assert after.high - after.estimate == pytest.approx(2 * (before.high - before.estimate))
        assert after.low - after.estimate == pytest.approx(2 * (before.low - before.estimate))
    assert (wide.p_value > 1.5 * plain.p_value).all()


def test_the_p_value_of_inflated_ranks_has_half_the_quantile(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.stats import norm

    rows = drawn(20)
    monkeypatch.setattr(paired_tests, "REACH", 0.0)
    plain, wide = evaluated(rows, (20,)), evaluated(rows, (20,), factor=4.0)
    assert norm.isf(wide.p_value / 2) == pytest.approx(norm.isf(plain.p_value / 2) / 2, rel=0.01)


def test_pairs_of_a_table_do_not_touch_each_other() -> None:
    rows = drawn(3, 12, 9, 20, 5)
    together = evaluated(rows, AT)
    for position, row in enumerate(rows):
        alone = evaluated([row], AT)
        assert alone.p_value[0] == together.p_value[position]
        assert alone.deciding.low[0] == together.deciding.low[position]
