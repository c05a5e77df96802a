"""A stored plan is what the ids of its cells say, with names that a matrix can have; anything else is refused."""

import copy
from typing import Any

import pytest

from runner.core.errors import RecordError
from runner.core.model import Measurement, Past, Plan
from runner.plan.document import plan_document, read_plan
from tests.unit.search.reproduce.test_reproduce import NEW, OLD, plan

CASES: dict[str, Any] = {OLD.case_id: {}}


def read(document: dict[str, Any]) -> Plan:
    """Return a plan that was stored."""
    return read_plan(document, CASES, Measurement(), Past())


def test_a_plan_is_read_as_it_was_written() -> None:
    assert [planned.cell for planned in read(plan_document(plan(OLD, NEW))).cells] == [OLD, NEW]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("environment", "../../reports/runs/20261120-104500-aaaa/x"),
        ("environment", "torch-2.x"),
        ("case", "../x"),
        ("phase", "forward"),
    ],
)
def test_an_entry_that_contradicts_the_id_of_its_cell_is_refused(part: str, value: str) -> None:
    document = copy.deepcopy(plan_document(plan(OLD)))
    document["cells"][0][part] = value
    with pytest.raises(RecordError, match=f"has the {part}"):
        read(document)


@pytest.mark.parametrize("name", ["_x", "Torch", "a..b", "x" * 200, "torch_1"])
def test_an_environment_with_a_name_that_no_matrix_has_is_refused(name: str) -> None:
    document = copy.deepcopy(plan_document(plan(OLD)))
    entry = document["cells"][0]
    entry.update(id=entry["id"].replace("torch-1.0", name, 1), environment=name)
    with pytest.raises(RecordError, match="which no matrix can have"):
        read(document)


@pytest.mark.parametrize("name", ["torch-1.0@twin", "torch-1.0@20261120-104500-aaaa", "torch-1.0@env:A=1@threads:2"])
def test_variants_controls_and_environments_of_other_runs_are_read(name: str) -> None:
    document = copy.deepcopy(plan_document(plan(OLD)))
    entry = document["cells"][0]
    entry.update(id=entry["id"].replace("torch-1.0", name, 1), environment=name)
    assert read(document).cells[0].cell.environment == name


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ({"image": "../x"}, "which no matrix can have"),
        ({"env": {"PATH": "/x"}}, "the plan sets the variable 'PATH'"),
        ({"env": {"A B": "1"}}, "it is no name of a variable"),
    ],
)
def test_a_launch_that_no_user_can_ask_for_is_refused(launch: dict[str, Any], words: str) -> None:
    document = {**plan_document(plan(OLD)), "launches": {"torch-1.0": launch}}
    with pytest.raises(RecordError, match=words):
        read(document)
