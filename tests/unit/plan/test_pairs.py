"""Controls of a plan: which cells are measured again, and what that costs."""

from dataclasses import replace
from typing import Any

import pytest

from runner.core.model import Cell, Measurement, Plan, PlannedCell
from runner.core.model.cells import is_plain, plain, twin
from runner.plan import pairs
from tests.support.fake_servers import block, cells

FIRST, SECOND = cells("a/x", "b/x")


def planned(*blocks: tuple[Cell, ...], frameworks: str = "a:torch b:torch c:jax", **how: Any) -> Plan:
    """Return a plan whose cells take 3 s each, and their controls, too."""
    return Plan(
        device="cpu",
        backend="fake",
        measurement=Measurement(**how),
        cells=tuple(
            PlannedCell(cell=cell, device="cpu", kind="fused", seconds=3.0, control_seconds=3.0)
            for of in blocks
            for cell in of
        ),
        blocks=tuple(block(*of) for of in blocks),
        frameworks=dict(name.split(":") for name in frameworks.split()),
    )


def controls(plan: Plan) -> list[str]:
    """Return what plain processes repeat, environments with implementations."""
    added = [cell for of in pairs.with_controls(plan).blocks for cell in of.cells if is_plain(cell.environment)]
    return [f"{cell.environment}/{cell.implementation}" for cell in added]


def test_both_sides_of_a_comparison_are_repeated_in_plain_processes() -> None:
    plan = pairs.with_controls(planned((FIRST, SECOND)))
    assert plan.blocks[0].cells == (FIRST, SECOND, twin(FIRST), plain(FIRST), plain(SECOND))
    assert {name: plan.frameworks[name] for name in ("a@plain", "b@plain")} == {"a@plain": "torch", "b@plain": "torch"}
    assert [each.cell for each in plan.cells] == list(plan.blocks[0].cells)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a/x", []),
        ("a/x b/y", []),  # one framework compares an implementation with itself
        ("a/x a/y b/x", ["a@plain/x", "b@plain/x"]),
        ("a/x c/y", ["a@plain/x", "c@plain/y"]),  # two frameworks compare what is of a kind
    ],
)
def test_a_cell_without_a_partner_has_no_control(names: str, expected: list[str]) -> None:
    assert controls(planned(cells(*names.split()))) == expected


def test_what_starts_afresh_or_takes_several_processes_has_no_control() -> None:
    for phase in ("compile", "compile-warm", "train+published"):
        assert controls(planned(tuple(replace(cell, phase=phase) for cell in (FIRST, SECOND)))) == []
    alone = planned((FIRST, SECOND))
    wide = replace(alone.blocks[0], spec={**alone.blocks[0].spec, "chips": 2})
    assert controls(replace(alone, blocks=(wide,))) == []
    assert controls(planned((FIRST, SECOND), process="plain")) == []


def test_a_control_costs_what_the_plan_says_of_it() -> None:
    plan = planned((FIRST, SECOND))
    plan = replace(plan, cells=tuple(replace(each, control_seconds=7.0) for each in plan.cells))
    controlled = pairs.with_controls(plan)
    assert [each.seconds for each in controlled.cells] == [3.0, 3.0, 3.0, 7.0, 7.0]
    assert [each.control_seconds for each in controlled.cells] == [7.0, 7.0, 0.0, 0.0, 0.0]
    rounds = replace(controlled, measurement=Measurement(rounds=9)).round_seconds
    assert (rounds[FIRST], rounds[plain(FIRST)]) == (3.0 / 9, 7.0)


def test_a_budget_without_room_has_fewer_controls() -> None:
    other = cells("a/x", "b/x", case="other")
    both = ["a@plain/x", "b@plain/x"]
    # two cases with their twins take 18 s, the controls of a case 6 s
    for budget, expected in ((None, both * 2), (30.0, both * 2), (29.0, both), (24.0, both), (23.0, [])):
        assert controls(planned((FIRST, SECOND), other, budget=budget)) == expected
    left = pairs.with_controls(planned((FIRST, SECOND), budget=1.0))
    assert not any(map(is_plain, left.frameworks))


def test_a_cell_is_compared_with_other_frameworks_only_where_its_own_has_no_partner() -> None:
    a, b, c = cells("a/x", "b/x", "c/x")
    assert pairs.compared_cells(planned((a, b, c))) == {a: {b}, b: {a}, c: {a, b}}
    assert pairs.compared_cells(planned((a, c))) == {a: {c}, c: {a}}
    assert pairs.compared_cells(planned((a,))) == {}
