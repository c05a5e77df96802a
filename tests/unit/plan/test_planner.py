"""What is to be measured, what cannot be and why; decided from values alone."""

import collections
import functools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.catalog.cases import CASES
from runner.core.errors import NothingSelectedError
from runner.core.model import SKIP_CODES, Gpu, Past, Plan, Request, Skip
from runner.core.model.cells import without_environment
from runner.core.units import duration
from runner.matrix import Matrix, load, parse
from runner.plan.document import plan_document, read_plan
from runner.plan.pairs import with_controls
from runner.plan.planner import plan
from runner.report.plan import extent, plan_table
from tests.support.needs import slow

H200 = Gpu(uuid="GPU-1", name="H200", capability=(9, 0), driver="580.65.06")
HEAD = "version: 1\nworkloads: {rnn-step: {cases: [lstm-b32-h128], phases: [train]}}\n"
NUMPY = '  np: {framework: numpy, release: "2.0", image: x, cuda: "13.0"}\n'
SMALL = f"""{HEAD}environments:
{NUMPY}\
  torch-1.0: {{framework: torch, release: "1.0.0", image: x, cuda: "9.0"}}
  torch-2.x: {{framework: torch, release: "2.*", image: x, cuda: "13.0"}}
  tf-1.8: {{framework: tensorflow, release: "1.8.0", image: x, cuda: "9.0"}}
"""
TF_2 = 'tf-2.x: {framework: tensorflow, release: "2.21.0", image: x, cuda: "12.5", cudnn: "9.27"}'
CASE_NAMES = ("1x320-ce-short", "1x320-ce-long", "4x320-ce-long", "4x320-ctc-long")
KEYS = {
    *("id", "environment", "implementation", "workload", "case", "phase", "precision", "device"),
    *("verdict", "code", "reason", "seconds", "control_seconds", "source", "nearest", "jit", "deferred"),
}


def small(extra: str = "", text: str = SMALL) -> Matrix:
    return parse((text + extra).encode(), "m.yaml")


def planned(matrix: Matrix, unavailable: dict[str, Skip] | None = None, gpu: Gpu | None = None, **changes: Any) -> Plan:
    request = Request(environments=tuple(matrix.environments), device="cuda" if gpu else "cpu")
    return plan(matrix, replace(request, **changes), unavailable or {}, gpu)


def verdicts(plan: Plan, part: str) -> dict[str, str]:
    """Return environment/implementation -> skip code or ``run``, of the ids that hold ``part``."""
    return {
        f"{entry.cell.environment}/{entry.cell.implementation}": entry.skip.code if entry.skip else "run"
        for entry in plan.cells
        if part in entry.cell.id
    }


@functools.cache
def shipped() -> Matrix:
    return load(Path(__file__).parents[3] / "matrix.yaml")


@functools.cache
def shipped_plan(preset: str | None = None, gpu: Gpu | None = None) -> Plan:
    """Return the plan of the shipped matrix, which takes a second or more and which several tests look at."""
    return planned(shipped(), preset=preset, gpu=gpu)


def test_ids_in_the_order_of_the_file() -> None:
    result = planned(small(), workloads=("rnn-step",), environments=("np", "tf-1.8"))
    ids = [entry.cell.id for entry in result.cells]
    assert ids[0] == "np/numpy-loop/rnn-step/lstm-b32-h128/train/fp32"
    assert ids[1].startswith("tf-1.8/")
    assert all(entry.endswith("/rnn-step/lstm-b32-h128/train/fp32") for entry in ids)


def test_cases_come_first_then_environments_then_phases_then_precisions() -> None:
    text = f"{HEAD}environments:\n{NUMPY}".replace(
        "[lstm-b32-h128], phases: [train]",
        "[lstm-b32-h128, rnn-b32-h128], phases: [train, forward], precisions: [fp32, tf32]",
    )
    assert [entry.cell.id.removeprefix("np/numpy-loop/rnn-step/") for entry in planned(small(text=text)).cells] == [
        f"{case}-b32-h128/{phase}/{precision}"
        for case in ("lstm", "rnn")
        for phase in ("train", "forward")
        for precision in ("fp32", "tf32")
    ]


