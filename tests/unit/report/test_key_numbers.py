"""The four numbers on top of a page, of a run whose numbers are known."""

from dataclasses import replace

import pytest

from runner.analysis.analyse import analyse_run
from runner.report.key_numbers import key_numbers
from runner.report.last_run import LastRun
from runner.report.page import Page, arrange
from runner.report.quality import IssueMark
from tests.support.quick_run import quick

AT = "2026-11-19 08:15 UTC"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return arrange(analyse_run(quick(tmp_path_factory.mktemp("reports"))))


def test_the_numbers_are_those_of_decided_rows(page: Page) -> None:
    assert [(each.value, each.text) for each in key_numbers(page.rows, page.comparisons, None)] == [
        (
            "10.9x faster",
            "LSTM, 3 layers of 128 · nn.LSTM · gradient, PyTorch 1.0.0 → 2.13.0; larger ones have a serious warning",
        ),
        ("1.83x slower", "Matrix product, 3072x1024 by 1024x2 · matmul · forward, PyTorch 1.0.0 → 2.13.0"),
        ("15 %", "PyTorch, 12 % TensorFlow, 8.9 % Keras"),
        ("not known", "the history was not read"),
    ]
    assert key_numbers((), page.comparisons, None)[0].value == "none"


def test_a_run_that_can_see_no_change_has_none_instead_of_a_wild_factor(page: Page) -> None:
    wild = [replace(each, detectable_change=2466898.0) for each in page.comparisons if not each.is_control]
    assert key_numbers((), wild, None)[2].value == "none"


def test_the_largest_change_says_where_larger_ones_have_a_serious_warning(page: Page) -> None:
    largest, second = sorted((each for each in page.rows if each.word == "faster"), key=lambda each: -each.size)[:2]
    warned = replace(largest, marks=(IssueMark("memory-share", "it spends its time on memory", serious=True),))
    (gain, *_) = key_numbers([warned, second], page.comparisons, None)
    assert gain.value == second.change
    assert gain.text.endswith("2.13.0; larger ones have a serious warning")
    assert not gain.questioned


@pytest.mark.parametrize(
    ("last", "value", "text"),
    [
        (LastRun(), "no earlier run", "has these tests and releases, of the last few"),
        (LastRun(AT, 28, 28), "agrees", f"with the run of {AT}"),
        (
            LastRun(AT, 28, 27, "x, 2.0x faster then"),
            "27 of 28 agree",
            f"with the run of {AT}; the others are apart by chance",
        ),
        (
            LastRun(AT, 28, 20, "x, 2.0x faster then"),
            "20 of 28 agree",
            f"with the run of {AT}; farthest apart: x, 2.0x faster then",
        ),
    ],
)
def test_the_last_run_agrees_or_says_where_it_does_not(page: Page, last: LastRun, value: str, text: str) -> None:
    number = key_numbers(page.rows, page.comparisons, last)[3]
    assert (number.value, number.text, number.word) == (value, text, "" if last.agrees else "slower")
