"""What is to be measured, what cannot be and why; decided from values alone."""

import collections
import functools
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from runner.catalog.cases import CASES
from runner.core.errors import NothingSelectedError
from runner.core.model import SKIP_CODES, Gpu, Past, Plan, Request, Skip
from runner.matrix import Matrix, load, parse
from runner.plan.document import plan_json, read_plan
from runner.plan.planner import plan
from runner.report.plan import plan_table

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
    *("verdict", "code", "reason", "seconds", "source", "nearest", "jit"),
}


def small(extra: str = "", text: str = SMALL) -> Matrix:
    return parse((text + extra).encode(), "m.yaml")


def planned(matrix: Matrix, unavailable: dict[str, Skip] | None = None, gpu: Gpu | None = None, **changes: Any) -> Plan:
    request = Request(environments=tuple(matrix.environments), device="cuda" if gpu else "cpu")
    return plan(matrix, replace(request, **changes), unavailable or {}, gpu)


def verdicts(found: Plan, part: str) -> dict[str, str]:
    """Return environment/implementation -> skip code or ``run``, of the ids that hold ``part``."""
    return {
        f"{one.cell.environment}/{one.cell.implementation}": one.skip.code if one.skip else "run"
        for one in found.cells
        if part in one.cell.id
    }


@functools.cache
def shipped() -> Matrix:
    return load(Path(__file__).parents[3] / "matrix.yaml")


def test_ids_in_the_order_of_the_file() -> None:
    found = planned(small(), workloads=("rnn-step",), environments=("np", "tf-1.8"))
    ids = [one.cell.id for one in found.cells]
    assert ids[0] == "np/numpy-loop/rnn-step/lstm-b32-h128/train/fp32"
    assert ids[1].startswith("tf-1.8/")
    assert all(one.endswith("/rnn-step/lstm-b32-h128/train/fp32") for one in ids)


def test_cases_come_first_then_environments_then_phases_then_precisions() -> None:
    text = f"{HEAD}environments:\n{NUMPY}".replace(
        "[lstm-b32-h128], phases: [train]",
        "[lstm-b32-h128, rnn-b32-h128], phases: [train, forward], precisions: [fp32, tf32]",
    )
    assert [one.cell.id.removeprefix("np/numpy-loop/rnn-step/") for one in planned(small(text=text)).cells] == [
        f"{case}-b32-h128/{phase}/{precision}"
        for case in ("lstm", "rnn")
        for phase in ("train", "forward")
        for precision in ("fp32", "tf32")
    ]


def test_a_phase_given_twice_is_measured_once() -> None:
    text = SMALL.replace("phases: [train]", "phases: [train, train], precisions: [fp32, fp32]")
    ids = [one.cell.id for one in planned(small(text=text)).cells]
    assert len(ids) == len(set(ids))


def test_only_implementations_of_the_case_s_cell_are_listed() -> None:
    found = verdicts(planned(small(text=SMALL.replace("lstm-b32-h128", "rnn-b32-h128"))), "torch-2.x/")
    assert "torch-2.x/nn-rnn" in found
    assert "torch-2.x/nn-lstm" not in found


def test_excluded_with_the_reason_of_the_file() -> None:
    matrix = small('exclude: [{select: "torch-*/nn-lstm/*", reason: too well known}]\n')
    found = {one.cell.id.split("/rnn-step")[0]: one.skip for one in planned(matrix).cells}
    assert found["torch-2.x/nn-lstm"] == found["torch-1.0/nn-lstm"] == Skip("excluded", "too well known")
    assert found["np/numpy-loop"] is None


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
        ("{environments: [np], precisions: [int8]}", set()),
    ],
)
def test_a_preset_includes_what_its_selectors_fit(selector: str, selected: set[str]) -> None:
    matrix = small(f"presets: {{some: {{select: [{selector}]}}}}\n")
    if not selected:
        with pytest.raises(NothingSelectedError, match="preset some"):
            planned(matrix, preset="some")
        return
    cells = [planned_cell.cell for planned_cell in planned(matrix, preset="some").cells]
    shown = {f"{cell.environment}/{cell.implementation}" for cell in cells}
    assert shown & {"np/numpy-loop", "torch-1.0/nn-lstm", "torch-2.x/nn-lstm"} == selected