def test_a_phase_given_twice_is_measured_once() -> None:
    text = SMALL.replace("phases: [train]", "phases: [train, train], precisions: [fp32, fp32]")
    ids = [entry.cell.id for entry in planned(small(text=text)).cells]
    assert len(ids) == len(set(ids))


def test_only_implementations_of_the_case_s_cell_are_listed() -> None:
    words = verdicts(planned(small(text=SMALL.replace("lstm-b32-h128", "rnn-b32-h128"))), "torch-2.x/")
    assert "torch-2.x/nn-rnn" in words
    assert "torch-2.x/nn-lstm" not in words


def test_excluded_with_the_reason_of_the_file() -> None:
    matrix = small('exclude: [{select: "torch-*/nn-lstm/*", reason: too well known}]\n')
    skips = {entry.cell.id.split("/rnn-step")[0]: entry.skip for entry in planned(matrix).cells}
    assert skips["torch-2.x/nn-lstm"] == skips["torch-1.0/nn-lstm"] == Skip("excluded", "too well known")
    assert skips["np/numpy-loop"] is None


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ('"rnn-step/lstm-b32-*"', {"np/numpy-loop", "torch-1.0/nn-lstm", "torch-2.x/nn-lstm"}),
        ("{environments: [torch-*]}", {"torch-1.0/nn-lstm", "torch-2.x/nn-lstm"}),
        ('{environments: ["!torch-1.0"], implementations: [nn-*, numpy-*]}', {"np/numpy-loop", "torch-2.x/nn-lstm"}),
        (
            "{cases: [rnn-step/*/train], environments: [np]}, {environments: [torch-1.0]}",
            {"np/numpy-loop", "torch-1.0/nn-lstm"},
        ),
        ("{environments: [np]}, {environments: [torch-1.0], precisions: [int8]}", {"np/numpy-loop"}),
    ],
)
def test_a_preset_includes_what_its_selectors_fit(selector: str, selected: set[str]) -> None:
    matrix = small(f"presets: {{some: {{select: [{selector}]}}}}\n")
    with pytest.raises(NothingSelectedError, match="preset some"):
        planned(matrix, preset="some", environments=("tf-1.8",), workloads=("asr-lstm",))
    cells = [planned_cell.cell for planned_cell in planned(matrix, preset="some").cells]
    shown = {f"{cell.environment}/{cell.implementation}" for cell in cells}
    assert shown & {"np/numpy-loop", "torch-1.0/nn-lstm", "torch-2.x/nn-lstm"} == selected


def test_what_a_preset_does_not_include_is_not_in_the_plan() -> None:
    matrix = small("presets: {some: {select: [{environments: [np]}]}}\n")
    assert {planned_cell.cell.environment for planned_cell in planned(matrix, preset="some").cells} == {"np"}


def test_the_framework_lacks_what_came_later() -> None:
    skips = {entry.cell.id.split("/rnn-step")[0]: entry.skip for entry in planned(small()).cells}
    assert skips["torch-1.0/compiled-cell"] == Skip("framework-lacks", "compiled-cell came with 2.0")
    assert skips["torch-2.x/compiled-cell"] is None


def test_what_has_no_cpu_kernel_needs_a_gpu() -> None:
    assert verdicts(planned(small()), "cudnn-lstm") == {"tf-1.8/cudnn-lstm": "needs-gpu"}


def test_a_precision_the_device_lacks() -> None:
    text = SMALL.replace("phases: [train]", "precisions: [tf32, bf16]")
    assert set(verdicts(planned(small(text=text)), "np/").values()) == {"precision-lacks"}
    assert verdicts(planned(small(text=text), gpu=H200), "torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/train/tf32") == {
        "torch-2.x/nn-lstm": "run"
    }


