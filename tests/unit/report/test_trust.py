"""What speaks for the numbers of a run, and what against, in one line of its page."""

from dataclasses import replace

import pytest

from runner.analysis.analyse import analyse_run
from runner.report.page import Page, arrange
from runner.report.trust import trust_marks
from tests.support.quick_run import quick


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return arrange(analyse_run(quick(tmp_path_factory.mktemp("reports"))))


def test_marks_say_what_speaks_for_the_numbers_and_what_against(page: Page) -> None:
    assert [tuple(mark) for mark in trust_marks(page.answer, page.rows, failed=2, cells=1)] == [
        (True, "1 test agrees with the reference"),
        (False, "2 tests failed"),
        (True, "A/A control: the same release twice differs by 2.5 %"),
        (False, "typical interval: 5.0 % to either side"),
        (False, "2 comparisons with a serious warning, marked below"),
        (False, "1 of 28 comparisons only probable"),
        (False, "2 of 28 comparisons: can't tell"),
    ]


def test_without_failures_there_is_no_mark_for_them(page: Page) -> None:
    texts = [mark.text for mark in trust_marks(page.answer, page.rows, failed=0, cells=77)]
    assert texts[:2] == ["77 tests agree with the reference", "A/A control: the same release twice differs by 2.5 %"]


def test_comparisons_that_were_given_up_are_one_mark_and_not_a_word_in_each_row(page: Page) -> None:
    open_rows = [each for each in page.rows if each.row.verdict == "inconclusive"]
    abandoned_rows = [
        replace(each, row=replace(each.row, abandoned=True, rounds=rounds), advice=f"given up after {rounds} rounds")
        for each, rounds in zip(open_rows, (5, 7, 6), strict=True)
    ]
    marks = [*trust_marks(replace(page.answer, abandoned=3), abandoned_rows, failed=0, cells=1)]
    assert marks[-1].text == "3 comparisons given up after 5 to 7 rounds"
    assert {each.short_advice for each in abandoned_rows} == {""}
