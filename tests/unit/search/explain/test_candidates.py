"""What may take a change back, and the environments that candidates become."""

from pathlib import Path
from typing import Any

from runner.matrix import Environment, load
from runner.matrix.fields import LONGEST_ID
from runner.search.explain.candidates import (
    Candidate,
    candidates,
    environment_name,
    environment_of,
    together,
)
from runner.search.explain.packages import End

ROOT = Path(__file__).parents[4]


def end(name: str = "jax-new", release: str = "0.4.33", **values: Any) -> End:
    """Return a release of jax without a lock."""
    keys = {"framework": "jax", "python": "3.11", "requirements": ("jax==0.4.33", "numpy<3", "scipy"), **values}
    return End(name=name, environment=Environment(release=release, **keys), release=release, lock=None)


def names(good: End, bad: End) -> dict[str, Candidate]:
    return {each.name: each for each in candidates(good, bad, "cpu", ())}


def switch(name: str, **variables: str) -> Candidate:
    return Candidate(name=name, kind="switch", change=name, variables=variables)


def test_switches_of_the_release_and_the_python_of_the_other_are_tried() -> None:
    tried = names(end("jax-old", "0.4.31", python="3.10"), end())
    assert {"no-thunks", "keep-memory", "py3.10"} <= tried.keys()
    assert tried["no-thunks"].variables == {"XLA_FLAGS": "--xla_cpu_use_thunk_runtime=false"}
    assert tried["py3.10"].python == "3.10"


def test_a_switch_that_the_changed_release_has_already_is_left_out() -> None:
    flags = {"XLA_FLAGS": "--a=1 --xla_cpu_use_thunk_runtime=false"}
    assert "no-thunks" not in names(end("jax-old"), end(env=flags))


def test_variables_that_only_the_other_release_has_are_tried() -> None:
    tried = names(end("jax-old", env={"A_B": "1", "C": "2"}), end(env={"C": "2"}))
    assert tried["as-jax-old-a-b"].variables == {"A_B": "1"}
    assert not any(each.change == "C=2" for each in tried.values())


def test_a_switch_is_the_same_image_with_another_variable() -> None:
    matrix, bad = load(ROOT / "matrix.yaml", networks=False), end("jax-new", env={"XLA_FLAGS": "--a=1"})
    matrix = matrix.with_environments({**matrix.environments, "jax-new": bad.environment}, {}, {})
    candidate = switch("b", XLA_FLAGS="--b=2", C="3")
    changed = environment_of(matrix, bad, candidate, "cpu")
    assert changed.env == {"XLA_FLAGS": "--a=1 --b=2", "C": "3"}
    name = environment_name(bad, candidate)
    assert name == "jax-new-b"
    both = matrix.with_environments({**matrix.environments, name: changed}, {}, {})
    assert both.image_of(name) == "jax-new"


def test_a_package_replaces_the_requirement_of_its_name_and_is_built() -> None:
    matrix, bad = load(ROOT / "matrix.yaml", networks=False), end()
    candidate = Candidate(name="numpy-1", kind="package", change="numpy 1", pins=("numpy==1",))
    changed = environment_of(matrix, bad, candidate, "cpu")
    assert changed.requirements == ("jax==0.4.33", "scipy", "numpy==1")
    assert (changed.lock, changed.extends) == (None, None)
    assert candidate.is_built


def test_another_python_has_its_own_base_image() -> None:
    matrix, bad = load(ROOT / "matrix.yaml", networks=False), end(base="python:3.11-slim")
    candidate = Candidate(name="py3.10", kind="python", change="Python 3.10", python="3.10")
    changed = environment_of(matrix, bad, candidate, "cpu")
    assert (changed.python, changed.base) == ("3.10", "python:3.10-slim")


def test_several_are_one_with_the_flags_of_all_and_the_first_of_two_values() -> None:
    package = Candidate(name="numpy-1", kind="package", change="numpy 1", pins=("numpy==1",))
    parts = (switch("a", XLA_FLAGS="--a=1", X="1"), switch("b", XLA_FLAGS="--b=2", X="2"), package)
    both = together(parts)
    assert both.variables == {"XLA_FLAGS": "--a=1 --b=2", "X": "1"}
    assert both.pins == ("numpy==1",)
    assert both.change == "a + b + numpy-1"


def test_names_are_ids_of_environments() -> None:
    long = end(f"jax-{'9' * LONGEST_ID}@env:A=1")
    assert len(environment_name(long, switch("no-thunks"))) <= LONGEST_ID
    assert environment_name(end("jax-new@env:A_B=1"), switch("x")) == "jax-new-env-a-b-1-x"
