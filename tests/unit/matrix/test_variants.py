"""Variables and thread counts that are typed, as environments of the matrix."""

from collections.abc import Callable

import pytest

from runner.core.errors import NothingSelectedError, RunnerError, UsageError
from runner.core.model.variant_ids import Launch
from runner.matrix import Matrix, choose_cells, parse, select_environments
from runner.matrix.variants import (
    canonical,
    read_threads,
    read_variables,
    with_thread_counts,
    with_variables,
    with_variants,
)

MATRIX = parse(
    b"""\
version: 1
workloads: {rnn-step: {}}
environments:
  torch-1.12: {framework: torch, release: "1.12.1", image: a, env: {A: "1", B: "2"}}
  torch-2.x: {framework: torch, release: "2.*", image: b}
  jax: {framework: jax, release: "0.10.2", image: c}
""",
    "m.yaml",
)


def selected(*selectors: str, matrix: Matrix = MATRIX) -> tuple[str, ...]:
    changed, words = with_variants(matrix, selectors)
    return select_environments(changed, words)


def message_of(kind: type[RunnerError], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        ("jax jax@env:A=1", "jax jax@env:A=1"),
        ("jax@env:A=1", "jax@env:A=1"),
        ("jax@env:A=1 jax@env:B=2 jax", "jax jax@env:A=1 jax@env:B=2"),
        ("jax@env:A=1,B=2@threads:4 torch-2.x", "torch-2.x jax@env:A=1,B=2@threads:4"),
        ("torch-*@threads:4", "torch-1.12@threads:4 torch-2.x@threads:4"),
        ("torch-*@threads:4 !torch-1.12@threads:4", "torch-2.x@threads:4"),
        ("torch>=2@env:A=1 torch>=2", "torch-2.x torch-2.x@env:A=1"),
        ("jax@env:A=1/jax-scan/*", "jax@env:A=1"),
        ("jax@env:A=%2Ftmp", "jax@env:A=%2Ftmp"),
        ("jax@env:A=b=c", "jax@env:A=b=c"),
    ],
)
def test_a_selector_with_variables_adds_an_environment(selectors: str, expected: str) -> None:
    assert selected(*selectors.split()) == tuple(expected.split())


def test_a_value_with_spaces_is_a_part_of_the_id_in_another_spelling() -> None:
    name = "jax@env:XLA_FLAGS=--a=1%20--b"
    matrix, words = with_variants(MATRIX, ["jax@env:XLA_FLAGS=--a=1 --b"])
    assert words == [name]
    assert matrix.launch_of(name) == Launch(image="jax", variables={"XLA_FLAGS": "--a=1 --b"})
    assert with_variants(MATRIX, [name])[0] == matrix
    assert canonical("jax@env:XLA_FLAGS=--a=1 --b") == canonical(name) == name


def test_a_variant_has_the_variables_of_its_environment_and_its_own_count() -> None:
    matrix, _ = with_variants(MATRIX, ["torch-1.12@env:B=9,C=@threads:3"])
    expected = Launch(image="torch-1.12", variables={"A": "1", "B": "9", "C": ""}, threads=3)
    assert matrix.launch_of("torch-1.12@env:B=9,C=@threads:3") == expected
    assert matrix.launch_of("torch-1.12") == Launch(variables={"A": "1", "B": "2"})
    assert matrix.launch_of("torch-2.x") == Launch()


def test_variables_of_all_environments_replace_those_of_the_matrix() -> None:
    matrix = with_variables(MATRIX, {"B": "3"})
    assert matrix.launch_of("torch-1.12").variables == {"A": "1", "B": "3"}
    assert matrix.launch_of("jax").variables == {"B": "3"}
    changed, _ = with_variants(matrix, ["jax@env:B=4"])
    assert changed.launch_of("jax@env:B=4").variables == {"B": "4"}


