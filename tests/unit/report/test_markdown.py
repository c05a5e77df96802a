"""The report for a pull request: the answer first, every change with its direction, short enough for a comment."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.model import Dataset
from runner.report.markdown import LIMIT, SHOWN_CHANGES, SUMMARY_LINES, page_text, summary
from runner.report.page import Page, arrange
from tests.support.fake_runs import realistic


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return dataset.load_dataset(realistic(tmp_path_factory.mktemp("reports")))


@pytest.fixture(scope="module")
def content(results: Dataset) -> Page:
    return arrange(analyse(results))


def table_rows(text: str, title: str) -> list[list[str]]:
    section = text.partition(title)[2].partition("\n\n")[2].partition("\n\n")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines()[2:]]


def test_the_answer_comes_first(content: Page) -> None:
    text = page_text(content)
    assert text.startswith("# On average PyTorch 2.x is ")
    order = ["| release | against | change |", "**Grade**", "## Slower", "## Largest changes", "<details>"]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)


def test_a_note_ends_with_one_full_stop(content: Page) -> None:
    text = page_text(content)
    assert "can be called in 8 of 10 runs." in text
    assert not re.search(r"\w\.\.(\s|$)", text)


def test_every_row_has_a_change_with_its_direction_and_a_verdict(content: Page) -> None:
    rows = table_rows(page_text(content), "comparisons, the largest change first")
    assert len(rows) == len(content.rows)
    for row in rows:
        assert re.fullmatch(r"\d[\d.]*(x| %) (faster|slower)|0\.0 %|\N{EN DASH}", row[4])
        assert re.match(r"\*\*(faster|slower)\*\*|probably|same|can't tell|not ", row[6])


def test_the_slower_tests_are_a_table_of_their_own(content: Page) -> None:
    rows = table_rows(page_text(content), "## Slower")
    slower = [each for each in content.rows if each.word in ("slower", "probably slower")]
    assert [row[0] for row in rows] == [each.test for each in slower][:SHOWN_CHANGES]


def test_a_large_run_is_cut_to_the_limit_and_says_what_is_left_out(content: Page) -> None:
    many = tuple(replace(each, test=f"{each.test} {number}") for number in range(60) for each in content.rows)
    text = page_text(replace(content, rows=many))
    assert 0.5 * LIMIT < len(text) < LIMIT
    assert "This page leaves out the smaller changes, " in text
    assert text.count("<details>") == text.count("</details>")
    assert "leaves out" not in page_text(content)


def test_a_summary_fits_the_page_of_a_job(content: Page) -> None:
    lines = summary(content).splitlines()
    assert 10 < len(lines) <= SUMMARY_LINES
    assert lines[0].startswith("# On average")


def test_a_run_without_comparisons_has_its_times(tmp_path: Path, results: Dataset) -> None:
    rounds, samples = (frame[frame["environment"] == "torch-2.x"] for frame in (results.rounds, results.samples))
    text = page_text(arrange(analyse(replace(results, rounds=rounds, samples=samples))))
    assert text.startswith("# asr-lstm, rnn-step, ")
    assert "<details><summary>Times</summary>" in text
