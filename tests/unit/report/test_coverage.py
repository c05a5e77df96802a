"""The coverage tables agree with the plan, and refuse a plan that they cannot show."""

import functools
import re
import runpy
from collections.abc import Mapping
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.core.model import SKIP_CODES, Cell, Gpu, Measurement, Plan, PlannedCell, Request, Skip
from runner.matrix import FRAMEWORKS, Matrix, load, parse
from runner.plan.document import plan_document
from runner.plan.planner import plan
from runner.report.coverage import LOCAL_CODES, REASON_OF_CODE, REASONS, coverage

ROOT = Path(__file__).parents[3]
SMALL = """\
version: 1
workloads: {rnn-step: {cases: [lstm-b32-h128, gru-b32-h128], phases: [train]}, asr-lstm: {cases: [1x320-ce-short]}}
environments:
  torch-1.0: {framework: torch, release: "1.0.0", image: x, cuda: "9.0"}
  torch-2.x: {framework: torch, release: "2.*", image: x, cuda: "13.0"}
  tf-1.8: {framework: tensorflow, release: "1.8.0", image: x, cuda: "9.0"}
"""
OLD_GPU = Gpu(uuid="GPU-1", name="H200", capability=(9, 0), driver="384.81")


def small() -> Matrix:
    return parse(SMALL.encode(), "m.yaml")


def planned(
    skips: Mapping[str, Skip] | None = None, chosen: str = "", gpu: Gpu | None = None, backend: str = "docker"
) -> Plan:
    matrix = small()
    request = Request(
        environments=tuple(matrix.environments),
        device="cuda" if gpu else "cpu",
        backend=backend,
        chosen=lambda cell: bool(re.search(chosen, cell)),
    )
    return plan(matrix, request, skips or {}, gpu)


def made(*cells: tuple[str, str | None]) -> Plan:
    """Return a plan of one workload and PyTorch: a cell for each (environment, skip code)."""
    return Plan(
        device="cpu",
        backend="docker",
        measurement=Measurement(),
        cells=tuple(
            PlannedCell(
                cell=Cell(
                    environment=name,
                    implementation="nn-lstm",
                    workload="rnn-step",
                    case="lstm-b32-h128",
                    phase=f"train{number}",
                ),
                device="cpu",
                skip=Skip(code, "because") if code else None,
            )
            for number, (name, code) in enumerate(cells)
        ),
        blocks=(),
        frameworks={name: "torch" for name, _ in cells},
    )


def tables(text: str) -> list[dict[tuple[str, str], str]]:
    """Return (row, column) -> field of each Markdown table."""
    parsed = []
    for block in re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE):
        lines = [[field.strip() for field in line.strip("|").split("|")] for line in block.strip().splitlines()]
        head, _, *rows = lines
        parsed.append(
            {(row[0], column): field for row in rows for column, field in zip(head[1:], row[1:], strict=True)}
        )
    return parsed


def by_hand(plan: Plan, of: str) -> dict[tuple[str, str], str]:
    """Return (workload, framework or environment) -> word, from what ``runner plan --format json`` prints."""
    codes: dict[tuple[str, str], set[str | None]] = {}
    for cell in plan_document(plan)["cells"]:
        codes.setdefault((cell["workload"], cell[of]), set()).add(cell["code"])
    order = (None, "needs-gpu", "image-unavailable", "framework-lacks")
    return {field: next(code for code in order if code in seen) or "runs" for field, seen in codes.items()}


def test_one_cell_that_runs_is_enough() -> None:
    assert tables(coverage(planned({"torch-1.0": Skip("image-unavailable", "no")})))[0] == {
        (workload, framework): "runs" for workload in ("rnn-step", "asr-lstm") for framework in ("torch", "tensorflow")
    }


@pytest.mark.parametrize(
    ("codes", "word"),
    [
        (("framework-lacks",), "framework-lacks"),
        (("framework-lacks", "image-unavailable"), "image-unavailable"),
        (("framework-lacks", "image-unavailable", "needs-gpu"), "needs-gpu"),
        (("needs-gpu", "image-unavailable", None), "runs"),
        (("no-engine",), "image-unavailable"),
        (("arch", "image-unavailable"), "needs-gpu"),
        (("driver",), "needs-gpu"),
        (("precision-lacks",), "framework-lacks"),
    ],
)
def test_the_first_of_several_reasons_is_shown(codes: tuple[str | None, ...], word: str) -> None:
    for turned in (codes, codes[::-1]):
        both = tables(coverage(made(*(("torch-1.0", code) for code in turned))))
        assert both == [{("rnn-step", "torch"): word}, {("torch-1.0", "rnn-step"): word}]


