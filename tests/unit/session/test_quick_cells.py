"""What a command measures that names no cells, and what is too long to be measured unasked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runner.backends.venv import VenvBackend
from runner.core.errors import UsageError
from runner.core.model import Plan, Request
from runner.matrix import Environment, Matrix, load, parse
from runner.plan.planner import plan
from runner.plan.verdicts import selected_cells
from runner.session.context import setup
from runner.session.options import Options
from runner.session.quick_cells import (
    NOTE,
    names_cells,
    quick_cells,
    refuse_long,
    too_long,
    with_all_in_presets,
)

ROOT = Path(__file__).parents[3]
SHIPPED = load(ROOT / "matrix.yaml")
TYPED = Options(matrix=ROOT / "matrix.yaml", backend="venv", device="cpu", seed=0)
PAIR = ["torch-1.0", "torch-2.x"]
MATRIX = """\
version: 1
environments:
  torch-1.0: {framework: torch, release: "1.0.0", image: x}
  torch-2.x: {framework: torch, release: "2.*", image: x}
  tf-2.x: {framework: tensorflow, release: "2.*", image: x}
workloads: {rnn-step: {cases: [lstm-b32-*], phases: [forward, train], precisions: [fp32, fp16]}, asr-lstm: {}}
presets: {quick: {select: [{cases: [rnn-step/lstm-b32-h128/forward], environments: [torch-*]}], precisions: [fp32]}}
"""


def of_preset(names: Sequence[str], preset: str | None, matrix: Matrix = SHIPPED) -> set[str]:
    return {cell.id for cell in selected_cells(matrix, Request(environments=tuple(names), preset=preset))}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(), False),
        (Options(selectors=PAIR, rounds=5, precision=["fp16"], budget="1h"), False),
        (Options(selectors=["torch-*", "!*/nn-lstm/*"]), False),
        (Options(selectors=["torch-*/nn-lstm"]), True),
        (Options(preset="smoke"), True),
        (Options(model=["a.py"]), True),
        (Options(workload=["rnn-step"]), True),
        (Options(all=True), True),
    ],
)
def test_what_names_cells(options: Options, expected: bool) -> None:  # noqa: FBT001
    assert names_cells(options) is expected


def test_environments_alone_are_measured_with_their_quick_cells() -> None:
    context = setup(replace(TYPED, selectors=PAIR), quick=True)
    assert {cell.id for cell in selected_cells(context.matrix, context.request)} == of_preset(PAIR, "quick")
    assert NOTE in context.notes
    assert isinstance(context.backend, VenvBackend)
    assert "--preset quick" in " ".join(context.origin.command)


@pytest.mark.parametrize("options", [replace(TYPED, all=True), replace(TYPED, workload=["rnn-step"])])
def test_what_is_named_is_measured(options: Options) -> None:
    context = setup(replace(options, selectors=PAIR), quick=True)
    assert context.request.preset is None
    assert NOTE not in context.notes
    assert "--preset" not in context.origin.command


def test_commands_that_do_not_ask_for_it_take_every_cell() -> None:
    assert setup(replace(TYPED, selectors=PAIR)).request.preset is None


def test_an_environment_without_quick_cells_has_all_of_its_own() -> None:
    matrix = parse(MATRIX.encode(), "m.yaml")
    request = Request(environments=("torch-1.0", "tf-2.x"))
    extended, mixed, notes = quick_cells(matrix, request, Options())
    cells = {cell.id for cell in selected_cells(extended, mixed)}
    assert notes == (NOTE, "the preset quick has no test of tf-2.x: all of their tests are taken")
    assert {each for each in cells if each.startswith("torch")} == of_preset(["torch-1.0"], "quick", matrix)
    assert {each for each in cells if each.startswith("tf")} == of_preset(["tf-2.x"], None, matrix)


def test_without_any_quick_cell_everything_is_taken() -> None:
    matrix = parse(MATRIX.encode(), "m.yaml")
    request = Request(environments=("tf-2.x",))
    assert quick_cells(matrix, request, Options())[1:] == (
        request,
        ("the preset quick has no test of tf-2.x: all of their tests are taken",),
    )
    no_presets = matrix.model_copy(update={"presets": {}})
    assert quick_cells(no_presets, request, Options()) == (no_presets, request, ())


def test_a_release_that_the_file_does_not_declare_has_the_quick_cells_of_its_framework() -> None:
    release = {"framework": "torch", "release": "2.9.1", "image": "x"}
    environments = {**SHIPPED.environments, "torch-2.9.1": Environment.model_validate(release)}
    matrix = with_all_in_presets(SHIPPED.with_environments(environments, {}, {}), SHIPPED, Options(), "cpu")
    cells = {each.partition("/")[2] for each in of_preset(["torch-2.9.1"], "quick", matrix)}
    assert cells == {each.partition("/")[2] for each in of_preset(["torch-1.0", "torch-1.12", "torch-2.x"], "quick")}
    assert of_preset(PAIR, "quick", matrix) == of_preset(PAIR, "quick")
    assert with_all_in_presets(SHIPPED, SHIPPED, Options(), "cpu") is SHIPPED


def test_a_named_environment_that_the_preset_leaves_out_has_the_cells_of_its_framework() -> None:
    text = MATRIX.replace("environments: [torch-*]", "environments: [torch-1.0]")
    matrix = parse(text.encode(), "m.yaml")
    named = with_all_in_presets(matrix, matrix, Options(selectors=["torch-2.x@env:A=1", "tf-2.x/*"]), "cpu")
    cells = {each.partition("/")[2] for each in of_preset(["torch-2.x"], "quick", named)}
    assert cells == {each.partition("/")[2] for each in of_preset(["torch-1.0"], "quick", matrix)} != set()
    assert of_preset(["tf-2.x"], "quick", named) == set(), "the preset has nothing of its framework"
    by_pattern = with_all_in_presets(matrix, matrix, Options(selectors=["torch-*"]), "cpu")
    assert of_preset(["torch-2.x"], "quick", by_pattern) == set()


def test_an_environment_that_presets_have_tests_of_has_no_others_where_it_is_named() -> None:
    named = with_all_in_presets(SHIPPED, SHIPPED, Options(selectors=PAIR), "cpu")
    for preset in SHIPPED.presets:
        assert of_preset(PAIR, preset, named) == of_preset(PAIR, preset)


def long_plan() -> Plan:
    return plan(SHIPPED, Request(environments=tuple(PAIR), workloads=("rnn-sequence",)), {})


def test_hours_of_measuring_have_to_be_asked_for() -> None:
    planned = long_plan()
    with pytest.raises(UsageError) as caught:
        refuse_long(planned, SHIPPED, Options(workload=["rnn-sequence"]))
    text = str(caught.value)
    assert text.startswith("error: it takes about ")
    assert "--budget 2h" in text
    assert "--all" in text
    assert "--preset quick" in text
    for options in (Options(all=True), Options(budget="3h")):
        assert too_long(planned, SHIPPED, options) is None


def test_a_short_run_is_not_asked_about() -> None:
    planned = plan(SHIPPED, Request(environments=tuple(PAIR), preset="quick"), {})
    assert planned.seconds > 60
    assert too_long(planned, SHIPPED, Options()) is None
