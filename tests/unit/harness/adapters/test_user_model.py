"""A user's network in NumPy: where its state is found, when it is built, and what is put back with it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runner.harness.adapters.numpy import UserModel
from runner.harness.errors import CellFailure
from runner.harness.model import blob, builder, drawn, reference

CASE = {
    "seed": 3,
    "sizes": {},
    "classes": {"numpy": "NumpyModel"},
    "takes_weights": [],
    "takes_precision": [],
    "phases": ["forward", "train"],
    "tolerance": None,
    "entry": "net.py",
}


class Network:
    """Weights, and a generator of its own."""

    def __init__(self) -> None:
        """Build it."""
        self.weights = np.random.rand(4, 3)  # noqa: NPY002  the generator that the harness seeds
        self.noise = np.random.default_rng(5)


class NumpyModel:
    """Keeps its network in an object of the program."""

    def __init__(self, random: Any) -> None:
        """Build it."""
        self.network = Network()
        self.x = random.rand(2, 4)

    def forward(self) -> Any:
        """Return outputs with noise."""
        return self.x.dot(self.network.weights) + self.network.noise.random(3)

    def train(self) -> Any:
        """Make a step."""
        outputs = self.x.dot(self.network.weights)
        self.network.weights -= 0.1 * self.x.T.dot(outputs)
        return (outputs**2).mean()


class Lazy(UserModel):
    """Has weights once it was called."""

    def is_unbuilt(self) -> bool:
        """See UserModel."""
        return not hasattr(self.model, "weights")


def made(kind: Any, implementation: Any = UserModel, **changes: Any) -> Any:
    """Return a program of a class."""
    return builder_of(kind, implementation, **changes)("fp32")


def builder_of(kind: Any, implementation: Any = UserModel, **changes: Any) -> Any:
    """Return the Builder of a class."""
    return builder.Builder(implementation, SimpleNamespace(NumpyModel=kind), {**CASE, **changes}, "cpu")


def test_the_state_is_found_in_an_object_of_the_program() -> None:
    program = made(NumpyModel)
    assert [name for name, _ in program.state()] == ["network.weights", "x"]


def test_a_state_that_is_loaded_puts_generators_back() -> None:
    program = made(NumpyModel)
    state, first = program.state(), program.outputs()
    assert (program.outputs()[0][1] != first[0][1]).any()
    program.train()
    program.load_state(state)
    assert (program.outputs()[0][1] == first[0][1]).all()
    program.reset()
    assert (program.outputs()[0][1] == first[0][1]).all()


def test_results_that_depend_on_a_generator_of_the_object_are_seen_to() -> None:
    facts, groups = reference.compute(builder_of(NumpyModel, phases=["forward"]), "fp32")
    assert (facts["by"], facts["varies"], list(facts["wider"])) == ("state", True, ["outputs"])
    assert [name for name, _ in groups["state"]] == ["network.weights", "x"]


def test_a_network_without_weights_is_called_once_before_they_are_read() -> None:
    class Late(NumpyModel):
        calls = 0

        def forward(self) -> Any:
            self.calls += 1
            if self.calls == 1:
                self.weights = np.random.rand(4)  # noqa: NPY002
            return self.x.dot(self.weights)

    program = made(Late, Lazy, phases=["forward"])
    assert "weights" in dict(program.state())
    program.load_state(program.state())
    assert program.model.calls == 1
    assert program.building_seconds > 0


def test_what_only_one_side_has_is_a_note() -> None:
    program = made(NumpyModel)
    program.load_state([("network.weights", np.ones((4, 3))), ("network.mask", np.ones(3))])
    assert program.notes() == [
        "only the base's state has network.mask, and only this environment's state has x, as it was built"
    ]
    program.reset()
    assert program.notes()


def test_a_state_that_is_too_large_is_drawn_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(NumpyModel):
        def forward(self) -> Any:
            return self.x.dot(self.network.weights)

    monkeypatch.setattr(blob, "MAX_BYTES", 100)
    facts, groups = reference.compute(builder_of(Plain), "fp32")
    assert (facts["by"], facts["reason"], sorted(groups)) == ("drawn", "", ["outputs", "trained"])
    other: Any = builder.start(made(Plain), facts["by"], groups)
    assert (other.outputs()[0][1] == groups["outputs"][0][1]).all()
    assert builder.losses(other) == facts["losses"]
    weights = dict(other.state())["network.weights"]
    assert (weights != dict(drawn.of(other.state(), 4))["network.weights"]).any()


@pytest.mark.parametrize(("broken", "kept"), [("train", "outputs"), ("forward", "losses")])
def test_a_mistake_in_a_method_leaves_the_other_phase_alone(broken: str, kept: str) -> None:
    def fail(_: Any) -> None:
        raise ValueError("no such width")

    class Broken(NumpyModel):
        pass

    setattr(Broken, broken, fail)
    facts, groups = reference.compute(builder_of(Broken), "fp32")
    assert facts["silent"] == {broken: f"{broken}() fails in the base: ValueError: no such width"}
    assert bool(groups["outputs"]) == (kept == "outputs")
    assert len(facts["losses"]) == (3 if kept == "losses" else 0)
    with pytest.raises(ValueError, match="no such width"):
        reference.compute(builder_of(Broken, phases=[broken]), "fp32")


def test_both_mistakes_are_raised() -> None:
    class Broken:
        def forward(self) -> None:
            """Return nothing."""

        train = forward

    with pytest.raises(CellFailure, match=r"train\(\) returned None: return the loss$"):
        reference.compute(builder_of(Broken), "fp32")


class Variants:
    """Computes in one of several ways, and has a phase of its own."""

    def __init__(self, variant: str = "none") -> None:
        """Keep the variant."""
        self.variant = variant

    def decode(self) -> Any:
        """Return numbers that show the variant."""
        return np.full(4, float(len(self.variant)))

    def forward(self) -> Any:
        """Return other numbers."""
        return np.zeros(4)

    train = outputs = forward


def test_a_class_gets_the_variant_of_its_case() -> None:
    assert made(Variants, variant="compile").model.variant == "compile"
    assert made(Variants).model.variant == "none"


def test_a_phase_of_the_file_is_called_and_read_as_a_forward_pass_is() -> None:
    program = made(Variants, method="decode", phases=["forward"], variant="abc")
    assert program.forward().tolist() == [3.0] * 4
    assert [array.tolist() for _, array in program.outputs()] == [[3.0] * 4]
    with pytest.raises(CellFailure, match=r"NumpyModel has no train\(\)"):
        program.train()


def test_a_failure_names_the_phase_of_the_file() -> None:
    class Nothing(Variants):
        """Returns nothing."""

        def decode(self) -> Any:
            """Return nothing."""

    with pytest.raises(CellFailure, match=r"decode\(\) returned None: return the outputs"):
        made(Nothing, method="decode", phases=["forward"]).outputs()
    with pytest.raises(CellFailure, match=r"NumpyModel has no prefill\(\)"):
        made(Variants, method="prefill", phases=["forward"]).forward()
