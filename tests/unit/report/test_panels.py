"""The report of a run on several kinds of devices: a panel for each, the board of each test, and one kind as ever."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.compare import summarise
from runner.analysis.comparison_model import Comparison
from runner.analysis.model import Dataset
from runner.analysis.releases import releases
from runner.report import render, report
from runner.report.page import Page, arrange
from tests.support import fake_runs
from tests.support.host_runs import DESK, GPU_1, GPU_2, H100, RTX, realistic
from tests.support.html import Reader

CASES = {
    GPU_1: [("rnn-step", "lstm-b32-h128"), ("asr-lstm", "1x320-ce-short")],
    GPU_2: [("lm-lstm", "lm-small")],
    DESK: [("rnn-step", "lstm-b64-h256"), ("lm-lstm", "lm-medium")],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return dataset.load_dataset(realistic(tmp_path_factory.mktemp("reports"), CASES))


@pytest.fixture(scope="module")
def content(results: Dataset) -> Page:
    return arrange(analyse(results))


@pytest.fixture(scope="module")
def files(results: Dataset) -> dict[str, str]:
    return {name: str(text) for name, text in report(analyse(results)).items()}


@pytest.fixture(scope="module")
def comparison(results: Dataset) -> Comparison:
    return replace(summarise(results)[0], releases=releases(results))


def _panels(page: str) -> dict[str, str]:
    """Return the HTML of each panel by its kind of device."""
    panel = r'<section class="panel".*?aria-label="([^"]+)">(.*?)(?=<section class="panel"|<div class="folds">)'
    return dict(re.findall(panel, page, re.DOTALL))


def test_each_kind_has_a_panel_with_its_average_and_its_tests(content: Page, files: dict[str, str]) -> None:
    panels = _panels(files["index.html"])
    assert list(panels) == [panel.device_name for panel in content.panels] == [H100, RTX]
    assert [card.device_name for card in content.answer.cards] == [H100, RTX]
    for card, html in zip(content.answer.cards, panels.values(), strict=True):
        assert card.newest.big in html
        assert html.count('<section class="pair"') == 1
    assert content.answer.cards[0].newest.tests == 12
    assert content.answer.cards[1].newest.tests == 8
    assert "rnn-step/lstm-b64-h256" not in panels[H100]
    assert "rnn-step/lstm-b32-h128" not in panels[RTX].partition("<section id=")[0]


def test_the_page_has_each_id_once_and_links_to_what_exists(files: dict[str, str]) -> None:
    tags = Reader(files["index.html"]).tags
    ids = [attributes["id"] for _, attributes in tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    links = {str(attributes["href"])[1:] for _, attributes in tags if str(attributes.get("href", "")).startswith("#")}
    assert links <= set(ids)
    assert {"kind-1", "kind-2"} <= links


def test_the_headline_names_the_kind_of_each_average(content: Page) -> None:
    first, second = content.answer.cards
    assert content.title.startswith(f"On average {first.newest.sentence} on {H100} and ")
    assert content.title.endswith(f"{second.newest.big} on {RTX}")


def test_boards_are_named_with_what_the_intervals_mean(content: Page, files: dict[str, str]) -> None:
    scope = content.panels[0].scope
    assert scope.startswith("12 tests on 2 boards of 2 hosts: gpu-1 GPU-8c1f2a90, gpu-2 GPU-51d07e3b; ")
    assert "do not include how boards of this kind differ" in scope
    assert content.panels[1].scope.startswith("8 tests on one board of this kind: desk-3 GPU-e49b6c17; ")
    assert f"<dt>measured on</dt><dd>{H100}, gpu-2 GPU-51d07e3b</dd>" in files["index.html"]
    assert {case.board for case in content.cases} == {
        f"{H100} gpu-1 GPU-8c1f2a90",
        f"{H100} gpu-2 GPU-51d07e3b",
        f"{RTX} desk-3 GPU-e49b6c17",
    }
    facts = dict(content.facts)
    assert facts["Device"] == f"2 x {H100}, {RTX}"
    assert facts["Hosts"] == "desk-3, gpu-1, gpu-2"
    assert content.machine_title == "The machine that handed out the tests"


def test_the_rows_of_a_panel_are_of_its_kind(content: Page, files: dict[str, str]) -> None:
    for kind, html in _panels(files["index.html"]).items():
        anchors = set(re.findall(r'<details class="row" id="([^"]+)"', html))
        assert anchors == {each.anchor for each in content.rows if each.device_name == kind}


def test_markdown_has_a_part_for_each_kind(files: dict[str, str], comparison: Comparison) -> None:
    text = files["report.md"]
    assert text.index(f"## {H100}") < text.index(f"## {RTX}") < text.index("## Largest changes on")
    assert "12 tests on 2 boards of 2 hosts" in text
    for kind in (H100, RTX):
        assert f"## Largest changes on {kind}" in text
        assert f"## {kind}" in render(comparison, "md")


def test_the_terminal_has_a_part_for_each_kind(comparison: Comparison) -> None:
    text = render(comparison, "table", width=120)
    lines = text.splitlines()
    assert lines.index(H100) < lines.index(RTX)
    assert "2 boards of 2 hosts: gpu-1 GPU-8c1f2a90, gpu-2 GPU-51d07e3b" in lines[lines.index(H100) + 1]
    assert "one board of this kind: desk-3 GPU-e49b6c17" in lines[lines.index(RTX) + 1]
    narrow = render(comparison, "table", width=60)
    assert max(map(len, narrow.splitlines())) <= 60


def test_the_page_of_a_comparison_names_the_kinds(comparison: Comparison) -> None:
    page = render(comparison, "html")
    assert page.count(f'<h2 class="kind">{H100}</h2>') == page.count(f'<h2 class="kind">{RTX}</h2>') == 1
    assert f"on {RTX}: " in page


def test_one_kind_on_one_board_names_neither(tmp_path: Path) -> None:
    results = dataset.load_dataset(fake_runs.realistic(tmp_path))
    files = {name: str(text) for name, text in report(analyse(results)).items()}
    page = arrange(analyse(results))
    assert page.panels == ()
    assert {card.device_name for card in page.answer.cards} == {""}
    assert {each.measured_on for each in page.rows} == {""}
    assert {case.board for case in page.cases} == {""}
    for text in (*files.values(), render(summarise(results)[0], "table")):
        assert "of this kind" not in text
    assert "measured on" not in files["index.html"]
    assert json.loads(files["summary.json"])["device"] == "AMD EPYC 7B13 (CPU, no GPU)"