def test_an_environment_that_cannot_be_had_keeps_its_reason() -> None:
    why = Skip("no-interpreter", "no Python 3.6 was found on this machine")
    result = planned(small(), {"torch-1.0": why})
    assert {entry.skip for entry in result.cells if entry.cell.id.startswith("torch-1.0/nn-lstm/")} == {why}
    assert "torch-1.0" not in {name for block in result.blocks for name in block.environments}


def test_a_gpu_that_a_build_has_no_code_for_and_a_driver_that_is_too_old() -> None:
    assert verdicts(planned(small(), gpu=H200), "/nn-lstm/") == {
        "torch-1.0/nn-lstm": "arch",
        "torch-2.x/nn-lstm": "run",
    }
    old = replace(H200, driver="570.86.15")
    assert verdicts(planned(small(), gpu=old), "/nn-lstm/") == {
        "torch-1.0/nn-lstm": "arch",
        "torch-2.x/nn-lstm": "driver",
    }


def test_jit_is_refused_unless_it_is_allowed_and_then_marked() -> None:
    strict, lenient = (planned(small(), gpu=H200, allow_jit=allowed) for allowed in (False, True))
    assert set(verdicts(strict, "torch-1.0/nn-lstm/").values()) == {"arch"}
    (lstm,) = [entry for entry in lenient.cells if entry.cell.id.startswith("torch-1.0/nn-lstm/")]
    assert (lstm.verdict, lstm.skip) == ("run", None)
    assert lstm.jit.startswith("runs by PTX JIT (first call is slow): torch 1.0.0 for CUDA 9.0 has no code made for")
    assert {entry.jit for entry in lenient.cells if entry.cell.environment == "torch-2.x"} == {""}
    assert {entry.jit for entry in strict.cells} == {""}
    assert lstm.cell in {cell for block in lenient.blocks for cell in block.cells}


def test_what_calls_cudnn_is_held_back_alone() -> None:
    text = SMALL.replace('tf-1.8: {framework: tensorflow, release: "1.8.0", image: x, cuda: "9.0"}', TF_2)
    v100 = replace(H200, name="V100", capability=(7, 0))
    words = verdicts(planned(small(text=text), gpu=v100), "tf-2.x/")
    assert words.pop("tf-2.x/cudnn-lstm") == "arch"
    assert {*words.values()} == {"run", "framework-lacks"}
    assert "arch" not in verdicts(planned(small(text=text), gpu=replace(v100, capability=(8, 0))), "tf-2.x/").values()


def test_what_the_host_holds_is_not_judged_by_its_gpu() -> None:
    matrix = small()
    as_it_is = matrix.with_as_is({"torch-1.0": matrix.environments["torch-1.0"]})
    assert set(verdicts(planned(as_it_is, gpu=H200), "torch-1.0/nn-lstm/").values()) == {"run"}
    assert set(verdicts(planned(matrix, gpu=H200), "torch-1.0/nn-lstm/").values()) != {"run"}


def test_the_reason_nearest_to_the_user_comes_first() -> None:
    gone = {name: Skip("no-engine", "none") for name in ("torch-1.0", "torch-2.x")}
    matrix = small('exclude: [{select: "torch-1.0/nn-lstm/*", reason: mine}]\n')
    assert verdicts(planned(matrix, gone, H200), "torch-") == {
        **verdicts(planned(matrix, gone, H200), "torch-2.x/"),
        "torch-1.0/nn-lstm": "excluded",
        **dict.fromkeys(
            (f"torch-1.0/{slug}" for slug in ("compiled-cell", "nn-lstm-graph", "lstm-cell-basic-graph")),
            "framework-lacks",
        ),
        **dict.fromkeys(
            (f"torch-1.0/{slug}" for slug in ("lstm-cell-basic", "lstm-cell-fused", "torchscript-cell")), "arch"
        ),
    }
    assert set(verdicts(planned(matrix, gone, H200), "torch-2.x/").values()) == {"no-engine"}


