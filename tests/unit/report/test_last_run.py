"""Whether an earlier run agrees: by the noise of both, for the same releases only."""

import pytest

from runner.analysis.analyse import Analysis, analyse_run
from runner.history.entries import SeriesPoint
from runner.report.last_run import LastRun, compare_with
from runner.session.run_entry import run_entry
from runner.store.run import Run
from tests.support.quick_run import quick

EARLIER = "20261119-081500-1a2b"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return quick(tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def analysis(run: Run) -> Analysis:
    return analyse_run(run)


@pytest.fixture
def points(run: Run, analysis: Analysis) -> dict[str, SeriesPoint]:
    entry = run_entry(analysis, run)
    origin = {name: getattr(entry, name) for name in ("at", "kind", "host", "harness", "driver")}
    names = [name for name in SeriesPoint._fields if name not in (*origin, "run", "device", "device_uuid")]
    return {
        each.cell: SeriesPoint(
            run=EARLIER, device=entry.series_device, **origin, **{name: getattr(each, name) for name in names}
        )
        for each in entry.cells
    }


def compared(analysis: Analysis, points: dict[str, SeriesPoint]) -> LastRun:
    return compare_with(analysis.comparisons, analysis.releases, EARLIER, points)


def test_the_same_numbers_agree(analysis: Analysis, points: dict[str, SeriesPoint]) -> None:
    assert compared(analysis, points) == LastRun("2026-11-19 08:15 UTC", 28, 28)


def test_another_change_is_named(analysis: Analysis, points: dict[str, SeriesPoint]) -> None:
    cell = "torch-2.x/nn-lstm/lm-lstm/lm-small/train/fp32"
    point = points[cell]
    assert point.ratio
    assert point.ratio_low
    assert point.ratio_high
    moved = point._replace(ratio=4 * point.ratio, ratio_low=4 * point.ratio_low, ratio_high=4 * point.ratio_high)
    agreement = compared(analysis, {**points, cell: moved})
    assert (agreement.compared, agreement.agreeing, agreement.agrees) == (28, 27, True)
    assert agreement.farthest.startswith("Language model, 2 LSTM layers of 64, 2.")
    assert agreement.farthest.endswith("x faster then")


def test_as_many_may_differ_as_chance_explains() -> None:
    pairs = [(28, 28), (28, 25), (28, 24), (2, 2), (2, 0), (20_000, 18_960), (20_000, 18_000)]
    agree = [LastRun("", compared, agreeing).agrees for compared, agreeing in pairs]
    assert agree == [True, True, False, True, False, True, False]


def test_a_change_without_an_interval_is_not_compared(analysis: Analysis, points: dict[str, SeriesPoint]) -> None:
    without = {cell: point._replace(ratio_low=None, ratio_high=None) for cell, point in points.items()}
    assert compared(analysis, without) == LastRun()


def test_other_releases_and_other_bases_are_not_compared(analysis: Analysis, points: dict[str, SeriesPoint]) -> None:
    assert compared(analysis, {name: each._replace(release="9.9") for name, each in points.items()}) == LastRun()
    assert compared(analysis, {name: each._replace(base="other") for name, each in points.items()}) == LastRun()
    assert compared(analysis, {}) == LastRun()
