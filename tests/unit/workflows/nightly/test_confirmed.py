"""When a night confirms a regression, and when an earlier confirmation stands."""

from dataclasses import replace

import pytest

from runner.analysis.model import Row, Verdict
from runner.workflows.nightly.confirmed import Against, confirming_night
from runner.workflows.nightly.history import Look
from tests.support.fake_runs import cell

TONIGHT = "20261124-023000-ab12"
BEFORE = "20261123-023000-ab12"


def row(verdict: Verdict, ratio: float = 1.05) -> Row:
    """Return a row in turns."""
    return Row(base=cell(), other=cell(), verdict=verdict, ratio=ratio)


def look(verdict: str, *, leans: bool = False, confirmed_in: str = "", state: str = "measured-again") -> Look:
    """Return what an earlier night left."""
    return Look(BEFORE, state, verdict, leans_slower=leans, confirmed_in=confirmed_in)


@pytest.mark.parametrize(
    ("against", "looks", "expected"),
    [
        ("baseline", (), TONIGHT),
        ("baseline", (look("same"),), TONIGHT),
        ("baseline", (look("faster"),), TONIGHT),
        ("baseline", (look("", state="no-time"),), TONIGHT),
        ("baseline", (look("inconclusive"),), ""),
        ("baseline", (look("inconclusive", leans=True),), TONIGHT),
        ("baseline", (look("inconclusive", leans=True), look("", state="no-time")), TONIGHT),
        ("anchor", (), ""),
        ("anchor", (look("same"),), ""),
        ("anchor", (look("slower", leans=True),), TONIGHT),
        ("anchor", (look("slower", leans=True, confirmed_in=BEFORE),), BEFORE),
    ],
)
def test_only_the_first_test_against_a_baseline_confirms_alone(
    against: Against, looks: tuple[Look, ...], expected: str
) -> None:
    assert confirming_night(TONIGHT, against, row("slower"), looks, 0.02) == expected


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        (None, BEFORE),
        (row("not-measured"), BEFORE),
        (row("slower"), BEFORE),
        (row("inconclusive", 1.03), BEFORE),
        (row("inconclusive", 1.01), ""),
        (row("same", 1.0), ""),
        (row("faster", 0.9), ""),
    ],
)
@pytest.mark.parametrize("against", ["baseline", "anchor"])
def test_a_confirmation_stands_until_the_ratio_is_within_the_margin(
    again: Row | None, expected: str, against: Against
) -> None:
    looks = (look("slower", leans=True, confirmed_in=BEFORE),)
    assert confirming_night(TONIGHT, against, again, looks, 0.02) == expected


@pytest.mark.parametrize("against", ["baseline", "anchor"])
def test_an_interval_beyond_the_margin_confirms_alone(against: Against) -> None:
    clear = replace(row("slower"), code="beyond-margin")
    assert confirming_night(TONIGHT, against, clear, (look("inconclusive"),), 0.02) == TONIGHT


def test_what_was_never_confirmed_is_not_confirmed_by_silence() -> None:
    assert confirming_night(TONIGHT, "baseline", None, (), 0.02) == ""
    assert confirming_night(TONIGHT, "baseline", row("inconclusive", 1.1), (look("inconclusive"),), 0.02) == ""