def test_what_a_preset_does_not_include_is_not_in_the_plan() -> None:
    matrix = small("presets: {some: {select: [{environments: [np]}]}}\n")
    assert {planned_cell.cell.environment for planned_cell in planned(matrix, preset="some").cells} == {"np"}


def test_the_framework_lacks_what_came_later() -> None:
    found = {one.cell.id.split("/rnn-step")[0]: one.skip for one in planned(small()).cells}
    assert found["torch-1.0/compiled-cell"] == Skip("framework-lacks", "compiled-cell came with 2.0")
    assert found["torch-2.x/compiled-cell"] is None


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
    found = planned(small(), {"torch-1.0": why})
    assert {one.skip for one in found.cells if one.cell.id.startswith("torch-1.0/nn-")} == {why}
    assert "torch-1.0" not in {name for block in found.blocks for name in block.environments}


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
    assert set(verdicts(strict, "torch-1.0/nn-lstm").values()) == {"arch"}
    (found,) = [one for one in lenient.cells if one.cell.id.startswith("torch-1.0/nn-lstm")]
    assert (found.verdict, found.skip) == ("run", None)
    assert found.jit.startswith("runs by PTX JIT (first call is slow): torch 1.0.0 for CUDA 9.0 has no code made for")
    assert {one.jit for one in lenient.cells if one.cell.environment == "torch-2.x"} == {""}
    assert {one.jit for one in strict.cells} == {""}
    assert found.cell in {cell for block in lenient.blocks for cell in block.cells}


def test_what_calls_cudnn_is_held_back_alone() -> None:
    text = SMALL.replace('tf-1.8: {framework: tensorflow, release: "1.8.0", image: x, cuda: "9.0"}', TF_2)
    v100 = replace(H200, name="V100", capability=(7, 0))
    found = verdicts(planned(small(text=text), gpu=v100), "tf-2.x/")
    assert found.pop("tf-2.x/cudnn-lstm") == "arch"
    assert {*found.values()} == {"run", "framework-lacks"}
    assert "arch" not in verdicts(planned(small(text=text), gpu=replace(v100, capability=(8, 0))), "tf-2.x/").values()


def test_what_the_host_holds_is_not_judged_by_its_gpu() -> None:
    assert set(verdicts(planned(small(), gpu=H200, backend="host"), "torch-1.0/nn-").values()) == {"run"}


def test_the_reason_nearest_to_the_user_comes_first() -> None:
    gone = {name: Skip("no-engine", "none") for name in ("torch-1.0", "torch-2.x")}
    matrix = small('exclude: [{select: "torch-1.0/nn-lstm/*", reason: mine}]\n')
    assert verdicts(planned(matrix, gone, H200), "torch-") == {
        **verdicts(planned(matrix, gone, H200), "torch-2.x/"),
        "torch-1.0/nn-lstm": "excluded",
        "torch-1.0/compiled-cell": "framework-lacks",
        **dict.fromkeys(
            (f"torch-1.0/{slug}" for slug in ("lstm-cell-basic", "lstm-cell-fused", "torchscript-cell")), "arch"
        ),
    }
    assert set(verdicts(planned(matrix, gone, H200), "torch-2.x/").values()) == {"no-engine"}


def test_one_block_a_case_with_its_runnable_cells_alone() -> None:
    found = planned(small(text=SMALL.replace("[lstm-b32-h128]", "[lstm-b32-h128, rnn-b32-h128]")))
    runs = [one.cell for one in found.cells if one.verdict == "run"]
    assert [block.case_id for block in found.blocks] == ["rnn-step/lstm-b32-h128", "rnn-step/rnn-b32-h128"]
    assert [cell for block in found.blocks for cell in block.cells] == runs
    assert len(runs) < len(found.cells)
    for block in found.blocks:
        assert {cell.case_id for cell in block.cells} == {block.case_id}
        assert (block.spec, block.device) == (CASES[block.case_id], "cpu")


