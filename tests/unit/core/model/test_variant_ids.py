"""The ids of variants: what they hold comes back, and they are ids of cells and names of files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.model import Cell
from runner.core.model.cells import PLAIN, TWIN, without_control
from runner.core.model.variant_ids import decoded, is_variant, split_variant, variant_name, without_variant

VALUES = st.text(st.characters(codec="utf-8"), max_size=20)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)


@given(st.dictionaries(NAMES, VALUES, max_size=3), st.integers(0, 999))
def test_variables_and_threads_come_back(variables: dict[str, str], threads: int) -> None:
    name = variant_name("torch-2.x", variables, threads)
    environment, text, count = split_variant(name)
    assert (environment, int(count or 0)) == ("torch-2.x", threads)
    pairs = (each.partition("=") for each in text.split(",") if each)
    assert {key: decoded(value) for key, _, value in pairs} == variables
    assert is_variant(name) == bool(variables or threads)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3), st.sampled_from(["", TWIN, PLAIN]))
def test_an_id_is_part_of_a_cell_and_of_a_file_s_name(variables: dict[str, str], control: str) -> None:
    name = variant_name("jax", variables, 4) + control
    cell = Cell(environment=name, implementation="model", workload="w", case="c", phase="train")
    assert Cell.parse(cell.id) == cell
    assert not set(name) & set("/\0 *?[]!~\\")
    assert without_control(name) == variant_name("jax", variables, 4)
    assert without_variant(name) == "jax"


@pytest.mark.parametrize("name", ["torch-2.x", "torch-2.x@twin", "torch-2.x@20261120-104500-ab12"])
def test_other_names_are_no_variants(name: str) -> None:
    assert not is_variant(name)
    assert without_variant(name) == name
