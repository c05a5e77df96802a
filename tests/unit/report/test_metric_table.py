"""What a terminal shows of metrics other than time."""

from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis.compare import compare
from runner.analysis.comparison_model import Comparison
from runner.analysis.dataset import load_dataset
from runner.report import render, terminal
from tests.support.fake_runs import cell, good, make

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    peaks = {BASE: 100 << 20, OTHER: 130 << 20}
    records = [good(of, n, [0.01], step_peak_bytes=peaks[of], installed_bytes=10**9) for n in range(4) for of in peaks]
    return compare([load_dataset(make(tmp_path, records))], "torch-1.0", ["torch-2.x"])


def test_time_comes_first_and_then_what_else_changed(comparison: Comparison) -> None:
    text = render(comparison, "table")
    assert "also changed: 1.30x more memory: --metric all" in text
    text = terminal.text(comparison, width=100, colour=False, why=True)
    changed = text.index("1.30x more memory")
    assert text.index("asr-lstm/1x320-ce-short train") < changed
    assert "100 MiB → 130 MiB" in text[changed:]
    assert "installed size" not in text


def test_a_page_lists_what_changed(comparison: Comparison) -> None:
    markdown = render(comparison, "md")
    assert "## Also changed" in markdown
    assert "| 100 MiB → 130 MiB | **1.30x more memory** |" in markdown
    html = render(comparison, "html")
    assert "<h2>Also changed</h2>" in html
    assert '<b class="slower">1.30x more memory</b> Speech model, 1 LSTM layer of 320 · nn.LSTM · train <' in html
    unchanged = replace(comparison, metrics=())
    assert "Also changed" not in render(unchanged, "md") + render(unchanged, "html")


def test_a_metric_alone_is_shown_with_all_of_its_rows(comparison: Comparison) -> None:
    text = render(comparison, "table", metrics=("size", "energy"))
    assert "installed size  1.00 GB → 1.00 GB  0.0 %  same" in text
    assert "note: no test has energy of a step: CPUs and some GPUs do not report it" in text
    assert "faster" not in text


def test_all_metrics_begin_with_time(comparison: Comparison) -> None:
    text = render(comparison, "table", metrics=("time", "memory"))
    assert text.index("95 % interval") < text.index("peak memory of the steps")
    assert text.count("1.30x more memory") == 1


def test_csv_has_the_metrics_that_are_named(comparison: Comparison) -> None:
    assert len(render(comparison, "csv").splitlines()) == 2
    lines = render(comparison, "csv", metrics=("memory", "size")).splitlines()
    assert [line.split(",")[-3] for line in lines] == ["metric", "memory", "size"]