def test_one_block_a_case_with_its_runnable_cells_alone() -> None:
    result = planned(small(text=SMALL.replace("[lstm-b32-h128]", "[lstm-b32-h128, rnn-b32-h128]")))
    runs = [entry.cell for entry in result.cells if entry.verdict == "run"]
    assert [block.case_id for block in result.blocks] == ["rnn-step/lstm-b32-h128", "rnn-step/rnn-b32-h128"]
    assert [cell for block in result.blocks for cell in block.cells] == runs
    assert len(runs) < len(result.cells)
    for block in result.blocks:
        assert {cell.case_id for cell in block.cells} == {block.case_id}
        assert (block.spec, block.device) == (CASES[block.case_id], "cpu")


def test_a_plan_of_skips_alone_has_no_block_and_costs_nothing() -> None:
    gone = {name: Skip("no-engine", "none") for name in small().environments}
    result = planned(small(), gone)
    assert (result.blocks, result.seconds) == ((), 0)
    assert result.cells


def test_a_preset_chooses_cases_by_glob_phases_and_effort() -> None:
    globs = "['*/rnn-b32-*', 'rnn-step/lstm-b*-h128', 'asr-lstm/*']"
    preset = f"presets: {{p: {{select: {globs}, rounds: 9, seconds: 0.25, phases: [compile]}}}}\n"
    result = planned(small(preset), preset="p")
    assert {entry.cell.case for entry in result.cells} == {
        *("rnn-b32-h128", "rnn-b32-h512", "rnn-b32-h1024", "lstm-b32-h128", "lstm-b128-h128"),
    }
    assert {entry.cell.phase for entry in result.cells} == {"compile"}
    assert (result.measurement.rounds, result.measurement.seconds) == (9, 0.25)
    typed = planned(small(preset), preset="p", rounds=2, seconds=5.0, threads=4, seed=3).measurement
    assert (typed.rounds, typed.seconds, typed.threads, typed.seed) == (2, 5.0, 4, 3)


def test_a_preset_chooses_phases_of_a_case() -> None:
    preset = "presets: {p: {select: [rnn-step/lstm-b32-h128/train, rnn-step/rnn-b32-*], phases: [forward, train]}}\n"
    result = planned(small(preset), preset="p", environments=("np",))
    assert [(entry.cell.case, entry.cell.phase) for entry in result.cells if entry.cell.case.endswith("h128")] == [
        ("lstm-b32-h128", "train"),
        ("rnn-b32-h128", "forward"),
        ("rnn-b32-h128", "train"),
    ]


def test_a_preset_chooses_among_the_precisions_of_a_workload_and_a_request_among_all() -> None:
    text = SMALL.replace("phases: [train]", "phases: [train], precisions: [fp32, tf32]")
    text += "presets:\n  few: {select: [rnn-step/*], precisions: [int8, tf32]}\n  all: {select: [rnn-step/*]}\n"

    def precisions(**options: Any) -> list[str]:
        cells = planned(small(text=text), **options).cells
        return list(dict.fromkeys(entry.cell.precision for entry in cells if entry.cell.workload == "rnn-step"))

    assert precisions() == precisions(preset="all") == ["fp32", "tf32"]
    assert precisions(preset="few") == ["tf32"]
    assert precisions(preset="few", precisions=("bf16", "fp32")) == ["bf16", "fp32"]


def test_phases_that_are_requested_take_the_place_of_those_that_the_matrix_lists() -> None:
    text = SMALL + "presets:\n  all: {select: [rnn-step/*], phases: [forward]}\n"
    text += "  trained: {select: [{cases: [rnn-step/*], phases: [train]}]}\n"

    def phases(*requested: str, preset: str | None = None) -> list[str]:
        cells = planned(small(text=text), preset=preset, phases=requested).cells
        return list(dict.fromkeys(entry.cell.phase for entry in cells if entry.cell.workload == "rnn-step"))

    assert phases() == ["train"]
    assert phases("compile", "train") == phases("compile", "train", preset="all") == ["compile", "train"]
    assert phases("compile", "train", preset="trained") == ["train"]
    hint = r"no test matches the selection \(preset trained; phase compile"
    with pytest.raises(NothingSelectedError, match=hint):
        phases("compile", preset="trained")