def test_a_code_shown_as_another_reason_is_named_below() -> None:
    assert "`image-unavailable` includes `no-engine`." in coverage(made(("torch-1.0", "no-engine")))
    assert "includes" not in coverage(made(("torch-1.0", "needs-gpu"), ("torch-1.0", None)))


def test_every_skip_code_is_shown_as_a_reason_or_is_local() -> None:
    assert {*REASON_OF_CODE, *LOCAL_CODES} == {*SKIP_CODES}
    assert set(REASON_OF_CODE.values()) == {*REASONS}
    assert not {*REASON_OF_CODE} & {*LOCAL_CODES}


@pytest.mark.parametrize("code", LOCAL_CODES)
def test_a_framework_skipped_for_a_local_reason_is_an_error(code: str) -> None:
    for others in ((), ("framework-lacks",), ("needs-gpu",)):
        with pytest.raises(UsageError) as caught:
            coverage(made(("torch-1.0", code), *(("torch-2.x", other) for other in others)))
        assert caught.value.exit_code == 2
        assert f"torch-1.0/rnn-step: it is skipped for a local reason: {code}: because\nhint: " in str(caught.value)


def test_one_of_several_environments_may_have_a_local_reason() -> None:
    frameworks, environments = tables(coverage(made(("torch-1.0", "no-interpreter"), ("torch-2.x", None))))
    assert frameworks == {("rnn-step", "torch"): "runs"}
    assert environments == {("torch-1.0", "rnn-step"): "no-interpreter", ("torch-2.x", "rnn-step"): "runs"}


def test_unselected_cells_are_empty_and_missing_implementations_are_framework_lacks() -> None:
    narrowed = tables(coverage(planned(chosen="^torch-|tf-1.8/.*/rnn-step/")))[0]
    assert narrowed["asr-lstm", "tensorflow"] == ""
    assert narrowed["asr-lstm", "torch"] == "runs"
    nobody = made(("torch-1.0", None))
    nobody = Plan(
        **{name: getattr(nobody, name) for name in ("device", "backend", "measurement", "cells", "blocks")},
        frameworks={**nobody.frameworks, "theano-x": "torch7-of-nobody"},
    )
    assert tables(coverage(nobody))[1]["theano-x", "rnn-step"] == "framework-lacks"


def test_a_gpu_with_a_too_old_driver_is_shown_as_needs_gpu() -> None:
    by_framework = tables(coverage(planned(gpu=OLD_GPU)))[0]
    assert by_framework["rnn-step", "torch"] == "needs-gpu"


@functools.cache
def shipped() -> Plan:
    plan: Plan = runpy.run_path(str(ROOT / "docs" / "generate.py"))["plan_without_images"](
        load(ROOT / "matrix.yaml"), ROOT
    )
    return plan


@pytest.mark.whole_matrix
def test_the_page_agrees_with_the_plan() -> None:
    page = (ROOT / "docs" / "coverage.md").read_text("utf-8")
    frameworks, environments, _ = tables(page)
    expected = by_hand(shipped(), "framework")
    workloads = {workload for workload, _ in expected}
    used = {environment.framework for environment in load(ROOT / "matrix.yaml").environments.values()}
    for workload in workloads:
        for framework in used:
            assert frameworks.pop((workload, framework)) == expected.get((workload, framework), "framework-lacks")
    assert frameworks == {}
    by_environment = by_hand(shipped(), "environment")
    assert {field[::-1]: status for field, status in by_environment.items()}.items() <= environments.items()


@pytest.mark.whole_matrix
def test_the_page_has_every_environment_and_workload_of_the_matrix() -> None:
    matrix, plan = load(ROOT / "matrix.yaml"), shipped()
    assert plan.device == "cpu"
    assert set(plan.frameworks) == set(matrix.environments)
    assert {planned.cell.workload for planned in plan.cells} == set(matrix.workloads) - set(matrix.networks)
    assert {framework for _, framework in tables(coverage(plan))[0]} <= {*FRAMEWORKS}


@pytest.mark.whole_matrix
def test_images_to_pull_are_unavailable_and_locked_builds_are_not() -> None:
    matrix = load(ROOT / "matrix.yaml")
    reasons = {
        planned.cell.environment: planned.skip
        for planned in shipped().cells
        if planned.skip and ("image" in planned.skip.code or "the harness needs Python" in planned.skip.reason)
    }
    for name, environment in matrix.environments.items():
        variant = environment.variant("cpu")
        built = variant is not None and variant.image is None and variant.lock is not None
        assert built == (name not in reasons) or variant is None
