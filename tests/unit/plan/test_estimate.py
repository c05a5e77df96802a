"""Estimates: rates from data sheets, held against published figures, and what they decide of a plan."""

import collections
import math
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.catalog.cases import CASES
from runner.catalog.hardware import tables
from runner.catalog.hardware.peaks import peak
from runner.catalog.published import Figure, figures
from runner.core.model import Cell, Gpu, Measurement, Plan, PlannedCell, Request
from runner.core.model.cells import is_plain, plain
from runner.matrix import load, parse
from runner.plan import estimate
from runner.plan.estimate import Program
from runner.plan.machine_file import read_machine_file
from runner.plan.pairs import with_controls
from runner.plan.planner import plan
from runner.plan.rates import (
    PREPARATION,
    SERVER_SECONDS,
    SIDE_BY_SIDE,
    UNKNOWN_BOARD,
    Preparation,
    cpu_rates,
    fastest_rates,
    gpu_rates,
    preparation,
    rates,
)
from runner.report.plan import plan_table
from runner.session.options import Options
from runner.session.plan_elsewhere import planned

ROOT = Path(__file__).parents[3]
H200 = Gpu(uuid="GPU-1", name="NVIDIA H200", capability=(9, 0), driver="595.71.05", memory=150_754_820_096)
BOARDS = {
    "NVIDIA GTX TITAN X": "GeForce GTX TITAN X",
    "NVIDIA GTX 1080 Founders Edition": "GeForce GTX 1080",
    "NVIDIA Tesla P100": "Tesla P100-PCIE-16GB",
}
"""Device of a published figure -> its name in NVML, where the source has another."""
PRODUCT = "deepbench-gemm/train-001-1760x16x1760-nn"


def published_steps() -> Iterator[tuple[Figure, float]]:
    """Yield each published step time on a known board, with the estimate over the published seconds."""
    for figure in figures():
        name = BOARDS.get(figure.device, figure.device)
        if peak(name) and figure.case in CASES and not figure.phase.startswith("compile"):
            phase = figure.phase.partition("+")[0]
            estimated = estimate.step_seconds(figure.case, phase, figure.precision, figure.kind, gpu_rates(name))
            yield figure, estimated / figure.seconds


def test_the_estimates_of_published_step_times_are_within_a_factor_of_six() -> None:
    ratios = collections.defaultdict(list)
    for figure, ratio in published_steps():
        ratios[figure.kind].append(ratio)
    assert sum(map(len, ratios.values())) == 312
    assert max(max(values) for values in ratios.values()) < 6
    assert min(min(values) for values in ratios.values()) > 0.2
    medians = {kind: statistics.median(values) for kind, values in ratios.items()}
    assert all(1.1 < median < 1.9 for median in medians.values()), medians


def test_no_published_figure_is_faster_than_the_fastest_rates() -> None:
    for figure, _ in published_steps():
        fastest = fastest_rates(BOARDS.get(figure.device, figure.device))
        assert fastest is not None
        phase = figure.phase.partition("+")[0]
        min_seconds = estimate.step_seconds(figure.case, phase, figure.precision, figure.kind, fastest)
        assert figure.seconds > min_seconds


def test_rates_are_those_of_the_board_and_the_precision() -> None:
    board = peak("NVIDIA H200")
    assert board is not None
    assert gpu_rates("NVIDIA H200").operations == {
        name: pytest.approx(0.2 * rate) for name, rate in board.operations.items()
    }
    v100 = gpu_rates("Tesla V100-SXM2-16GB").operations
    assert (v100["bf16"], v100["tf32"]) == (v100["fp32"], v100["fp32"])  # its data sheet has neither
    assert v100["fp16"] > 5 * v100["fp32"]
    assert rates(None, 3).operations["fp32"] == 9e10
    assert rates(H200, 3) is gpu_rates("NVIDIA H200")


def test_an_unknown_board_counts_as_the_slowest_known_one() -> None:
    slowest = min(float(row["fp32"]) for row in tables.rows("peaks.csv"))
    assert slowest * 1e12 == UNKNOWN_BOARD
    assert set(gpu_rates("NVIDIA H200 MIG 1g.18gb").operations.values()) == {0.2 * UNKNOWN_BOARD}
    assert fastest_rates("NVIDIA H200 MIG 1g.18gb") is None


def seconds(case_id: str, framework: str, kind: str, device: str, phase: str = "forward") -> float:
    workload, _, case = case_id.partition("/")
    cell = Cell(environment="e", implementation="i", workload=workload, case=case, phase=phase)
    program = Program(framework=framework, kind=kind, compiling=(0.0, 0.0))
    of_device = gpu_rates("NVIDIA H200") if device == "cuda" else cpu_rates(2)
    return estimate.cell_cost(cell, program, Measurement(seconds=1.0), of_device).first