def test_a_selector_adds_precisions_to_those_of_its_preset_on_the_devices_that_it_names() -> None:
    extra = "{cases: [rnn-step/*/train], precisions: [fp16, int8], devices: [cuda]}"
    text = SMALL.replace("phases: [train]", "phases: [forward, train], precisions: [fp32, fp16]")
    matrix = small(f"presets: {{p: {{select: [rnn-step/*, {extra}], precisions: [fp32]}}}}\n", text)

    def measured(**changes: Any) -> set[tuple[str, str]]:
        return {(entry.cell.phase, entry.cell.precision) for entry in planned(matrix, preset="p", **changes).cells}

    fp32 = {("forward", "fp32"), ("train", "fp32")}
    assert measured() == fp32
    assert measured(gpu=H200) == fp32 | {("train", "fp16")}
    assert measured(gpu=H200, precisions=("fp16",)) == {("forward", "fp16"), ("train", "fp16")}


@pytest.mark.whole_matrix
@pytest.mark.parametrize(("gpu", "environments"), [(None, 10), (H200, 6)])
def test_each_test_of_the_quick_preset_is_compared_with_another_release(gpu: Gpu | None, environments: int) -> None:
    cells = [entry.cell for entry in shipped_plan("quick", gpu).cells if entry.skip is None]
    frameworks = {name: each.framework for name, each in shipped().environments.items()}
    releases = collections.defaultdict(set)
    for cell in cells:
        releases[frameworks[cell.environment], without_environment(cell.id)].add(cell.environment)
    assert [test for test, names in releases.items() if len(names) == 1] == []
    assert len({cell.environment for cell in cells}) == environments
    assert {frameworks[cell.environment] for cell in cells} >= {"torch", "tensorflow", "jax"}


@pytest.mark.whole_matrix
@pytest.mark.parametrize("preset", ["heritage", "standard"])
def test_shipped_presets_have_networks_in_16_bits_on_a_gpu_alone(preset: str) -> None:
    def of_networks(gpu: Gpu | None) -> set[str]:
        cells = (entry.cell for entry in shipped_plan(preset, gpu).cells if entry.skip is None)
        return {cell.precision for cell in cells if "cell" in CASES[cell.case_id]}

    assert of_networks(None) == {"fp32"}
    assert of_networks(H200) >= {"fp32", "fp16", "bf16"}


@pytest.mark.whole_matrix
def test_the_published_protocol_is_in_the_id_and_of_what_was_published_alone() -> None:
    result = shipped_plan("published")
    assert {entry.cell.protocol for entry in result.cells if entry.cell.phase != "compile"} == {"published"}
    assert {entry.cell.phase for entry in result.cells} == {
        *("compile", "forward+published", "gradient+published", "train+published"),
        *("backward-weights+published", "backward-inputs+published"),
    }
    assert {entry.cell.workload for entry in result.cells if entry.cell.phase == "compile"} == {
        "rnn-step",
        "rnn-sequence",
    }
    cases = collections.Counter(case.partition("/")[0] for case in {entry.cell.case_id for entry in result.cells})
    assert cases == {
        "rnn-step": 12,
        "rnn-sequence": 10,
        "asr-lstm": 4,
        "lm-lstm": 4,
        "deepbench-gemm": 160 + 75 + 13,
        "deepbench-conv": 94 + 107 + 16,
        "deepbench-rnn": 53 + 69 + 3,
        "deepbench-sparse": 24 + 8,
        "deepbench-allreduce": 35,
    }
    slugs = {
        case: {entry.cell.implementation for entry in result.cells if entry.cell.case == case} for case in CASE_NAMES
    }
    assert [len(slugs[case]) for case in CASE_NAMES] == [10, 10, 5, 4]
    typed = planned(shipped(), workloads=("asr-lstm",), protocol="published", environments=("torch-2.x",))
    assert {entry.cell.phase for entry in typed.cells} == {"train+published"}


