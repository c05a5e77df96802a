"""What a command measures that names no cells, and what is too long to be measured unasked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runner.backends.venv import VenvBackend
from runner.core.errors import UsageError
from runner.core.model import Device, Plan, Request
from runner.matrix import Environment, Matrix, load, parse
from runner.plan.planner import plan
from runner.plan.verdicts import selected_cells
from runner.session.context import setup
from runner.session.options import Options
from runner.session.quick_cells import (
    NOTE,
    gpu_notes,
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
    named = with_all_in_presets(SHIPPED, SHIPPED, Options(selectors=PAIR))
    assert {cell.id for cell in selected_cells(context.matrix, context.request)} == of_preset(PAIR, "quick", named)
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


def test_a_named_environment_without_quick_cells_has_all_of_its_own() -> None:
    matrix = parse(MATRIX.encode(), "m.yaml")
    request = Request(environments=("torch-1.0", "tf-2.x"))
    assert quick_cells(matrix, request, Options())[1:] == (replace(request, preset="quick"), (NOTE,))
    extended, mixed, notes = quick_cells(matrix, request, Options(selectors=["torch-1.0", "tf-2.x"]))
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
    matrix = with_all_in_presets(SHIPPED.with_environments(environments, {}, {}), SHIPPED, Options())
    cells = {each.partition("/")[2] for each in of_preset(["torch-2.9.1"], "quick", matrix)}
    assert cells == {each.partition("/")[2] for each in of_preset(["torch-1.0", "torch-1.12", "torch-2.x"], "quick")}
    assert of_preset(PAIR, "quick", matrix) == of_preset(PAIR, "quick")
    assert with_all_in_presets(SHIPPED, SHIPPED, Options()) is SHIPPED


def test_a_named_environment_that_the_preset_leaves_out_has_the_cells_of_its_framework() -> None:
    text = MATRIX.replace("environments: [torch-*]", "environments: [torch-1.0]")
    matrix = parse(text.encode(), "m.yaml")
    named = with_all_in_presets(matrix, matrix, Options(selectors=["torch-2.x@env:A=1", "tf-2.x/*"]))
    cells = {each.partition("/")[2] for each in of_preset(["torch-2.x"], "quick", named)}
    assert cells == {each.partition("/")[2] for each in of_preset(["torch-1.0"], "quick", matrix)} != set()
    assert of_preset(["tf-2.x"], "quick", named) == set(), "the preset has nothing of its framework"
    by_pattern = with_all_in_presets(matrix, matrix, Options(selectors=["torch-*"]))
    assert of_preset(["torch-2.x"], "quick", by_pattern) == set()


def test_named_environments_of_a_framework_have_the_same_tests() -> None:
    named = with_all_in_presets(SHIPPED, SHIPPED, Options(selectors=PAIR))
    old, new = ({each.partition("/")[2] for each in of_preset([name], "quick", named)} for name in PAIR)
    assert old == new > {each.partition("/")[2] for each in of_preset(PAIR[:1], "quick")}


def test_a_selector_that_only_excludes_environments_excludes_those_that_are_named() -> None:
    text = MATRIX.replace("environments: [torch-*]", "environments: ['!torch-1.0']")
    matrix = parse(text.encode(), "m.yaml")
    named = with_all_in_presets(matrix, matrix, Options(selectors=["torch-1.0"]))
    assert of_preset(["torch-1.0"], "quick", named) == set()


def test_on_a_gpu_the_environments_that_quick_leaves_out_are_named_with_the_command_that_measures_them() -> None:
    def notes(*selectors: str, device: Device = "cuda", preset: str = "quick") -> tuple[str, ...]:
        matrix = with_all_in_presets(SHIPPED, SHIPPED, Options(selectors=[*selectors]))
        environments = selectors or tuple(SHIPPED.environments)
        return gpu_notes(matrix, Request(environments=environments, preset=preset, device=device))

    (note,) = notes()
    assert note.startswith("on a GPU, the preset quick selects 6 environments; name others to measure its tests")
    assert "`runner run tf-2.16 tf-2.17`" in note
    assert "torch-2.10" in note
    assert "keras" not in note, "the preset has no test of Keras there"
    assert "torch-1.12" not in note, "it has no build for a GPU"
    assert notes(device="cpu") == notes(preset="heritage") == notes("torch-2.1", "torch-2.6") == ()


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
    planned = plan(SHIPPED, Request(environments=tuple(PAIR), preset="heritage"), {})
    assert planned.seconds > 60
    assert too_long(planned, SHIPPED, Options()) is None
