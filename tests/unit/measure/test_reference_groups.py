"""Which program makes the reference of a user's network."""

from pathlib import Path
from typing import Any

import pytest

from runner.core.model import Cell
from runner.measure.reference_groups import (
    NetworkProgram,
    Reference,
    ReferenceGroup,
    Traceable,
    as_guest,
    in_order,
    is_complete,
)

FRAMEWORKS = {"torch-a": "torch", "torch-b": "torch", "np": "numpy"}


def programs(*environments: str) -> dict[NetworkProgram, Cell]:
    """Return program -> cell, of a forward pass in each environment."""
    cells = [
        Cell(environment=name, implementation="model", workload="net", case="small", phase="forward")
        for name in environments
    ]
    return {NetworkProgram.of(cell): cell for cell in cells}


def order(environments: tuple[str, ...], takes_weights: tuple[str, ...], framework: str = "") -> list[tuple[str, bool]]:
    """Return (environment, whether NumPy is a guest there) of each program in the order in which they try."""
    group = ReferenceGroup("net/small", "fp32", framework, "")
    tried = in_order(programs(*environments), group, {"takes_weights": takes_weights}, FRAMEWORKS)
    return [(each.cell.environment, each.is_guest) for each in tried]


def test_numpy_of_each_environment_tries_before_the_frameworks_do() -> None:
    expected = [("torch-a", True), ("torch-b", True), ("torch-a", False), ("torch-b", False)]
    assert order(("torch-a", "torch-b"), ("torch", "numpy")) == expected


def test_an_environment_of_numpy_makes_it_wherever_it_stands() -> None:
    assert order(("torch-a", "np", "torch-b"), ("torch", "numpy")) == [
        ("np", False),
        ("torch-a", False),
        ("torch-b", False),
    ]


def test_a_file_whose_numpy_program_takes_no_weights_has_the_first_environment_as_its_base() -> None:
    assert order(("torch-a", "torch-b"), ("torch",)) == [("torch-a", False), ("torch-b", False)]


def test_a_framework_that_takes_no_weights_is_its_own_base() -> None:
    assert order(("torch-a",), ("numpy",), framework="torch") == [("torch-a", False)]


def test_nothing_makes_a_reference_where_no_environment_is_ready() -> None:
    assert order((), ("torch", "numpy")) == []


def test_a_guest_fails_apart_from_the_program_of_its_environment() -> None:
    group = ReferenceGroup("net/small", "fp32", "", "")
    guest, program = in_order(programs("torch-a"), group, {"takes_weights": ("numpy",)}, FRAMEWORKS)
    assert guest.cell == program.cell
    assert guest.program != program.program


def test_a_guest_runs_the_first_variant_that_every_release_has() -> None:
    case: dict[str, Any] = {"name": "small", "variant": "compile", "variants": {"torch": [{"name": "compile"}]}}
    assert as_guest(case) == {"name": "small", "variants": {"torch": [{"name": "compile"}]}}
    bounded = {"name": "new", "since": [2, 0], "before": []}
    case["variants"]["numpy"] = [bounded, {"name": "by-hand", "since": [], "before": []}]
    assert as_guest(case)["variant"] == "by-hand"


def test_a_numpy_program_whose_variants_all_have_bounds_is_no_guest() -> None:
    group, bounded = ReferenceGroup("net/small", "fp32", "", ""), {"name": "new", "since": [2, 0], "before": []}
    spec = {"takes_weights": ("numpy",), "variants": {"numpy": [bounded]}}
    assert [each.is_guest for each in in_order(programs("torch-a"), group, spec, FRAMEWORKS)] == [False]


@pytest.mark.parametrize(
    ("is_guest", "facts", "complete"),
    [
        (False, {"fails": [], "by": "weights"}, True),
        (False, {"fails": ["train"], "by": "weights"}, False),
        (False, {"fails": [], "by": "shapes"}, True),
        (True, {"fails": [], "by": "weights"}, True),
        (True, {"fails": [], "by": "shapes"}, False),
    ],
)
def test_a_guest_whose_arrays_are_too_large_leaves_the_reference_to_the_frameworks(
    *, is_guest: bool, facts: dict[str, Any], complete: bool
) -> None:
    ((program, cell),) = programs("torch-a").items()
    reference = Reference("torch-a", "model", "torch-a", "key", {"facts": facts}, Path())
    assert is_complete(Traceable(program, cell, is_guest=is_guest), reference) is complete
