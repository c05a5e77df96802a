"""Variants and phases that model files name, in plans: which cells there are, and which are skipped."""

from pathlib import Path

import pytest

from runner.core.errors import MatrixError
from runner.core.model import Plan, Request
from runner.matrix import Matrix, parse
from runner.plan.planner import plan
from tests.support.model_files import write_model

TEXT = """\
version: 1
workloads: {net: {file: my_network.py}}
environments:
  np: {framework: numpy, release: "1.26.4", image: x}
  torch-1.12: {framework: torch, release: "1.12.1", image: x}
  torch-2.x: {framework: torch, release: "2.*", image: x}
"""
SOURCE = """\
VARIANTS = {"torch": ["eager", "compile>=2.0", "old<2.0.0"]}
PHASES = ["decode"]


class TorchModel:
    def __init__(self, variant): ...

    def forward(self): ...

    def decode(self): ...


class NumpyModel:
    def train(self): ...
"""


def matrix_with(folder: Path, text: str = TEXT) -> Matrix:
    write_model(folder, SOURCE)
    return parse(text.encode(), "m.yaml", folder)


def planned(matrix: Matrix, **changes: object) -> Plan:
    request = Request(environments=tuple(matrix.environments), workloads=("net",), device="cpu", **changes)  # type: ignore[arg-type]
    return plan(matrix, request, {})


def test_each_variant_is_an_implementation_and_each_phase_a_method(tmp_path: Path) -> None:
    cells = [entry.cell.id for entry in planned(matrix_with(tmp_path)).cells]
    of_torch = [
        f"{name}/net/default/{phase}/fp32" for name in ("eager", "compile", "old") for phase in ("forward", "decode")
    ]
    assert cells == [
        "np/model/net/default/train/fp32",
        *(f"{environment}/{cell}" for environment in ("torch-1.12", "torch-2.x") for cell in of_torch),
    ]


def test_a_variant_that_a_release_lacks_is_a_skip_with_its_reason(tmp_path: Path) -> None:
    skips = {
        f"{entry.cell.environment}/{entry.cell.implementation}": (entry.skip.code, entry.skip.reason)
        for entry in planned(matrix_with(tmp_path)).cells
        if entry.skip
    }
    assert skips == {
        "torch-1.12/compile": ("framework-lacks", "my_network.py names compile from 2.0 on"),
        "torch-2.x/old": ("framework-lacks", "my_network.py names old before 2.0.0"),
    }


def test_variants_and_phases_can_be_selected(tmp_path: Path) -> None:
    selected = "presets: {p: {select: [{cases: [net/*/decode], implementations: [compile]}], phases: [decode]}}\n"
    cells = planned(matrix_with(tmp_path, TEXT + selected), preset="p").cells
    assert [entry.cell.id for entry in cells] == [
        "torch-1.12/compile/net/default/decode/fp32",
        "torch-2.x/compile/net/default/decode/fp32",
    ]
    named = TEXT.replace("my_network.py}", "my_network.py, phases: [compile, decode]}")
    phases = {entry.cell.phase for entry in planned(matrix_with(tmp_path, named)).cells}
    assert phases == {"compile", "decode"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("my_network.py}", "my_network.py, phases: [decoed]}"), "2:49: error: no phase matches 'decoed'"),
        (TEXT + "presets: {p: {select: [net/*], phases: [decoed]}}\n", "7:41: error: no phase matches 'decoed'"),
        (
            TEXT + "presets: {p: {select: [{cases: [net/*], phases: [decoed]}]}}\n",
            "7:50: error: no phase matches 'decoed'",
        ),
        (
            TEXT + "presets: {p: {select: [{cases: [net/*], implementations: [compiel]}]}}\n",
            "7:59: error: no implementation matches 'compiel'",
        ),
    ],
)
def test_a_name_that_no_file_has_is_a_mistake_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(MatrixError) as caught:
        matrix_with(tmp_path, text)
    assert f"m.yaml:{message}" in str(caught.value)
    assert f"did you mean '{'compile' if 'compiel' in text else 'decode'}'?" in str(caught.value)
