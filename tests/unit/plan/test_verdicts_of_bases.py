"""The bases of a night are measured in every case that another environment of their framework is measured in."""

from typing import Any

from runner.core.model import Plan, Request
from runner.matrix import parse
from runner.plan.planner import plan

MATRIX = """\
version: 1
workloads: {rnn-step: {cases: [lstm-b32-h128, rnn-b32-h128], phases: [forward, train]}}
environments:
  torch-2.x: {framework: torch, release: "2.9.0", image: x}
  torch-1.13: {framework: torch, release: "1.13.1", image: x}
  tf-2.x: {framework: tensorflow, release: "2.21.0", image: x}
presets:
  small: {select: [{cases: [rnn-step/lstm-b32-h128/train], environments: ["!torch-1.13"]}]}
"""


def planned(*environments: str, **changes: Any) -> Plan:
    request = Request(environments=environments, **changes)
    return plan(parse(MATRIX.encode(), "m.yaml"), request, {})


def cells(of: Plan, environment: str) -> set[tuple[str, str, str]]:
    return {
        (cell.cell.implementation, cell.cell.case, cell.cell.phase)
        for cell in of.cells
        if cell.cell.environment == environment and cell.skip is None
    }


def test_a_base_gets_the_cells_of_its_framework_and_comes_first() -> None:
    night = planned("torch-1.13", "torch-2.x", "tf-2.x", bases=("torch-1.13",), preset="small")
    assert cells(night, "torch-1.13")
    assert cells(night, "torch-1.13") <= cells(night, "torch-2.x")
    assert {case for _, case, _ in cells(night, "torch-1.13")} == {"lstm-b32-h128"}
    (block,) = night.blocks
    assert block.cells[0].environment == "torch-1.13"
    assert "tf-2.x" in block.environments


def test_a_base_is_measured_where_a_glob_selects_another_environment() -> None:
    night = planned(
        "torch-1.13", "torch-2.x", bases=("torch-1.13",), chosen=lambda cell: cell.startswith("torch-2.x/nn-lstm/")
    )
    assert {implementation for implementation, _, _ in cells(night, "torch-1.13")} == {"nn-lstm"}
    assert cells(night, "torch-1.13") == cells(night, "torch-2.x")


def test_a_selected_base_keeps_its_own_cells_and_none_is_planned_twice() -> None:
    alone = planned("torch-1.13", "torch-2.x")
    night = planned("torch-1.13", "torch-2.x", bases=("torch-1.13",))
    assert sorted(cell.cell.id for cell in night.cells) == sorted(cell.cell.id for cell in alone.cells)