def test_a_plan_of_skips_alone_has_no_block_and_costs_nothing() -> None:
    gone = {name: Skip("no-engine", "none") for name in small().environments}
    found = planned(small(), gone)
    assert (found.blocks, found.seconds) == ((), 0)
    assert found.cells


def test_a_preset_chooses_cases_by_glob_phases_and_effort() -> None:
    globs = "['*/rnn-b32-*', 'rnn-step/lstm-b*-h128', 'asr-lstm/*']"
    preset = f"presets: {{p: {{select: {globs}, rounds: 9, seconds: 0.25, phases: [compile]}}}}\n"
    found = planned(small(preset), preset="p")
    assert {one.cell.case for one in found.cells} == {
        *("rnn-b32-h128", "rnn-b32-h512", "rnn-b32-h1024", "lstm-b32-h128", "lstm-b128-h128"),
    }
    assert {one.cell.phase for one in found.cells} == {"compile"}
    assert (found.measurement.rounds, found.measurement.seconds) == (9, 0.25)
    typed = planned(small(preset), preset="p", rounds=2, seconds=5.0, threads=4, seed=3).measurement
    assert (typed.rounds, typed.seconds, typed.threads, typed.seed) == (2, 5.0, 4, 3)


def test_a_preset_chooses_phases_of_a_case() -> None:
    preset = "presets: {p: {select: [rnn-step/lstm-b32-h128/train, rnn-step/rnn-b32-*], phases: [forward, train]}}\n"
    found = planned(small(preset), preset="p", environments=("np",))
    assert [(one.cell.case, one.cell.phase) for one in found.cells if one.cell.case.endswith("h128")] == [
        ("lstm-b32-h128", "train"),
        ("rnn-b32-h128", "forward"),
        ("rnn-b32-h128", "train"),
    ]


def test_a_preset_chooses_among_the_precisions_of_a_workload_and_a_request_among_all() -> None:
    text = SMALL.replace("phases: [train]", "phases: [train], precisions: [fp32, tf32]")
    text += "presets:\n  few: {select: [rnn-step/*], precisions: [int8, tf32]}\n  all: {select: [rnn-step/*]}\n"

    def precisions(**asked: Any) -> list[str]:
        cells = planned(small(text=text), **asked).cells
        return list(dict.fromkeys(one.cell.precision for one in cells if one.cell.workload == "rnn-step"))

    assert precisions() == precisions(preset="all") == ["fp32", "tf32"]
    assert precisions(preset="few") == ["tf32"]
    assert precisions(preset="few", precisions=("bf16", "fp32")) == ["bf16", "fp32"]


def test_the_published_protocol_is_in_the_id_and_of_what_was_published_alone() -> None:
    found = planned(shipped(), preset="published")
    assert {one.cell.protocol for one in found.cells if one.cell.phase != "compile"} == {"published"}
    assert {one.cell.phase for one in found.cells} == {
        *("compile", "forward+published", "gradient+published", "train+published"),
        *("backward-weights+published", "backward-inputs+published"),
    }
    assert {one.cell.workload for one in found.cells if one.cell.phase == "compile"} == {"rnn-step", "rnn-sequence"}
    cases = collections.Counter(case.partition("/")[0] for case in {one.cell.case_id for one in found.cells})
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
    slugs = {case: {one.cell.implementation for one in found.cells if one.cell.case == case} for case in CASE_NAMES}
    assert [len(slugs[case]) for case in CASE_NAMES] == [10, 10, 5, 4]
    typed = planned(shipped(), workloads=("asr-lstm",), protocol="published", environments=("torch-2.x",))
    assert {one.cell.phase for one in typed.cells} == {"train+published"}