def test_what_would_not_fit_is_a_skip_with_the_figure() -> None:
    heavy = "rnn-step: {cases: [lstm-b128-h1024]"
    text = SMALL.replace("rnn-step: {cases: [lstm-b32-h128]", heavy)
    little = planned(small(text=text), memory=1 << 28, environments=("np",)).cells[0].skip
    assert little is not None
    assert little.code == "no-memory"
    assert re.fullmatch(r"it needs about [0-9]+ MiB of memory; 256 MiB are available", little.reason)
    short = planned(small("measure: {timeout: 1}\n", text=text), environments=("np",)).cells[0].skip
    assert short is not None
    assert short.code == "over-budget"
    assert re.fullmatch(r"one round would take about [0-9]+ s; the time-out is 1 s", short.reason)
    assert planned(small(text=text), memory=1 << 34, environments=("np",)).cells[0].skip is None


def test_without_a_preset_the_matrix_says_how_to_measure() -> None:
    measurement = planned(small("measure: {rounds: 5, seconds: 0.5, timeout: 30, restart: 4}\n")).measurement
    assert (measurement.rounds, measurement.seconds, measurement.timeout, measurement.restart) == (5, 0.5, 30.0, 4)


def test_workloads_narrow_and_chosen_narrows_further() -> None:
    only = planned(shipped(), workloads=("asr-lstm",))
    assert {entry.cell.workload for entry in only.cells} == {"asr-lstm"}
    few = planned(shipped(), workloads=("asr-lstm",), chosen=lambda cell: "/nn-lstm/" in cell)
    assert [entry.cell for entry in few.cells] == [
        entry.cell for entry in only.cells if entry.cell.implementation == "nn-lstm"
    ]


def test_nothing_selected_names_the_selection() -> None:
    with pytest.raises(NothingSelectedError, match="workload asr-lstm"):
        planned(small(), workloads=("asr-lstm",))
    with pytest.raises(NothingSelectedError, match=r"environment np, tf-1\.8"):
        planned(small(), environments=("np", "tf-1.8"), chosen=lambda _: False)
    with pytest.raises(NothingSelectedError) as error:
        planned(small(), environments=("np",), chosen=lambda _: False, cell_selectors=("np/nn-lstmm",))
    (problem,) = error.value.problems
    assert problem.message == "no test matches the selection (selector np/nn-lstmm)"
    assert problem.hint == (
        "a test is environment/implementation/workload/case/phase/precision: `runner list tests np` lists them"
    )


@pytest.mark.whole_matrix
def test_estimates_are_positive_and_grow_with_rounds_and_seconds() -> None:
    assert all(entry.seconds > 0 for entry in shipped_plan("standard").cells)
    few = ("torch-2.x", "torch-1.0", "tf-2.x", "tf-1.8")
    planned_few = functools.partial(planned, shipped(), environments=few, workloads=("rnn-step", "asr-lstm"))
    base = planned_few(rounds=1, seconds=1.0)
    assert base.seconds == pytest.approx(sum(entry.seconds for entry in base.cells if entry.skip is None))
    two, three = (planned_few(rounds=rounds, seconds=1.0).seconds for rounds in (2, 3))
    assert three - two == pytest.approx(two - base.seconds)
    assert three < 2.9 * base.seconds  # results are checked in the first round
    assert planned_few(rounds=1, seconds=60.0).seconds > base.seconds
    by_case = {entry.cell.case: entry.seconds for entry in base.cells}
    assert by_case["1x320-ce-long"] > by_case["1x320-ce-short"]
    assert by_case["lstm-b128-h1024"] > by_case["lstm-b32-h128"]


@pytest.mark.whole_matrix
@pytest.mark.parametrize("gpu", [None, H200], ids=["cpu", "gpu"])
@pytest.mark.parametrize("preset", [*shipped().presets, *slow(None)])
def test_the_shipped_matrix_plans_with_known_codes_and_unique_ids(preset: str | None, gpu: Gpu | None) -> None:
    result = shipped_plan(preset, gpu)
    ids = [entry.cell.id for entry in result.cells]
    assert len(ids) == len(set(ids))
    assert {entry.skip.code for entry in result.cells if entry.skip} <= set(SKIP_CODES)
    assert all(entry.skip.reason for entry in result.cells if entry.skip)
    if preset not in ("quick", "published", "networks"):  # they select environments
        assert {entry.cell.environment for entry in result.cells} == set(shipped().environments)


