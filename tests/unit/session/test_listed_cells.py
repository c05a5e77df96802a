"""``runner list tests``: what selectors name, one cell in a line, and what a mistake in a selector gets."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from runner import cli
from runner.core.errors import NothingSelectedError
from runner.session.listed_cells import cell_ids

ROOT = Path(__file__).parents[3]
MATRIX = ROOT / "matrix.yaml"
CELL = "torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32"


def test_selectors_choose_cells_of_the_matrix() -> None:
    assert list(cell_ids(MATRIX, [CELL])) == [CELL]
    cells = list(cell_ids(MATRIX, ["torch-1.0/*/rnn-step/*", "torch-2.x/nn-lstm/rnn-step/*/forward/fp32"]))
    assert CELL in cells
    assert {cell.partition("/")[0] for cell in cells} == {"torch-1.0", "torch-2.x"}
    assert len(cells) == len(set(cells)) > 10


def test_variants_are_selected_by_what_was_typed() -> None:
    (cell,) = cell_ids(MATRIX, [CELL.replace("torch-2.x", "torch-2.x@threads:2")])
    assert cell.startswith("torch-2.x@threads:2/")


@pytest.mark.parametrize(
    ("selector", "message", "hint"),
    [
        ("torch-2.y/nn-lstm/*", "'torch-2.y/nn-lstm/*' names no environment", "did you mean 'torch-2.x'?"),
        ("torch-2.x/nn-lsmt/*", "no implementation of torch-2.x matches 'nn-lsmt'", "did you mean 'nn-lstm'?"),
        ("torch-2.x/nn-lstm/rnn-stp/*", "no workload matches 'rnn-stp'", "did you mean 'rnn-step'?"),
        (
            "torch-2.x/nn-lstm/rnn-step/lstm-b32h128/forward/fp32",
            "no case of rnn-step matches 'lstm-b32h128'",
            "did you mean 'lstm-b32-h128'?",
        ),
        (CELL.replace("forward", "foward"), "no phase of lstm-b32-h128 matches 'foward'", "did you mean 'forward'?"),
        (CELL.replace("fp32", "fp23"), "no precision matches 'fp23'", "did you mean 'fp32'?"),
        ("torch-2.x/*/rnn-stp/*", "no part of a test id matches 'rnn-stp'", "did you mean 'rnn-step'?"),
        ("torch-2.x/zzzz/*", "no implementation of torch-2.x matches 'zzzz'", "there are "),
    ],
)
def test_each_part_of_a_selector_has_its_nearest_name(selector: str, message: str, hint: str) -> None:
    with pytest.raises(NothingSelectedError) as caught:
        list(cell_ids(MATRIX, ["torch-1.0", selector]))  # the mistake counts although the other selects something
    assert str(caught.value).startswith(f"error: {message}\nhint: {hint}")


def test_cells_that_could_be_and_that_the_matrix_does_not_list() -> None:
    with pytest.raises(NothingSelectedError, match=r"`runner list tests torch-2\.x` lists them"):
        list(cell_ids(MATRIX, [CELL.replace("forward", "compile")]))


def test_the_command_prints_a_cell_in_a_line() -> None:
    done = CliRunner().invoke(cli.app, ["list", "tests", "torch-2.x/nn-lstm/rnn-step/*", "--matrix", str(MATRIX)])
    assert (done.exit_code, CELL in done.stdout.splitlines()) == (0, True)
    refused = CliRunner().invoke(cli.app, ["list", "presets", "torch-2.x", "--matrix", str(MATRIX)])
    assert "`runner list tests torch-2.x`" in str(refused.exception)