def test_further_thread_counts_are_selected_with_their_environments() -> None:
    matrix = with_thread_counts(MATRIX, (1, 2, 4))
    names = ("torch-2.x", "torch-2.x@threads:2", "torch-2.x@threads:4")
    assert select_environments(matrix, ["torch-2.x"]) == names
    assert select_environments(matrix, ["!torch-1.12", "!jax"]) == names
    chosen = choose_cells(matrix, ["torch-2.x/nn-lstm/*"])
    assert [chosen(f"{name}/nn-lstm/w/c/train/fp32") for name in (*names, "jax")] == [True, True, True, False]
    assert matrix.launch_of("torch-2.x@threads:4") == Launch(image="torch-2.x", threads=4)
    assert matrix.launch_of("torch-2.x") == Launch()


def test_one_thread_count_adds_nothing() -> None:
    assert select_environments(with_thread_counts(MATRIX, (4,)), []) == tuple(MATRIX.environments)


def test_a_variant_that_was_typed_with_its_threads_gets_no_further_ones() -> None:
    matrix, words = with_variants(MATRIX, ["jax", "jax@threads:8", "jax@env:A=1"])
    changed = with_thread_counts(matrix, (1, 2))
    assert select_environments(changed, words) == (
        *("jax", "jax@threads:2", "jax@threads:8"),
        *("jax@env:A=1", "jax@env:A=1@threads:2"),
    )


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("jax@env:", "error: '' is no variable with its value\nhint: write NAME=VALUE"),
        ("jax@env:A", "error: 'A' is no variable with its value\nhint: write NAME=VALUE"),
        ("jax@env:1A=2", "error: '1A=2' is no variable with its value\nhint: write NAME=VALUE"),
        ("jax@env:A=1,A=2", "error: the variable A is given twice\nhint: keep one of the two"),
        ("jax@env:PATH=x", "error: PATH cannot be set for an environment: the interpreter of the image is found by it"),
        ("jax@env:A=a%0Ab", "error: the value of A has a control character, or more than 1000 characters"),
        ("jax@threads:0", "error: @threads:0 is no number of threads\nhint: write @threads:4"),
        ("jax@threads:x", "error: @threads:x is no number of threads\nhint: write @threads:4"),
        (
            "jax@threads:1,2",
            "error: 'jax@threads:1,2' has several thread counts\nhint: name a variant for each: jax@threads:1, jax@",
        ),
        (
            "jax@env:A=" + "x" * 200,
            f"error: the name jax@env:A={'x' * 30}... would have 210 characters, and may have 120\nhint: ",
        ),
    ],
)
def test_a_mistake_in_a_selector_has_a_hint(selector: str, message: str) -> None:
    assert message_of(UsageError, lambda: with_variants(MATRIX, [selector])).startswith(message)


def test_a_variant_of_nothing_names_what_there_is() -> None:
    text = message_of(NothingSelectedError, lambda: with_variants(MATRIX, ["jaxx@env:A=1"]))
    assert text == "error: 'jaxx' names no environment\nhint: did you mean 'jax'?"


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["A"], "error: 'A' is no variable with its value\nhint: write NAME=VALUE, such as OMP_WAIT_POLICY=passive"),
        (["A=1", "A=2"], "error: the variable A is given twice"),
        (["PYTHONPATH=x"], "error: PYTHONPATH cannot be set for an environment: the interpreter of a server starts"),
        (["A=http://ann:secret@proxy"], "error: A has a user or a password in an address\nhint: write the address"),
    ],
)
def test_a_mistake_in_an_option_has_a_hint(assignments: list[str], message: str) -> None:
    text = message_of(UsageError, lambda: read_variables(assignments))
    assert text.startswith(message)
    assert "secret" not in text


def test_a_value_may_have_everything_that_a_line_has() -> None:
    assert read_variables(["A=b=c, d/e", "B="]) == {"A": "b=c, d/e", "B": ""}


@pytest.mark.parametrize("text", ["", "0", "1,", "1,x", "-1", "1 2", "1,1"])
def test_thread_counts_that_are_none(text: str) -> None:
    assert message_of(UsageError, lambda: read_threads(text, "--threads ")).startswith(f"error: --threads {text} ")


def test_thread_counts() -> None:
    assert read_threads("1,2,16", "--threads ") == (1, 2, 16)