def test_json_has_the_keys_of_the_design_and_can_be_written() -> None:
    result = planned(small('exclude: [{select: "np/*", reason: mine}]\n'), rounds=2, seconds=1.0, seed=5)
    written = plan_document(result)
    effort = {"rounds": 2, "max_rounds": 2, "budget": None, "seconds": 1.0, "threads": 1, "seed": 5}
    head = {name: written[name] for name in written if name != "cells"}
    assert head == {"version": 1, "device": "cpu", "backend": "venv", **effort}
    assert [entry["id"] for entry in written["cells"]] == [entry.cell.id for entry in result.cells]
    assert all(set(entry) == {*KEYS, "framework", "kind"} for entry in written["cells"])
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    first = written["cells"][0]
    assert (first["verdict"], first["code"], first["reason"]) == ("skip", "excluded", "mine")
    assert (first["environment"], first["framework"], first["kind"]) == ("np", "numpy", "flexible")
    runs = [entry for entry in written["cells"] if entry["verdict"] == "run"]
    assert {(entry["code"], entry["reason"]) for entry in runs} == {(None, None)}


def test_json_has_the_source_of_a_refusal_the_nearest_and_what_runs_by_jit() -> None:
    result = planned(small(), gpu=H200, rounds=2, seconds=1.0)
    written = {entry["id"].split("/rnn-step")[0]: entry for entry in plan_document(result)["cells"]}
    refused = written["torch-1.0/nn-lstm"]
    assert (refused["code"], refused["nearest"], refused["jit"]) == ("arch", ["torch-2.x", "torch==2.0.1+cu118"], None)
    assert "fatbin headers" in refused["source"]
    assert (written["torch-2.x/nn-lstm"]["source"], written["torch-2.x/nn-lstm"]["nearest"]) == (None, [])
    assert written["torch-1.0/compiled-cell"]["source"] is None
    lenient = planned(small(), gpu=H200, allow_jit=True)
    by_jit = {entry["environment"] for entry in plan_document(lenient)["cells"] if entry["jit"]}
    assert by_jit == {"torch-1.0", "tf-1.8"}
    for made in (result, lenient):
        cases = {block.case_id: block.spec for block in made.blocks}
        document = json.loads(json.dumps(plan_document(made)))
        again = read_plan(document, cases, made.measurement, Past())
        assert [(entry.skip, entry.jit) for entry in again.cells] == [(entry.skip, entry.jit) for entry in made.cells]


def test_the_table_names_what_is_slow_at_first_and_the_nearest_that_runs() -> None:
    text = plan_table(planned(small(), gpu=H200), 400, why=True)
    assert "; nearest that runs: torch-2.x or torch==2.0.1+cu118" in text
    assert "slow at the first call" not in text
    lines = plan_table(planned(small(), gpu=H200, allow_jit=True), 400).splitlines()
    begin = lines.index("slow at the first call:")
    assert [line.split()[:2] for line in lines[begin + 1 : begin + 3]] == [["jit", "torch-1.0"], ["jit", "tf-1.8"]]


@pytest.mark.parametrize("width", [60, 80, 120, 160])
@pytest.mark.parametrize("why", [False, True])
@pytest.mark.parametrize("colour", [False, True])
def test_the_table_fits_its_width(width: int, *, why: bool, colour: bool) -> None:
    text = plan_table(planned(small()), width, why=why, colour=colour)
    assert ("\x1b[" in text) is colour
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= width


