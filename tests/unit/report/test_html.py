"""The page of a run: the answer first, self-contained, every comparison with its direction, and every name as text."""

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse, analyse_run
from runner.analysis.compare.comparison import summarise
from runner.analysis.model import Dataset
from runner.analysis.releases import releases
from runner.report import report
from runner.report.answer import answer
from runner.report.compared_rows import compared_rows
from runner.report.html import MAX_ROWS, comparison_text, drawn
from runner.report.page import Page, arrange
from runner.report.pivots import pivots
from tests.support.fake_runs import bad, cell, good, make, realistic, rounds
from tests.support.html import Reader, html_text


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return dataset.load_dataset(realistic(tmp_path_factory.mktemp("reports")))


@pytest.fixture(scope="module")
def content(results: Dataset) -> Page:
    return arrange(analyse(results))


@pytest.fixture(scope="module")
def page(results: Dataset) -> str:
    return str(report(analyse(results))["index.html"])


def test_the_page_requests_nothing(page: str) -> None:
    reader = Reader(page)
    assert not {"iframe", "img", "object", "link rel=stylesheet"} & {tag for tag, _ in reader.tags}
    links = [
        value or "" for _, attributes in reader.tags for name, value in attributes.items() if name in {"src", "href"}
    ]
    assert {link for link in links if not link.startswith("#")} == {
        "data:,",
        "report.md",
        "samples.csv",
        "plan.json",
        "logs/",
        "logs/tf-2.x~lstm-block-fused-cell~asr-lstm~1x320-ce-short~train~fp32.log",
        "logs/tf-2.x~basic-lstm-cell~asr-lstm~4x320-ce-long~train~fp32.log",
    }
    assert re.findall(r"url\(|@import|srcset|=\"https?:", page) == []
    assert "default-src 'none'" in page


def test_measuring_again_has_the_options_and_the_hosts_of_the_run(results: Dataset) -> None:
    command = ["torch-2.x", "--model", "~/my nets/a.py", "--rounds", "3", "--matrix", "b.yaml", "--model", "c.py"]
    known = replace(results, provenance={"command": command, "executor": "slurm://gpu?devices=2"})
    (first, *_) = arrange(analyse(known)).rows
    options = "--model ~/'my nets/a.py' --matrix b.yaml --model c.py --executor 'slurm://gpu?devices=2'"
    assert first.again == f"runner run '{first.row.base.id}' '{first.row.other.id}' --rounds 10 {options}"
    (first, *_) = arrange(analyse(results)).rows
    assert first.again.endswith("' --rounds 10")