def test_what_would_not_fit_is_a_skip_with_the_figure() -> None:
    heavy = "rnn-step: {cases: [lstm-b128-h1024]"
    text = SMALL.replace("rnn-step: {cases: [lstm-b32-h128]", heavy)
    little = planned(small(text=text), memory=1 << 28, environments=("np",)).cells[0].skip
    assert little is not None
    assert little.code == "no-memory"
    assert re.fullmatch(r"it holds about [0-9]+ MiB at once, 256 MiB are there", little.reason)
    short = planned(small("measure: {timeout: 1}\n", text=text), environments=("np",)).cells[0].skip
    assert short is not None
    assert short.code == "over-budget"
    assert re.fullmatch(r"a round takes about [0-9]+ s here, 1 s are allowed", short.reason)
    assert planned(small(text=text), memory=1 << 34, environments=("np",)).cells[0].skip is None


def test_without_a_preset_the_matrix_says_how_to_measure() -> None:
    found = planned(small("measure: {rounds: 5, seconds: 0.5, timeout: 30, restart: 4}\n")).measurement
    assert (found.rounds, found.seconds, found.timeout, found.restart) == (5, 0.5, 30.0, 4)


def test_workloads_narrow_and_chosen_narrows_further() -> None:
    only = planned(shipped(), workloads=("asr-lstm",))
    assert {one.cell.workload for one in only.cells} == {"asr-lstm"}
    few = planned(shipped(), workloads=("asr-lstm",), chosen=lambda cell: "/nn-lstm/" in cell)
    assert [one.cell for one in few.cells] == [one.cell for one in only.cells if one.cell.implementation == "nn-lstm"]


def test_nothing_selected_names_the_selection() -> None:
    with pytest.raises(NothingSelectedError, match="workload asr-lstm"):
        planned(small(), workloads=("asr-lstm",))
    with pytest.raises(NothingSelectedError, match=r"environment np, tf-1\.8"):
        planned(small(), environments=("np", "tf-1.8"), chosen=lambda _: False)


def test_estimates_are_positive_and_grow_with_rounds_and_seconds() -> None:
    base = planned(shipped(), rounds=1, seconds=1.0)
    assert all(one.seconds > 0 for one in base.cells)
    assert base.seconds == pytest.approx(sum(one.seconds for one in base.cells if one.skip is None))
    assert planned(shipped(), rounds=3, seconds=1.0).seconds == pytest.approx(3 * base.seconds)
    assert planned(shipped(), rounds=1, seconds=60.0).seconds > base.seconds
    by_case = {one.cell.case: one.seconds for one in base.cells}
    assert by_case["1x320-ce-long"] > by_case["1x320-ce-short"]
    assert by_case["lstm-b128-h1024"] > by_case["lstm-b32-h128"]


def test_the_shipped_matrix_plans_with_known_codes_and_unique_ids() -> None:
    for gpu in (None, H200):
        for preset in (None, *shipped().presets):
            found = planned(shipped(), gpu=gpu, preset=preset)
            ids = [one.cell.id for one in found.cells]
            assert len(ids) == len(set(ids))
            assert {one.skip.code for one in found.cells if one.skip} <= set(SKIP_CODES)
            assert all(one.skip.reason for one in found.cells if one.skip)
            if preset != "published":
                assert {one.cell.environment for one in found.cells} == set(shipped().environments)


def test_json_has_the_keys_of_the_design_and_can_be_written() -> None:
    found = planned(small('exclude: [{select: "np/*", reason: mine}]\n'), rounds=2, seconds=1.0, seed=5)
    written = plan_json(found)
    effort = {"rounds": 2, "max_rounds": 2, "budget": None, "seconds": 1.0, "threads": 1, "seed": 5}
    head = {name: written[name] for name in written if name != "cells"}
    assert head == {"version": 1, "device": "cpu", "backend": "venv", **effort}
    assert [one["id"] for one in written["cells"]] == [one.cell.id for one in found.cells]
    assert all(set(one) == {*KEYS, "framework", "kind"} for one in written["cells"])
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    first = written["cells"][0]
    assert (first["verdict"], first["code"], first["reason"]) == ("skip", "excluded", "mine")
    assert (first["environment"], first["framework"], first["kind"]) == ("np", "numpy", "flexible")
    runs = [one for one in written["cells"] if one["verdict"] == "run"]
    assert {(one["code"], one["reason"]) for one in runs} == {(None, None)}


