"""The values of a metric as rounds of a run."""

import math
from pathlib import Path
from typing import Any

import pytest

from runner.analysis.compare.metric_rounds import environment_cell, metric_dataset
from runner.analysis.dataset import load_dataset
from runner.core.metrics import BY_NAME
from runner.core.model import Cell
from tests.support.fake_runs import cell, good, make

BASE, TRAIN = cell("torch-1.0"), cell("torch-1.0", phase="forward")
MIB = 2.0**20


def values(reports: Path, name: str) -> dict[tuple[str, int], float]:
    """Return (cell, round) -> value in the newest run of a folder."""
    (run,) = (reports / "runs").iterdir()
    rounds = metric_dataset(load_dataset(run), BY_NAME[name]).rounds
    return dict(zip(zip(rounds["cell"].astype(str), rounds["round"], strict=True), rounds["seconds"], strict=True))


def test_a_fact_is_the_value_of_a_round_and_rounds_without_it_are_left_out(tmp_path: Path) -> None:
    facts: list[dict[str, Any]] = [{"step_peak_bytes": 50 << 20}, {}, {"step_peak_bytes": 0}]
    make(tmp_path, [good(BASE, number, [1.0], **each) for number, each in enumerate(facts)])
    assert values(tmp_path, "memory") == {(BASE.id, 0): 50 * MIB}
    assert not values(tmp_path, "energy")


def test_small_values_count_as_the_least(tmp_path: Path) -> None:
    make(tmp_path, [good(BASE, 0, [1.0], step_peak_bytes=4096)])
    assert values(tmp_path, "memory") == {(BASE.id, 0): MIB}


def test_a_gpu_has_a_fact_of_its_own(tmp_path: Path) -> None:
    make(tmp_path, [good(BASE, 0, [1.0], device="cuda", peak_bytes=7 << 20, step_peak_bytes=50 << 20)])
    assert values(tmp_path, "memory") == {(BASE.id, 0): 7 * MIB}


def test_a_quantile_is_of_the_calls_of_a_round_with_enough_of_them(tmp_path: Path) -> None:
    times = [0.001 * number for number in range(1, 41)]
    rounds = [good(BASE, 0, times), good(BASE, 1, times[:19]), good(BASE, 2, times, batch=3)]
    make(tmp_path, rounds)
    assert values(tmp_path, "p95") == {(BASE.id, 0): pytest.approx(0.038)}


def test_an_environment_has_a_value_for_each_server_without_the_first(tmp_path: Path) -> None:
    seconds = {"torch-1.0#1": 9.0, "torch-1.0#2": 2.0, "torch-1.0#3": 2.1}
    records = [
        good(of, number, [1.0], server=server, import_cpu_seconds=each)
        for number, (server, each) in enumerate(seconds.items())
        for of in (BASE, TRAIN)
    ]
    make(tmp_path, records)
    of_environment = environment_cell("torch-1.0", BY_NAME["import"])
    assert values(tmp_path, "import") == {(of_environment.id, 0): 2.0, (of_environment.id, 1): 2.1}


def test_the_only_server_of_an_environment_counts_where_another_has_several(tmp_path: Path) -> None:
    other = cell("torch-2.x")
    make(
        tmp_path,
        [good(BASE, number, [1.0], import_cpu_seconds=2.0) for number in range(2)]
        + [good(other, 0, [1.0], import_cpu_seconds=3.0)],
    )
    assert [Cell.parse(name).environment for name, _ in values(tmp_path, "import")] == [
        "torch-1.0",
        "torch-1.0",
        "torch-2.x",
    ]


def test_an_exact_metric_has_one_value(tmp_path: Path) -> None:
    make(tmp_path, [good(BASE, number, [1.0], installed_bytes=10**9 + number) for number in range(3)])
    assert [value for value in values(tmp_path, "size").values() if math.isfinite(value)] == [1e9]
