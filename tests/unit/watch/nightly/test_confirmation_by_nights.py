"""When a night confirms a regression, and when an earlier confirmation stands."""

from dataclasses import replace

import pytest

from runner.analysis.comparison_model import Row, Verdict
from runner.nights.looks import Look
from runner.nights.night import Against, State
from runner.watch.nightly.build_scatter import BuildScatter
from runner.watch.nightly.confirmation import Support, confirming_night
from tests.support.fake_runs import cell

TONIGHT = "20261124-023000-ab12"
BEFORE = "20261123-023000-ab12"


def row(verdict: Verdict, ratio: float = 1.05, width: float = 0.03) -> Row:
    """Return a row in turns, whose interval reaches ``width`` to each side."""
    low, high = ratio - width, ratio + width
    return Row(base=cell(), other=cell(), verdict=verdict, ratio=ratio, ratio_low=low, ratio_high=high)


def look(verdict: str, *, leans: bool = False, confirmed_in: str = "", state: State = "measured-again") -> Look:
    """Return what an earlier night left."""
    return Look(BEFORE, state, verdict, leans_slower=leans, confirmed_in=confirmed_in)


LEANING = (look("inconclusive", leans=True),)


@pytest.mark.parametrize(
    ("against", "looks", "series_p", "expected"),
    [
        ("baseline", (), 0.01, TONIGHT),
        ("baseline", (look("same"),), 0.01, TONIGHT),
        ("baseline", (look("faster"),), 0.01, TONIGHT),
        ("baseline", (look("", state="no-time"),), 0.01, TONIGHT),
        ("baseline", (look("inconclusive"),), 0.01, ""),
        ("baseline", (), None, ""),
        ("baseline", (look("inconclusive"),), None, ""),
        ("baseline", LEANING, None, TONIGHT),
        ("baseline", (*LEANING, look("", state="no-time")), None, TONIGHT),
        ("baseline", (), 0.05, ""),
        ("baseline", LEANING, 0.05, TONIGHT),
        ("baseline", (), 0.5, ""),
        ("baseline", LEANING, 0.5, ""),
        ("anchor", (), 0.01, ""),
        ("series", (), 0.01, ""),
        ("anchor", (look("same"),), 0.01, ""),
        ("anchor", (look("slower", leans=True),), 0.01, TONIGHT),
        ("series", LEANING, 0.01, TONIGHT),
        ("anchor", (look("slower", leans=True, confirmed_in=BEFORE),), None, BEFORE),
        ("anchor", (look("slower", leans=True, confirmed_in=BEFORE),), 0.5, BEFORE),
    ],
)
def test_a_confirmation_takes_a_second_witness(
    against: Against, looks: tuple[Look, ...], series_p: float | None, expected: str
) -> None:
    assert confirming_night(TONIGHT, against, row("slower"), looks, 0.02, Support(series_p)) == expected


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        (None, BEFORE),
        (row("not-measured"), BEFORE),
        (row("slower"), BEFORE),
        (row("not-comparable"), BEFORE),
        (row("inconclusive", 1.03), BEFORE),
        (row("inconclusive", 1.01), BEFORE),
        (row("inconclusive", 0.98, 0.05), BEFORE),
        (row("inconclusive", 0.98, 0.03), ""),
        (Row(base=cell(), other=cell(), verdict="inconclusive", ratio=0.9), BEFORE),
        (row("same", 1.0), ""),
        (row("faster", 0.9), ""),
    ],
)
@pytest.mark.parametrize("against", ["baseline", "anchor"])
def test_a_confirmation_stands_until_a_night_could_tell_that_it_is_over(
    again: Row | None, expected: str, against: Against
) -> None:
    looks = (look("slower", leans=True, confirmed_in=BEFORE),)
    assert confirming_night(TONIGHT, against, again, looks, 0.02) == expected


@pytest.mark.parametrize("against", ["baseline", "anchor", "series"])
@pytest.mark.parametrize(
    ("series_p", "looks", "expected"),
    [
        (None, (look("inconclusive"),), TONIGHT),
        (0.01, (look("inconclusive"),), TONIGHT),
        (0.05, (look("inconclusive"),), ""),
        (0.05, LEANING, TONIGHT),
        (0.5, (look("inconclusive"),), ""),
        (0.5, LEANING, TONIGHT),
    ],
)
def test_an_interval_beyond_the_margin_needs_no_other_witness_without_a_series(
    against: Against, looks: tuple[Look, ...], series_p: float | None, expected: str
) -> None:
    clear = replace(row("slower"), code="beyond-margin")
    assert confirming_night(TONIGHT, against, clear, looks, 0.02, Support(series_p)) == expected


def test_what_was_never_confirmed_is_not_confirmed_by_silence() -> None:
    assert confirming_night(TONIGHT, "baseline", None, (), 0.02) == ""
    assert confirming_night(TONIGHT, "baseline", row("inconclusive", 1.1), (look("inconclusive"),), 0.02) == ""


@pytest.mark.parametrize(
    ("ratio", "series_p", "expected"),
    [(1.05, 0.01, ""), (1.05, None, ""), (1.05, 0.0005, TONIGHT), (1.08, 0.01, TONIGHT), (1.08, None, TONIGHT)],
)
def test_a_slow_down_has_to_stand_out_of_how_much_builds_differ(
    ratio: float, series_p: float | None, expected: str
) -> None:
    support = Support(series_p, BuildScatter(spread=0.015, limit=1.06))
    clear = replace(row("slower", ratio), code="beyond-margin")
    assert confirming_night(TONIGHT, "baseline", clear, LEANING, 0.02, support) == expected
    standing = (look("slower", leans=True, confirmed_in=BEFORE),)
    assert confirming_night(TONIGHT, "baseline", clear, standing, 0.02, support) == BEFORE
