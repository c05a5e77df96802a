"""The page: what it says of each row, and that it requests nothing."""

import re
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.first_day import products
from benchmarks.first_day.page import page, picture, precisions
from benchmarks.first_day.predictions import judged
from benchmarks.first_day.rows import Result, Row, with_end
from runner.report.formatting import DASH

DOCUMENT: dict[str, Any] = {
    "machine": {"gpu": {"name": "NVIDIA H200", "driver": "580.65.06"}, "cpu": "a processor"},
    "settings": {"standin": False, "pin": True, "backend": "docker"},
    "started": "2026-11-24 07:00 UTC",
    "seconds": 1512.0,
    "quick": True,
}
CLOCKS = {products.OURS: 10.2e-6, products.BLOCK: 10e-6, products.GRAPH: 10e-6, products.SINGLE: 28e-6}
PRODUCT = products.row(512, {name: {"times": [value]} for name, value in CLOCKS.items()}, {})
GEMM = "deepbench-gemm/train-001-1760x16x1760-nn"
MEASURED = {"case": GEMM, "precision": "fp32", "seconds": 2e-5, "share": 0.61}
SKIPPED = {"case": GEMM, "precision": "tf32", "skip": "precision-lacks"}
RESULTS = [
    Result("clocks", "Products by five clocks", "finished", 200.0, 420.0, (PRODUCT,)),
    Result(
        "precisions",
        "Five precisions",
        "finished",
        180.0,
        420.0,
        (
            Row(f"{GEMM} in fp32", "held", "20 us", MEASURED),
            Row(f"{GEMM} in tf32", "not tested", "precision-lacks: none on <this> GPU", SKIPPED),
        ),
    ),
    Result("kills", "SIGKILL", "time limit", 420.0, 420.0, (Row("containers", "did not hold", "1 remain"),)),
]


def shown(**settings: object) -> str:
    document = DOCUMENT | {"settings": {**DOCUMENT["settings"], **settings}}
    results = [with_end(result) for result in RESULTS]
    return page(document, results, judged(results))


def section(text: str, name: str) -> str:
    match = re.search(rf'<section id="{name}">(.*?)</section>', text, re.DOTALL)
    assert match is not None
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", match[1]))


def test_what_did_not_hold_and_what_could_not_be_tested_have_their_reasons() -> None:
    text = shown()
    assert "containers SIGKILL 1 remain" in section(text, "failed")
    assert "the check itself SIGKILL ended after its time limit of 420 s" in section(text, "failed")
    assert "precision-lacks: none on &lt;this&gt; GPU" in section(text, "untested")
    assert "1 remain" not in section(text, "untested")


def test_products_have_each_clock_with_its_ratio_to_the_graph() -> None:
    text = section(shown(), "clocks")
    assert f"512 10.2 µs (1.02) 10.0 µs (1.00) 10.0 µs (1.00) {DASH} {DASH} 28.0 µs (2.80) 0.0 % held" in text


def test_precisions_are_a_table_of_times_shares_and_reasons() -> None:
    (row,) = precisions(RESULTS[1].rows)
    assert [text for text, _, _ in row.entries] == ["20.0 µs, 61 %", "precision-lacks", DASH, DASH, DASH]
    assert "20.0 µs, 61 %" in section(shown(), "precisions")


def test_predictions_are_split_into_those_that_were_decided_and_the_others() -> None:
    text = section(shown(), "predictions")
    assert "confirmed one wait per call reads 2.80 times the graph" in text
    assert re.search(r"\d+ could not be tested", text)


def test_a_page_without_a_gpu_says_so_first() -> None:
    text = shown(standin=True)
    assert "<h1>First day without a GPU</h1>" in text
    assert "No GPU was measured." in text
    assert "H200" not in text.partition("</header>")[0]
    assert "<h1>First day with NVIDIA H200</h1>" in shown()


def test_a_page_says_whether_clocks_may_have_been_held() -> None:
    assert "--no-pin: nothing of the GPU was changed" in shown(pin=False)
    assert "clocks may be held" in shown()


def test_the_page_requests_nothing() -> None:
    text = shown()
    assert "default-src 'none'" in text
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', text)
    assert "<script" not in text


def test_a_session_with_no_rows_has_a_page() -> None:
    empty = [replace(result, rows=(), end="finished") for result in RESULTS]
    text = page(DOCUMENT, empty, judged(empty))
    assert "Everything that was tested held." in text
    assert 'id="clocks"' not in text


@pytest.mark.parametrize("count", [0, 1, 20])
def test_the_picture_has_a_line_for_each_clock_that_measured(count: int) -> None:
    svg = picture([PRODUCT] * count)
    assert svg.count("<polyline") == (len(CLOCKS) if count else 0)
    assert svg.count("<circle") == count * len(CLOCKS)