def test_a_process_starts_by_framework_on_a_gpu_and_at_once_on_a_cpu() -> None:
    on_gpu = {name: seconds(PRODUCT, name, "vendor", "cuda") for name in ("torch", "tensorflow", "jax", "keras")}
    assert on_gpu["torch"] == pytest.approx(3.0 + 1.6, abs=0.2)  # a second of samples, and 0.6 s to warm up
    assert [on_gpu[name] - on_gpu["torch"] for name in ("tensorflow", "jax", "keras")] == pytest.approx([3.0] * 3)
    on_cpu = {seconds(PRODUCT, name, "vendor", "cpu") for name in on_gpu}
    assert len(on_cpu) == 1


def test_a_step_costs_by_the_kind_of_the_implementation_on_a_gpu_alone() -> None:
    case = "rnn-sequence/lstm-l3-t30-b32-h128"
    steps = 3 * 30
    launches = {
        kind: estimate.step_seconds(case, "forward", "fp32", kind, gpu_rates("NVIDIA H200"))
        for kind in ("vendor", "fused", "flexible")
    }
    assert launches["fused"] - launches["vendor"] == pytest.approx(steps * 4e-5)
    assert launches["flexible"] - launches["vendor"] == pytest.approx(steps * 9e-5)
    assert len({estimate.step_seconds(case, "forward", "fp32", kind, cpu_rates(2)) for kind in launches}) == 1


def published_plan(machine: str) -> Plan:
    options = Options(matrix=ROOT / "matrix.yaml", preset="published", seed=0, selectors=["torch-2.x", "tf-2.x", "jax"])
    return planned(options, read_machine_file(ROOT / "docs" / "machines" / f"{machine}.json"))


def test_the_headline_cases_of_the_publications_run_on_an_h200() -> None:
    cells = published_plan("h200-595").cells
    assert not [each for each in cells if each.skip and each.skip.code == "over-budget"]
    headline = {
        (each.cell.case, each.cell.phase): each
        for each in cells
        if each.cell.environment == "torch-2.x" and each.cell.implementation == "nn-lstm"
    }
    for case in ("4x320-ce-long", "4x320-ctc-long"):
        chosen = headline[case, "train+published"]
        assert (chosen.skip, chosen.deferred) == (None, "")
        assert 20 < chosen.seconds / 3 < 300
    products = [each for each in cells if each.cell.workload == "deepbench-gemm" and each.cell.precision == "fp32"]
    assert len(products) == 3 * 248
    assert {(each.skip, each.deferred) for each in products} == {(None, "")}


MATRIX = """version: 1
workloads: {rnn-step: {cases: [lstm-b128-h1024], phases: [train]}}
environments: {torch-2.x: {framework: torch, release: "2.*", image: x, cuda: "13.0"}}
"""


def slow(gpu: Gpu | None, timeout: float, **changes: float) -> PlannedCell:
    """Return a cell of one large case under a time-out."""
    matrix = parse(f"{MATRIX}measure: {{timeout: {timeout:.9f}}}\n".encode(), "m.yaml")
    request = Request(environments=("torch-2.x",), device="cuda" if gpu else "cpu", seconds=0.01, threads=1)
    cells = plan(matrix, replace(request, **changes), {}, gpu).cells  # type: ignore[arg-type]
    return next(each for each in cells if each.cell.implementation == "nn-lstm")


def test_an_estimate_above_the_time_out_is_no_reason_to_skip_on_a_gpu() -> None:
    tried = slow(H200, 1.0)
    assert tried.skip is None
    assert tried.deferred.startswith("one round would take about 5 s by an estimate; it is tried once")
    of_servers = 3 * estimate.server_seconds(preparation("torch", (2, math.inf)).importing)
    assert 3.0 < tried.seconds < 3.0 + of_servers  # three rounds that end at the time-out, and a share of the servers
    assert slow(H200, 60.0).deferred == ""
    assert slow(replace(H200, name="NVIDIA H200 MIG 1g.18gb"), 1e-6).skip is None  # nothing is known of its rate


def test_a_gpu_skips_what_exceeds_the_time_out_at_any_rate() -> None:
    skip = slow(H200, 1e-6).skip
    assert skip is not None
    assert skip.code == "over-budget"
    assert "s even at twice the GPU's peak rate; the time-out is" in skip.reason


def test_on_a_cpu_the_rate_of_real_runs_decides() -> None:
    skip = slow(None, 1.0).skip
    assert skip is not None
    assert skip.code == "over-budget"