def test_the_policy_allows_only_the_script_of_the_page(page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_every_link_within_the_page_has_a_target(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in re.findall(r'href="(#[^"]+)"', page)} <= set(ids)


def test_the_headline_names_the_releases_the_factor_and_the_direction(content: Page) -> None:
    assert re.match(r"On average PyTorch 2\.x is \d[\d.]*(x| %) (faster|slower) than 1\.0", content.title)


def test_the_page_says_on_what_it_was_measured(page: str) -> None:
    text = html_text(page)
    for word in ("AMD EPYC 7B13", "2026-11-20 10:45 UTC", "8,400 of 56 programs", "venv", "Can I believe it? "):
        assert word in text


def test_the_page_names_every_release_api_failure_and_skip(page: str, results: Dataset) -> None:
    text = html_text(page)
    for word in {value for name in ("implementation", "case") for value in results.rounds[name].unique()}:
        assert word in text
    for word in (
        *("wrong-result", "losses are off by 3.1e-02", "oom"),
        *("image-unavailable", "no-interpreter", "no Python 2.7 or 3.5"),
        *("Intel MKL 2024.2", "sha256:" + "ab" * 32),
    ):
        assert word in text


def test_every_failure_links_to_its_log(page: str, results: Dataset) -> None:
    for cell_id in results.failures["cell"].unique():
        assert f'href="logs/{cell_id.replace("/", "~")}.log"' in page


def test_the_numbers_and_the_trust_stand_above_the_plots(page: str) -> None:
    assert page.index('class="numbers"') < page.index('id="trust"') < page.index('<section class="pair"')


def test_no_ratio_stands_without_its_direction(content: Page) -> None:
    for each in content.rows:
        if each.row.ratio is not None:
            assert re.fullmatch(r"\d[\d.]*(x| %) (faster|slower)|0\.0 %", each.change)
            assert each.change.endswith("faster") == (each.row.ratio < 1) or each.change == "0.0 %"


def test_the_times_of_a_row_were_measured(content: Page) -> None:
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
    for each in content.rows:
        if each.row.ratio is None:
            continue
        base, other = (
            float(number) * scale[unit] for number, unit in (time.split() for time in (each.base_time, each.other_time))
        )
        assert each.row.base_seconds is not None
        assert each.row.seconds is not None
        assert (base, other) == pytest.approx((each.row.base_seconds, each.row.seconds), rel=0.006)  # three digits


def test_the_page_has_all_comparisons_and_the_slower_first(content: Page, page: str) -> None:
    for html in page.split('<section class="pair"')[1:]:
        ratios = [float(ratio) for ratio in re.findall(r'data-ratio="([^"]+)"', html)]
        assert ratios == sorted(ratios, reverse=True)
    assert len(re.findall(r'<details class="row"', page)) == len(content.rows) > 10
    assert any(each.word == "slower" for each in content.rows)


def test_a_large_run_keeps_its_slower_rows_in_the_first_table(results: Dataset) -> None:
    comparisons = summarise(results)
    (row, *_) = [row for each in comparisons for row in each.rows if row.verdict == "slower"]
    faster = [replace(row, ratio=0.5, verdict="faster", other=replace(row.other, case=f"c{n}")) for n in range(400)]
    slow = [replace(row, ratio=1.05, other=replace(row.other, case=f"s{n}")) for n in range(3)]
    rows = compared_rows([replace(comparisons[0], rows=(*faster, *slow))], {})
    shown = drawn(rows, comparisons, answer(comparisons, {}, None, ""), {})
    shown_rows = [each for pair in shown["pairs"] for each in pair.rows]
    assert len(shown_rows) == MAX_ROWS
    assert sum(each.word == "slower" for each in shown_rows) == 3
    (pivot,) = shown["pivots_of_rest"]
    assert pivot.folded == 403 - MAX_ROWS
    assert len(pivot.rows) == 403 - MAX_ROWS


def test_a_table_of_a_workload_has_a_column_for_each_release_in_order(results: Dataset) -> None:
    comparisons = summarise(results)
    rows = compared_rows(comparisons, releases(results))
    of_torch = [each for each in rows if each.base == "PyTorch 1.0" and each.row.workload == "asr-lstm"]
    shown = {of_torch[0].anchor}
    environments = [other for each in comparisons for other in each.others]
    tables = {(each.workload, each.base): each for each in pivots(rows, shown, environments)}
    pivot = tables["asr-lstm", "PyTorch 1.0"]
    assert pivot.releases == ("1.12", "2.x")
    assert pivot.folded == len(of_torch) - 1
    in_table = [each for row in pivot.rows for each in row.columns if each]
    assert {each.anchor for each in of_torch} >= {each.anchor for each in in_table}
    for row in pivot.rows:
        assert all(
            each is None or (each.test, each.api, each.other) == (row.test, row.api, name)
            for name, each in zip(pivot.releases, row.columns, strict=True)
        )
    assert pivots(rows, {each.anchor for each in rows}, environments) == []


def test_rows_are_drawn_on_the_axis_that_the_table_is_labelled_with(results: Dataset) -> None:
    """The largest slow-down of a large run is here beyond the first two hundred rows by size."""
    comparisons = summarise(results)
    (row, *_) = [row for each in comparisons for row in each.rows if row.verdict == "slower"]
    faster = [replace(row, ratio=0.1, verdict="faster", other=replace(row.other, case=f"c{n}")) for n in range(250)]
    slow = replace(row, ratio=3.0, ratio_low=2.9, ratio_high=3.1, other=replace(row.other, case="slow"))
    comparison = replace(comparisons[0], rows=(*faster, slow), releases={})
    shown = drawn(compared_rows([comparison], {}), [comparison], answer([comparison], {}, None, ""), {})
    expected = f'<circle cx="{shown["axis_scale"].x(3.0):g}%" cy="9"'
    assert expected in comparison_text(comparison)


def test_a_failed_test_is_shown_and_skipped_ones_are_folded(page: str) -> None:
    failed, _, rest = page.partition('id="failures"')[2].partition("</section>")
    assert "<details" not in failed
    assert re.search(r'<details class="fold" id="skipped">', rest)


def test_names_are_text_wherever_they_come_from(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'&" + "x" * 200 + "\u202eabc"
    records = [
        good(cell(name), number, [seconds, seconds], device=evil, release=evil)
        for name, seconds in (("torch-1.0", 2.0), ("torch-2.x", 1.0))
        for number in range(3)
    ]
    results = dataset.load_dataset(make(tmp_path, [*records, bad(cell("torch-1.12"), 0, "crash", evil)], cpu=evil))
    text = str(report(analyse(results))["index.html"])
    assert text.count("<script") == 1  # that of the page
    assert "&lt;script&gt;" in text
    assert "alert(1)" in html_text(text)


def test_the_pictures_of_a_row_take_less_than_a_kilobyte(page: str) -> None:
    rows = re.findall(r'<details class="row".*?</details>', page, re.DOTALL)
    pictures = [sum(len(svg) for svg in re.findall(r"<svg.*?</svg>", row, re.DOTALL)) for row in rows]
    assert len(pictures) > 10
    assert max(pictures) < 1400
    assert sum(pictures) / len(pictures) < 1000


def test_one_round_has_no_interval_and_no_nan(tmp_path: Path) -> None:
    text = html_text(str(report(analyse_run(make(tmp_path, rounds(cell(), [0.5]))))["index.html"]))
    assert "500 ms" in text
    assert not re.search(r"\bnan\b|\binf\b", text)
