"""The grade of a run that decides other metrics than time: the width of its intervals is that of these metrics."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.analysis import dataset
from runner.analysis.compare.comparison import summarise
from runner.analysis.comparison_model import Comparison
from runner.analysis.model import Dataset, Grade, Level
from runner.analysis.quality import quality_issues
from runner.analysis.quality.grade import grade, median_interval, widest_decided
from runner.report.answer import answer
from runner.report.trust import trust_lines
from tests.support.changed_runs import change_header
from tests.support.fake_runs import good, make
from tests.unit.analysis.quality.test_grade import BASE, GOOD, OTHER, QUIET, compared, of, row

LITTLE, MUCH = 0.002, 0.4
"""Standard deviations of the rounds."""


def run(folder: Path, decides: Sequence[str], *, time: float = LITTLE, memory: float = LITTLE) -> Dataset:
    """Return a run of two releases and six rounds, whose times and memory have some noise."""
    draw = np.random.default_rng(3)
    records = []
    for number in range(6):
        for of_cell in (BASE, OTHER):
            times = 1e-3 * draw.lognormal(0.0, time) * draw.lognormal(0.0, 0.001, 30)
            peak = int(2.0**28 * draw.lognormal(0.0, memory))
            facts: dict[str, Any] = {"step_peak_bytes": peak, "installed_bytes": 2_000_000_000, "others_busy": 0.1}
            records.append(good(of_cell, number, times.tolist(), **facts))
    made = make(folder, records, **QUIET)
    if decides:
        change_header(made, metrics=list(decides))
    return dataset.load_dataset(made)


def graded(results: Dataset) -> Grade:
    value = grade(results, quality_issues(results), summarise(results))
    assert value is not None
    return value


def level_of_width(value: Grade) -> Level | None:
    return next((reason.level for reason in value.reasons if reason.code == "half-width"), None)


@pytest.mark.parametrize("decides", [(), ("time",)])
def test_a_run_that_decides_times_is_as_precise_as_they_are(decides: Sequence[str], tmp_path: Path) -> None:
    value = graded(run(tmp_path, decides, time=MUCH))
    assert (value.figures.metric, level_of_width(value)) == ("time", "poor")
    assert level_of_width(graded(run(tmp_path / "memory", decides, memory=MUCH))) is None


def test_a_run_that_decides_memory_is_as_precise_as_that(tmp_path: Path) -> None:
    value = graded(run(tmp_path, ["memory"], time=MUCH))
    assert (value.figures.metric, level_of_width(value)) == ("memory", None)
    assert value.figures.half_width == pytest.approx(2.57 * 2**0.5 * LITTLE / 6**0.5, rel=0.6)
    assert (value.figures.rounds, value.figures.comparisons) == (6, 1)
    noisy = graded(run(tmp_path / "noisy", ["memory"], memory=MUCH))
    (reason,) = [each for each in noisy.reasons if each.code == "half-width"]
    assert reason.level == "poor"
    assert "with 6 rounds, the 95 % interval of the median comparison of peak memory of the steps " in reason.sentence


@pytest.mark.parametrize(("noise", "metric"), [({"time": MUCH}, "time"), ({"memory": MUCH}, "memory")])
def test_of_several_metrics_the_one_with_the_widest_interval_counts(
    noise: dict[str, float], metric: str, tmp_path: Path
) -> None:
    value = graded(run(tmp_path, ["time", "memory"], **noise))
    assert (value.figures.metric, level_of_width(value)) == (metric, "poor")


def test_a_size_is_exact_and_has_one_value(tmp_path: Path) -> None:
    value = graded(run(tmp_path, ["size"], time=MUCH))
    assert (value.figures.metric, value.figures.rounds, value.figures.half_width) == ("size", 1, None)
    assert {reason.code for reason in value.reasons} <= {"no-controls"}
    assert of(rounds=1) == [("poor", "rounds")]
    assert of(rounds=1, metric="size") == []


def test_a_metric_that_no_comparison_has_leaves_the_times(tmp_path: Path) -> None:
    value = graded(run(tmp_path, ["energy"]))
    assert (value.figures.metric, value.figures.comparisons) == ("time", 1)


def test_a_clear_change_of_memory_counts_as_if_it_had_gone_on() -> None:
    clear = row(metric="memory", verdict="more", ratio=1.5, rounds=3, independent_rounds=3, round_sd=0.04)
    comparison = compared(row(rounds=3), metrics=(clear,))
    assert median_interval([comparison], "memory", (3, 5, 8)).rounds == 8
    alone = median_interval([comparison], "memory", (3,))
    assert alone.rounds == 3
    assert (alone.half_width or 0.0) > (median_interval([comparison], "memory", (3, 5, 8)).half_width or 0.0) > 0
    server = row(metric="import", verdict="slower", ratio=1.5, rounds=3, independent_rounds=3, round_sd=0.04)
    assert median_interval([compared(metrics=(server,))], "import", (3, 5, 8)).rounds == 3


def test_controls_are_no_comparisons(tmp_path: Path) -> None:
    results = run(tmp_path, ["memory"])
    nothing: tuple[Comparison, ...] = ()
    assert widest_decided(results, nothing) == ("time", (0, None))


def test_people_read_which_metric_the_precision_is_of(tmp_path: Path) -> None:
    several = "the run decides time of a call and peak memory of the steps; trust rests on the widest intervals, of "
    for decides, very_wide, expected in (
        (
            ["memory"],
            "memory",
            ["the run decides peak memory of the steps, so trust rests on the intervals of this metric"],
        ),
        (["time"], "time", []),
        (["time", "memory"], "memory", [f"{several}peak memory of the steps"]),
        (["time", "memory"], "time", [f"{several}time of a call"]),
    ):
        widths: dict[str, float] = {very_wide: MUCH}
        results = run(tmp_path / f"{'-'.join(decides)}-{very_wide}", decides, **widths)
        comparisons = summarise(results)
        shown = trust_lines(answer(comparisons, {}, graded(results), ""), failed=0, cells=2)
        assert [text for topic, text in shown if topic == "Precision"] == expected
    assert GOOD.metric == "time"