def test_a_budget_defers_and_the_table_says_so() -> None:
    matrix = load(ROOT / "matrix.yaml")
    request = Request(environments=("torch-2.x",), preset="heritage", budget=60.0)
    result = plan(matrix, request, {})
    deferred = [each for each in result.cells if each.deferred]
    assert 0 < len(deferred) < len([each for each in result.cells if each.skip is None])
    assert not [each for each in deferred if each.skip]
    assert result.seconds <= 60.0
    table = plan_table(result)
    assert "measured last (--why lists them):" in table
    assert "in 3 rounds without those measured last" in " ".join(table.split())
    assert deferred[0].cell.case_id in plan_table(result, why=True)
    assert math.isfinite(result.seconds)


SLOW_IMPORT = Program(framework="torch", kind="vendor", compiling=(0.0, 0.0), preparation=Preparation(10.0, 2.0))
CALL = Cell(environment="torch-2.x", implementation="model", workload="my-network", case="small", phase="forward")
"""A call of a user's network."""


def cost(cell: Cell, process: str = "fork", seconds: float = 0.5) -> estimate.CellCost:
    measurement = Measurement(seconds=seconds, process=process)  # type: ignore[arg-type]
    return estimate.cell_cost(cell, SLOW_IMPORT, measurement, cpu_rates(2))


def test_a_plain_process_imports_in_each_round_and_a_forked_one_never() -> None:
    assert cost(CALL, "plain").each - cost(CALL).each == pytest.approx(SIDE_BY_SIDE * 10.0)
    assert cost(plain(CALL)).each == cost(CALL, "plain").each


def test_a_cell_is_checked_once_and_a_control_never() -> None:
    forked, plainly = cost(CALL), cost(CALL, "plain")
    assert forked.once == pytest.approx(SIDE_BY_SIDE * 2.0)
    assert plainly.once == pytest.approx(SIDE_BY_SIDE * (2.0 + 10.0 + 2.0))  # its child imports and builds first
    assert cost(plain(CALL)).once == 0.0
    assert plainly.of(3) == pytest.approx(plainly.once + 3 * plainly.each)


def test_a_quick_call_costs_twice_its_time_budget_on_a_cpu() -> None:
    assert cost(CALL, seconds=1.5).each - cost(CALL, seconds=0.5).each == pytest.approx(2.0)


def test_a_release_has_its_own_import() -> None:
    assert preparation("torch", (1, 12, 1)) == PREPARATION["torch"][0]
    assert preparation("torch", (2, math.inf)) == PREPARATION["torch"][2]
    assert preparation("keras", (math.inf,)) == PREPARATION["keras"][3]
    assert preparation("torch", ()) == PREPARATION["torch"][0]
    assert preparation("mine", (1, 0)).importing > 0


def test_the_cells_of_an_environment_share_its_servers() -> None:
    cells = [PlannedCell(cell=replace(CALL, case=name), device="cpu", seconds=1.0) for name in ("a", "b")]
    for restart, servers in ((1, 3), (2, 2), (0, 3)):
        measurement = Measurement(rounds=3, restart=restart)
        shared = estimate.with_servers(cells, {"torch-2.x": 10.0}, measurement)
        of_servers = servers * (SERVER_SECONDS + 10.0)
        assert [each.seconds for each in shared] == pytest.approx([1.0 + of_servers / 2] * 2)


def heritage(process: str) -> Plan:
    request = Request(environments=WITHOUT_GPU, preset="heritage", process=process, threads=2)  # type: ignore[arg-type]
    return with_controls(plan(load(ROOT / "matrix.yaml"), request, {}))


WITHOUT_GPU = (
    *("torch-1.0", "torch-1.12", "torch-2.x", "tf-1.8", "tf-1.15", "tf-2.x", "theano-0.8", "theano-1.0"),
    *("keras-2.1-tf", "keras-2.1-theano", "keras-3", "jax"),
)
"""The environments that can be built without a GPU, in the order of the matrix."""


@pytest.mark.whole_matrix
@pytest.mark.parametrize(("process", "minutes"), [("fork", (22.0, 30.0)), ("plain", (25.0, 25.0))])
def test_the_range_of_the_preset_heritage_has_its_real_minutes(process: str, minutes: tuple[float, float]) -> None:
    """The minutes are those of README.md, and of a run in plain processes on two cores of a Xeon at 2.8 GHz.

    The runs measured each plain-process control three times.
    """
    of = heritage(process)
    assert any(map(is_plain, of.frameworks)) == (process == "fork")
    of_controls = sum(each.seconds for each in of.cells if is_plain(each.cell.environment))
    shortest = (of.seconds + 2 * of_controls) / 60
    assert shortest < minutes[0]
    assert minutes[1] < shortest * of.measurement.round_limit / of.measurement.rounds
    assert shortest > minutes[1] / 2
