"""The site over runs: an index with every run, trends of what was measured alike, and the summary that both read."""

import json
import math
import re
from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.compare.summary import summarise
from runner.report import report
from runner.report.site import picture, site, trends_by_kind
from runner.workflows.site import write_site
from tests.support.fake_runs import bad, cell, good, make, realistic
from tests.support.html import html_text


def summary(run: str, seconds: float, alike: str = "a processor", **changes: object) -> dict[str, object]:
    return {
        "run": run,
        "measured": "2026-11-20 10:45 UTC",
        "title": f"title of {run}",
        "grade": "fair",
        "device": "a processor",
        "alike": alike,
        "tests": 1,
        "words": {"faster": 2, "can't tell": 1},
        "failed": 0,
        "cells": {"torch-2.x/nn-lstm/w/c/train/fp32": [seconds, None, None]},
        **changes,
    }


def test_a_summary_has_the_answer_the_grade_and_every_time(tmp_path: Path) -> None:
    results = dataset.load_dataset(realistic(tmp_path))
    document = json.loads(str(report(results, summarise(results))["summary.json"]))
    assert document["title"].startswith("On average PyTorch 2.x is")
    assert document["grade"] == "fair"
    assert document["failed"] == 2
    assert len(document["cells"]) == document["tests"] == results.rounds["cell"].nunique()
    seconds, low, high = document["cells"]["torch-2.x/nn-lstm/asr-lstm/1x320-ce-short/train/fp32"]
    assert low < seconds < high


def test_the_index_links_every_run_with_its_answer() -> None:
    index = site([summary("b", 2.0), summary("a", 1.0)])["index.html"]
    assert index.index('href="runs/b/index.html"') < index.index('href="runs/a/index.html"')
    assert "title of b" in index
    assert "2 faster, 1 can" in index


def test_only_runs_that_were_measured_alike_make_a_trend() -> None:
    summaries = [summary("c", 4.0), summary("b", 9.0, alike="another"), summary("a", 1.0)]
    trends = trends_by_kind(summaries)
    assert list(trends) == ["a processor"]
    (trend,) = trends["a processor"]
    assert (trend.runs, trend.seconds) == (("a", "c"), (1.0, 4.0))
    assert math.isclose(trend.change, math.log(4))
    assert "1.00 s → 4.00 s" in html_text(site(summaries)["trends.html"])


def test_a_trend_that_does_not_move_is_drawn() -> None:
    (trend,) = trends_by_kind([summary("b", 1.0), summary("a", 1.0)])["a processor"]
    assert "nan" not in picture(trend)


def test_the_site_has_the_page_of_each_run_and_no_link_to_what_it_lacks(tmp_path: Path) -> None:
    for seconds in (1.0, 2.0):
        failed = bad(cell("tf-2.x", "basic-lstm-cell"), 0, "oom", "too much")
        make(tmp_path / "reports", [*(good(cell(), number, [seconds, seconds]) for number in range(3)), failed])
    notes: list[str] = []
    index = write_site(tmp_path / "reports", tmp_path / "site", 0.02, notes.append)
    assert notes == [f"2 runs in {tmp_path / 'site'}"]
    pages = sorted((tmp_path / "site/runs").glob("*/index.html"))
    assert len(pages) == 2
    for page in pages:
        links = re.findall(r'href="([^"#]+)"', page.read_text())
        assert all(link == "data:," or (page.parent / link).exists() for link in links)
        assert "basic-lstm-cell/asr-lstm/1x320-ce-short/train/fp32" in page.read_text()
        assert f'href="runs/{page.parent.name}/index.html"' in index.read_text()
        assert (page.parent / "report.md").exists()


def test_a_folder_without_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="holds no run with results"):
        write_site(tmp_path, tmp_path / "site", 0.02, print)