def test_json_has_the_source_of_a_refusal_the_nearest_and_what_runs_by_jit() -> None:
    found = planned(small(), gpu=H200, rounds=2, seconds=1.0)
    written = {one["id"].split("/rnn-step")[0]: one for one in plan_json(found)["cells"]}
    refused = written["torch-1.0/nn-lstm"]
    assert (refused["code"], refused["nearest"], refused["jit"]) == ("arch", ["torch-2.x", "torch==2.0.1+cu118"], None)
    assert "fatbin headers" in refused["source"]
    assert (written["torch-2.x/nn-lstm"]["source"], written["torch-2.x/nn-lstm"]["nearest"]) == (None, [])
    assert written["torch-1.0/compiled-cell"]["source"] is None
    lenient = planned(small(), gpu=H200, allow_jit=True)
    by_jit = {one["environment"] for one in plan_json(lenient)["cells"] if one["jit"]}
    assert by_jit == {"torch-1.0", "tf-1.8"}
    for made in (found, lenient):
        cases = {block.case_id: block.spec for block in made.blocks}
        document = json.loads(json.dumps(plan_json(made)))
        again = read_plan(document, cases, asdict(made.measurement), Past())
        assert [(one.skip, one.jit) for one in again.cells] == [(one.skip, one.jit) for one in made.cells]


def test_the_table_names_what_is_slow_at_first_and_the_nearest_that_runs() -> None:
    text = plan_table(planned(small(), gpu=H200), 400)
    assert "; nearest that runs: torch-2.x or torch==2.0.1+cu118" in text
    assert "slow at the first call" not in text
    lines = plan_table(planned(small(), gpu=H200, allow_jit=True), 400).splitlines()
    begin = lines.index("slow at the first call:")
    assert [line.split()[:2] for line in lines[begin + 1 : begin + 3]] == [["jit", "torch-1.0"], ["jit", "tf-1.8"]]


def test_the_table_names_an_environment_alone_where_nothing_of_it_runs() -> None:
    text = SMALL.replace('tf-1.8: {framework: tensorflow, release: "1.8.0", image: x, cuda: "9.0"}', TF_2)
    v100 = replace(H200, name="V100", capability=(7, 0))
    lines = [" ".join(line.split()[:2]) for line in plan_table(planned(small(text=text), gpu=v100), 400).splitlines()]
    assert "arch torch-2.x" in lines
    assert "arch tf-2.x/cudnn-lstm" in lines


def test_a_kind_may_change_with_the_release() -> None:
    lines = (
        '  k-2: {framework: keras, release: "2.1.6", image: x}\n  k-3: {framework: keras, release: "3.*", image: x}\n'
    )
    found = planned(parse(f"{HEAD}environments:\n{lines}".encode(), "m.yaml"))
    kinds = {one.cell.environment: one.kind for one in found.cells if one.cell.implementation == "keras-lstm"}
    assert kinds == {"k-2": "flexible", "k-3": "vendor"}
    assert {one.kind for one in planned(small()).cells} == {"flexible", "fused", "vendor"}


def test_ten_thousand_cells_are_planned() -> None:
    names = [f"torch-1.0-{number}" for number in range(250)]
    lines = "".join(f'  {name}: {{framework: torch, release: "1.0.0", image: x, cuda: "9.0"}}\n' for name in names)
    text = f"version: 1\nworkloads: {{rnn-step: {{}}, asr-lstm: {{}}}}\nenvironments:\n{lines}"
    found = planned(parse(text.encode(), "m.yaml"))
    assert len(found.cells) >= 10_000
    assert len({one.cell.id for one in found.cells}) == len(found.cells)
    counts = collections.Counter(one.cell.environment for one in found.cells)
    assert set(counts) == set(names)
    assert len(set(counts.values())) == 1
