"""The table of coverage says what the plan says, in four words, and refuses what they cannot say."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.core.model import SKIP_CODES, Cell, Gpu, Measurement, Plan, PlannedCell, Request, Skip
from runner.matrix import FRAMEWORKS, Matrix, load, parse
from runner.plan.document import plan_json
from runner.plan.planner import plan
from runner.report.coverage import WORD, WORDLESS, WORDS, built_alone, coverage

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
    found = []
    for block in re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE):
        lines = [[field.strip() for field in line.strip("|").split("|")] for line in block.strip().splitlines()]
        head, _, *rows = lines
        found.append({(row[0], column): field for row in rows for column, field in zip(head[1:], row[1:], strict=True)})
    return found


def by_hand(plan: Plan, of: str) -> dict[tuple[str, str], str]:
    """Return (workload, framework or environment) -> word, from what ``runner plan --format json`` prints."""
    codes: dict[tuple[str, str], set[str | None]] = {}
    for cell in plan_json(plan)["cells"]:
        codes.setdefault((cell["workload"], cell[of]), set()).add(cell["code"])
    order = (None, "needs-gpu", "image-unavailable", "framework-lacks")
    return {place: next(code for code in order if code in seen) or "runs" for place, seen in codes.items()}


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
def test_the_best_of_several_reasons(codes: tuple[str | None, ...], word: str) -> None:
    for turned in (codes, codes[::-1]):
        both = tables(coverage(made(*(("torch-1.0", code) for code in turned))))
        assert both == [{("rnn-step", "torch"): word}, {("torch-1.0", "rnn-step"): word}]


def test_a_code_that_another_word_stands_for_is_named() -> None:
    assert "`image-unavailable` stands for `no-engine` as well." in coverage(made(("torch-1.0", "no-engine")))
    assert "stands for" not in coverage(made(("torch-1.0", "needs-gpu"), ("torch-1.0", None)))


def test_every_code_has_a_word_or_is_refused() -> None:
    assert {*WORD, *WORDLESS} == {*SKIP_CODES}
    assert set(WORD.values()) == {*WORDS}
    assert not {*WORD} & {*WORDLESS}


@pytest.mark.parametrize("code", WORDLESS)
def test_a_framework_held_back_by_what_has_no_word_is_refused_by_name(code: str) -> None:
    for others in ((), ("framework-lacks",), ("needs-gpu",)):
        with pytest.raises(UsageError) as caught:
            coverage(made(("torch-1.0", code), *(("torch-2.x", other) for other in others)))
        assert caught.value.exit_code == 2
        assert str(caught.value).startswith(
            f"error: no word of this table says why torch-1.0 does not run rnn-step: {code}: because\nhint: "
        )


def test_one_of_several_environments_may_be_held_back_and_shows_why() -> None:
    frameworks, environments = tables(coverage(made(("torch-1.0", "no-interpreter"), ("torch-2.x", None))))
    assert frameworks == {("rnn-step", "torch"): "runs"}
    assert environments == {("torch-1.0", "rnn-step"): "no-interpreter", ("torch-2.x", "rnn-step"): "runs"}


def test_what_the_selection_left_out_is_empty_and_what_nobody_offers_is_not() -> None:
    narrowed = tables(coverage(planned(chosen="^torch-|tf-1.8/.*/rnn-step/")))[0]
    assert narrowed["asr-lstm", "tensorflow"] == ""
    assert narrowed["asr-lstm", "torch"] == "runs"
    nobody = made(("torch-1.0", None))
    nobody = Plan(
        **{name: getattr(nobody, name) for name in ("device", "backend", "measurement", "cells", "blocks")},
        frameworks={**nobody.frameworks, "theano-x": "torch7-of-nobody"},
    )
    assert tables(coverage(nobody))[1]["theano-x", "rnn-step"] == "framework-lacks"


def test_a_gpu_whose_driver_is_too_old_needs_another() -> None:
    found = tables(coverage(planned(gpu=OLD_GPU)))[0]
    assert found["rnn-step", "torch"] == "needs-gpu"


def shipped() -> Plan:
    return built_alone(load(ROOT / "matrix.yaml"), ROOT)


def test_the_page_says_what_the_plan_says() -> None:
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
    assert {place[::-1]: word for place, word in by_environment.items()}.items() <= environments.items()


def test_the_page_is_about_every_environment_and_every_workload_of_the_matrix() -> None:
    matrix, found = load(ROOT / "matrix.yaml"), shipped()
    assert found.device == "cpu"
    assert set(found.frameworks) == set(matrix.environments)
    assert {one.cell.workload for one in found.cells} == set(matrix.workloads)
    assert {framework for _, framework in tables(coverage(found))[0]} <= {*FRAMEWORKS}


def test_what_must_be_pulled_is_unavailable_and_what_can_be_built_is_not() -> None:
    matrix = load(ROOT / "matrix.yaml")
    reasons = {one.cell.environment: one.skip for one in shipped().cells if one.skip and "image" in one.skip.code}
    for name, environment in matrix.environments.items():
        variant = environment.variant("cpu")
        built = variant is not None and variant.image is None and variant.lock is not None
        assert built == (name not in reasons) or variant is None
