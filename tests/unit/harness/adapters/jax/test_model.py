"""Which arrays of a user's network in JAX are waited for after a call, with stand-ins for arrays."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from runner.harness.adapters.jax.model import LOOK_EVERY, LOOKS, NOTHING, TREE, WAITS, WAYS, UserModel, way
from runner.harness.model import held


class Array:
    """An array that a computation may still write to."""

    def __init__(self, *, ready: bool = True) -> None:
        """Note no wait."""
        self.ready, self.waits = ready, 0

    def is_ready(self) -> bool:
        """Return whether it has been computed."""
        return self.ready

    def block_until_ready(self) -> None:
        """Wait."""
        self.ready = True
        self.waits += 1


class Weights(dict[str, Array]):
    """A tree of arrays."""


class Box:
    """An object of the user's that another holds."""

    def __init__(self) -> None:
        """Make an array."""
        self.inside = Array()


class Network:
    """A user's object: attributes with arrays."""

    def __init__(self) -> None:
        """Make data and weights, some in a tree and in an object."""
        self.data, self.weights, self.tree, self.box = Array(), Array(), Weights(bias=Array()), Box()


def leaves(value: Any) -> list[Any]:
    """Return the leaves of a tree, as JAX does."""
    return list(value.values()) if isinstance(value, Weights) else [value]


def wait(trees: list[Weights]) -> None:
    """Wait for the arrays in trees, as JAX does."""
    for array in (array for tree in trees for array in tree.values()):
        array.block_until_ready()


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def program(network: Network, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the network as an implementation that has not been called yet."""
    for kind, how in ((Box, NOTHING), (Weights, TREE), (Array, WAITS)):
        monkeypatch.setitem(WAYS, kind, how)  # what JAX itself would say
    jax = SimpleNamespace(tree_util=SimpleNamespace(tree_leaves=leaves), block_until_ready=wait)
    monkeypatch.setitem(sys.modules, "jax", jax)
    chosen: Any = UserModel.__new__(UserModel)
    chosen.readers = [held.reader(network), held.reader(network.box)]
    return chosen


def call(program: Any, returned: Array | None) -> None:
    """Call the program, which returns an array or nothing, and wait."""
    program.timed(lambda: returned)()
    program.synchronize()
    assert program.returned is None


def test_what_a_call_returns_is_waited_for_and_attributes_that_are_ready_are_not(
    program: Any, network: Network
) -> None:
    """Waiting for an array takes as long as a small operation does."""
    for _ in range(LOOKS + LOOK_EVERY):
        returned = Array(ready=False)
        call(program, returned)
        assert returned.waits == 1
    attributes = (network.data, network.weights, network.tree["bias"], network.box.inside)
    assert [each.waits for each in attributes] == [0, 0, 0, 0]


def assign(network: Network, name: str) -> Array:
    """Assign an array that is not ready to an attribute, or in place within one; return it."""
    array = Array(ready=False)
    if name == "tree":
        network.tree["bias"] = array
    elif name == "box":
        network.box.inside = array
    else:
        setattr(network, name, array)
    return array


@pytest.mark.parametrize("name", ["weights", "tree", "box", "momentum"])
@pytest.mark.parametrize("first", [1, LOOKS, 2 * LOOK_EVERY])
def test_attribute_that_was_late_once_is_waited_for_after_each_call(
    program: Any, network: Network, name: str, first: int
) -> None:
    """The attribute of a network of which an update is a computation of its own; one of them is new."""
    for _ in range(first - 1):
        call(program, Array())
    for _ in range(LOOKS + 1):
        updated = assign(network, name)
        call(program, Array())
        assert (updated.waits, network.data.waits) == (1, 0)


def test_attributes_are_looked_at_after_each_call_that_returns_nothing(program: Any, network: Network) -> None:
    for _ in range(LOOKS + 1):
        call(program, None)
    updated = assign(network, "weights")
    call(program, None)
    assert updated.waits == 1


def test_waiting_without_a_call_looks_at_nothing(program: Any, network: Network) -> None:
    """So the time of a wait can be measured, and takes no look away."""
    call(program, Array())
    updated = assign(network, "weights")
    program.synchronize()
    assert updated.waits == 0


def test_array_that_a_computation_has_overwritten_is_not_waited_for(program: Any, network: Network) -> None:
    gone: Any = assign(network, "weights")
    gone.is_deleted = lambda: True
    call(program, Array())
    assert gone.waits == 0


def test_a_module_that_an_attribute_holds_is_not_waited_for() -> None:
    """``self.jax = jax``: the module has a function ``block_until_ready`` for other values."""
    module = ModuleType("jax")
    vars(module)["block_until_ready"] = len
    assert way(module) == NOTHING
    assert way(Array()) == WAITS
