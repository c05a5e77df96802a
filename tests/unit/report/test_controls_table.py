"""The controls of a run in a report: one table of A/A pairs and plain processes, and nothing elsewhere."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.analysis.analyse import Analysis, analyse
from runner.analysis.dataset import load_dataset
from runner.core.model import Record
from runner.core.model.cells import plain, twin
from runner.report import html, markdown
from runner.report.controls_table import control_lines, controls_summary
from runner.report.page import Page, arrange
from tests.support.fake_runs import cell, make, rounds

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")


def analysed(folder: Path, records: Sequence[Record]) -> Analysis:
    return analyse(load_dataset(make(folder, records)))


@pytest.fixture
def analysis(tmp_path: Path) -> Analysis:
    records = rounds(BASE, [0.79e-3] * 4) + rounds(twin(BASE), [0.8e-3, 0.81e-3, 0.79e-3, 0.8e-3])
    records += rounds(OTHER, [0.55e-3] * 4) + rounds(plain(OTHER), [0.55e-3] * 3)
    return analysed(tmp_path, records + rounds(plain(BASE), [2.1e-3, 2.11e-3, 2.09e-3]))


@pytest.fixture
def page(analysis: Analysis) -> Page:
    return arrange(analysis)


def test_a_line_has_both_times_in_one_unit_and_the_ratio_with_its_interval(analysis: Analysis) -> None:
    lines = control_lines(analysis.comparisons, analysis.measured.plain_pairs.values(), analysis.releases)
    assert [(line.cell, line.control, line.times, line.ratio, line.ends) for line in lines] == [
        (BASE, "plain process", ("790 µs", "2100 µs"), "2.66 differs", "2.63 to 2.69"),
        (BASE, "another server", ("790 µs", "800 µs"), "1.01", "0.996 to 1.03"),
        (OTHER, "plain process", ("550 µs", "550 µs"), "1.00", "1.00 to 1.00"),
    ]
    assert lines[0].test == "asr-lstm/1x320-ce-short train"
    summary = "1 test on another server, none of which differ; 2 tests in a plain process, 1 of which differs"
    assert controls_summary(lines) == summary


def test_both_forms_of_a_report_have_the_table(page: Page) -> None:
    for text in (html.page_text(page), markdown.page_text(page)):
        assert "2.66 differs" in text
        assert "2.63 to 2.69" in text
    assert 'id="controls"' in html.page_text(page)


def test_a_plain_process_is_in_no_other_part(page: Page) -> None:
    assert "@plain" not in html.page_text(page)
    assert "@plain" not in markdown.page_text(page)
    measured = {line.environment for case in page.cases for line in case.lines}
    assert measured == {"torch-1.0", "torch-2.x", "torch-1.0@twin"}
    assert ("Rounds", "4") in page.facts


def test_the_answer_is_that_of_plain_processes_where_they_show_another_ratio(page: Page) -> None:
    (card,) = page.answer.cards
    assert card.newest.ratio == pytest.approx(0.55 / 2.1, rel=1e-3)
    assert page.title == "PyTorch 2.x is 3.8x faster than 1.0"
    assert ("Processes", "a plain process takes another time than was measured in 1 of 2 tests") in page.trust


def test_a_run_without_controls_has_no_such_section(tmp_path: Path) -> None:
    page = arrange(analysed(tmp_path, rounds(BASE, [1.0] * 4) + rounds(OTHER, [2.0] * 4)))
    assert page.controls == ()
    assert 'id="controls"' not in html.page_text(page)
    assert "Controls" not in markdown.page_text(page)
