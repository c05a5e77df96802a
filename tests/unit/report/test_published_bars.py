"""The bar charts of a publication: which bars they have, and how long those are."""

import re

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.model import Dataset
from runner.analysis.releases import releases
from runner.catalog.published import figures
from runner.report import report
from runner.report.page import arrange
from runner.report.published_bars import WIDTH, BarChart, bar_charts, longest, picture
from tests.support.fake_runs import realistic
from tests.support.html import html_text

SHORT, LAYERS = "asr-lstm/1x320-ce-short", "asr-lstm/4x320-ce-long"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return dataset.load_dataset(realistic(tmp_path_factory.mktemp("reports")))


def charts(results: Dataset, case: str) -> tuple[BarChart, ...]:
    lines = [line for each in arrange(analyse(results)).cases if each.name == case for line in each.lines]
    published = [figure for figure in figures() if figure.source == "braun2018" and figure.case == case]
    devices = dict.fromkeys(releases(results), "a CPU")
    return bar_charts(published, lines, releases(results), devices)


def test_table_4_has_a_chart_of_pytorch_releases_and_one_of_the_newest_releases(results: Dataset) -> None:
    of_releases, of_frameworks = charts(results, SHORT)
    assert [bar.version for bar in of_releases.published[::3]] == ["0.1.12_2", "0.2.0_4", "0.3.1.post2", "0.4.0"]
    assert [bar.shown for bar in of_releases.published[:3]] == ["46 ms", "23 ms", "18 ms"]
    names = list(dict.fromkeys(bar.release for bar in of_frameworks.published))
    assert names == [
        *("PyTorch 0.4.0", "TensorFlow 1.8.0", "Keras 2.1.6 (keras-2.1-tf)", "Keras 2.1.6 (keras-2.1-theano)"),
        "Theano 1.0.1, Lasagne 0.2.1dev",
    ]
    assert of_releases.published_on == of_frameworks.published_on == "NVIDIA GTX 1080 Founders Edition"


def test_measured_bars_are_those_of_the_same_frameworks_and_of_the_newest_release(results: Dataset) -> None:
    of_releases, of_frameworks = charts(results, SHORT)
    assert {bar.environment for bar in of_releases.measured} == {"torch-1.0", "torch-1.12", "torch-2.x"}
    assert {bar.environment for bar in of_frameworks.measured if bar.framework == "torch"} == {"torch-2.x"}
    assert not any("@twin" in bar.environment for chart in (of_releases, of_frameworks) for bar in chart.measured)
    assert all(not chart.measured for chart in charts(results, LAYERS))  # the run has not measured it


def test_a_bar_is_as_long_as_its_time_and_the_axis_holds_every_interval(results: Dataset) -> None:
    (of_releases, _) = charts(results, SHORT)
    bars = of_releases.published
    end = longest(bars)
    assert end == pytest.approx(0.063 + 0.00378)
    for bar in bars:
        drawn = picture(bar, end)
        width = float(re.findall(r'width="([\d.]+)"', drawn)[0])
        assert width == pytest.approx(bar.seconds / end * WIDTH, abs=0.6)
        assert 'class="hollow"' in drawn
        left, right = map(float, re.findall(r'd="M([\d.]+) 7H([\d.]+)"', drawn)[0])
        assert left - 0.2 <= width <= right + 0.2 <= WIDTH + 0.2


def test_the_page_names_the_device_of_each_side(results: Dataset) -> None:
    page = html_text(str(report(analyse(results), published="braun2018")["index.html"]))
    assert "published, on NVIDIA GTX 1080 Founders Edition; ± one standard deviation" in page
    assert "measured in this run, on AMD EPYC 7B13; with the 95 % interval" in page
    assert page.count("the figures as tables") == 1
