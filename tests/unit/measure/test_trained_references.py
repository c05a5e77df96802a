"""What the first steps leave behind, in references that another framework has made."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.core.model import Cell
from runner.harness.model import blob
from runner.measure import trained_references
from runner.measure.reference_groups import Reference

FACTS: dict[str, Any] = {
    "by": "weights",
    "framework": "numpy",
    "losses": [3.0, 2.0, 1.0],
    "no_update": "",
    "repeats": False,
    "wider": {"outputs": {"y": 0.1}, "state": {"mean": 0.5}},
}
TORCH_FACTS = {
    **FACTS,
    "framework": "torch",
    "no_update": "nothing",
    "repeats": True,
    "wider": {"losses": {"1": 9.0}, "state": {"w": 0.2}},
}


def made(path: Path, base: str, facts: dict[str, Any], groups: dict[str, Any]) -> Reference:
    """Return a reference whose arrays are in a file."""
    named = {group: [(name, np.float32(array)) for name, array in arrays.items()] for group, arrays in groups.items()}
    blob.write(str(path), named)
    return Reference("", "model", base, f"key-{base}", {"facts": facts, "arrays": blob.index(named)}, path)


def cell(environment: str, phase: str = "train", implementation: str = "model") -> Cell:
    """Return a cell."""
    return Cell(environment=environment, implementation=implementation, workload="net", case="small", phase=phase)


def test_a_framework_adds_what_its_first_steps_leave_behind(tmp_path: Path) -> None:
    of_numpy = {"after": {"mean": [1, 2]}, "again": {"y": [3]}, "outputs": {"y": [[4, 5]]}, "trained": {"y": [[0, 0]]}}
    of_torch = {"after": {"n": 6, "w": [7, 8]}, "outputs": {"y": [[9, 9]]}, "trained": {"y": [[10, 11]]}}
    reference = made(tmp_path / "numpy", "np", FACTS, of_numpy)
    traced = made(tmp_path / "torch", "torch-a", TORCH_FACTS, of_torch)
    both = trained_references.with_steps(reference, traced, tmp_path / "both")
    arrays = blob.read(str(both.path), both.description["arrays"])
    read = {group: {name: array.tolist() for name, array in arrays[group]} for group in arrays}
    assert read == {
        "after": {"n": 6, "w": [7, 8]},
        "again": {"y": [3]},
        "outputs": {"y": [[4, 5]]},
        "trained": {"y": [[10, 11]]},
    }
    facts = both.description["facts"]
    assert facts["wider"] == {"outputs": {"y": 0.1}, "state": {"w": 0.2}}
    assert (facts["framework"], facts["no_update"], facts["losses"]) == ("torch", "nothing", [3.0, 2.0, 1.0])
    assert facts["repeats"] is True
    assert both.base == "np"
    assert [trained_references.base(each) for each in (reference, traced, both)] == ["np", "torch-a", "torch-a"]
    assert len({reference.key, traced.key, both.key}) == 3


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [({}, True), ({"framework": "torch"}, False), ({"by": "shapes"}, False), ({"losses": []}, False)],
)
def test_a_reference_lacks_the_steps_of_another_framework_if_it_has_some(
    tmp_path: Path, changes: dict[str, Any], *, lacks: bool
) -> None:
    reference = made(tmp_path / "arrays", "np", {**FACTS, **changes}, {})
    assert trained_references.lacks_steps(reference, "torch") is lacks


def test_the_last_program_is_no_candidate_for_nothing_is_compared_with_it() -> None:
    cells = [cell("a"), cell("a", "forward"), cell("a@twin"), cell("b"), cell("b", implementation="fused"), cell("c")]
    assert [each.id for each in trained_references.candidates(cells).values()] == [
        "a/model/net/small/train/fp32",
        "b/model/net/small/train/fp32",
        "b/fused/net/small/train/fp32",
    ]
    assert trained_references.candidates([cell("a"), cell("a", "forward"), cell("b", "forward")]) == {}
    assert trained_references.candidates([]) == {}