def test_the_time_of_a_plan_contains_its_controls() -> None:
    pair = planned(small(), environments=("torch-1.0", "torch-2.x"))
    with_them, without = (plan_table(pair, 400, controls=controls) for controls in (True, False))
    assert f"about {duration(with_controls(pair).seconds)} in 3 rounds, at most " in with_them
    assert f"about {duration(pair.seconds)} in 3 rounds, at most " in without
    assert extent(with_controls(pair), controls=True) == with_them.splitlines()[-1]


def test_environments_of_which_nothing_runs_are_named_below_the_grid() -> None:
    text = SMALL.replace('tf-1.8: {framework: tensorflow, release: "1.8.0", image: x, cuda: "9.0"}', TF_2)
    v100 = replace(H200, name="V100", capability=(7, 0))
    plan = planned(small(text=text), gpu=v100)
    lines = plan_table(plan, 400).splitlines()
    running = dict.fromkeys(entry.cell.environment for entry in plan.cells if entry.skip is None)
    others = dict.fromkeys(entry.cell.environment for entry in plan.cells if entry.cell.environment not in running)
    assert f"nothing runs in {', '.join(others)}" in lines
    assert [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in running] == list(running)
    assert not any(line.startswith(f"{name} ") for name in others for line in lines)


def test_the_table_names_an_environment_alone_where_nothing_of_it_runs() -> None:
    text = SMALL.replace('tf-1.8: {framework: tensorflow, release: "1.8.0", image: x, cuda: "9.0"}', TF_2)
    v100 = replace(H200, name="V100", capability=(7, 0))
    lines = [
        " ".join(line.split()[:2])
        for line in plan_table(planned(small(text=text), gpu=v100), 400, why=True).splitlines()
    ]
    assert "arch torch-2.x" in lines
    assert "arch tf-2.x/cudnn-lstm" in lines


def test_a_kind_may_change_with_the_release() -> None:
    lines = (
        '  k-2: {framework: keras, release: "2.1.6", image: x}\n  k-3: {framework: keras, release: "3.*", image: x}\n'
    )
    result = planned(parse(f"{HEAD}environments:\n{lines}".encode(), "m.yaml"))
    kinds = {entry.cell.environment: entry.kind for entry in result.cells if entry.cell.implementation == "keras-lstm"}
    assert kinds == {"k-2": "flexible", "k-3": "vendor"}
    assert {entry.kind for entry in planned(small()).cells} == {"flexible", "fused", "vendor"}


@pytest.mark.whole_matrix
def test_ten_thousand_cells_are_planned() -> None:
    names = [f"torch-1.0-{number}" for number in range(250)]
    lines = "".join(f'  {name}: {{framework: torch, release: "1.0.0", image: x, cuda: "9.0"}}\n' for name in names)
    text = f"version: 1\nworkloads: {{rnn-step: {{}}, asr-lstm: {{}}}}\nenvironments:\n{lines}"
    result = planned(parse(text.encode(), "m.yaml"))
    assert len(result.cells) >= 10_000
    assert len({entry.cell.id for entry in result.cells}) == len(result.cells)
    counts = collections.Counter(entry.cell.environment for entry in result.cells)
    assert set(counts) == set(names)
    assert len(set(counts.values())) == 1


def test_an_implementation_is_skipped_where_the_lock_lacks_a_package_that_it_needs() -> None:
    matrix = parse(
        f'{HEAD}environments:\n  jax: {{framework: jax, release: "0.4.31", image: x, cuda: "13.0"}}\n'.encode(),
        "m.yaml",
    )
    request = Request(environments=("jax",), device="cpu")
    skips = {}
    for name, locked in {"without": {"jax"}, "with": {"jax", "optax"}}.items():
        cells = plan(matrix, request, {}, locked={"jax": frozenset(locked)}).cells
        skips[name] = {entry.cell.implementation: entry.skip for entry in cells}
    skips["not known"] = {entry.cell.implementation: entry.skip for entry in plan(matrix, request, {}).cells}
    reason = "jax-scan needs optax, which the lock of jax has not: add optax to its requirements"
    assert skips["without"]["jax-scan"] == Skip("framework-lacks", reason)
    assert skips["with"]["jax-scan"] is skips["not known"]["jax-scan"] is None
