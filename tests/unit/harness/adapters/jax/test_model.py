"""Which arrays of a user's network in JAX are waited for after a call, with stand-ins for arrays."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness.adapters.jax.model import NOTHING, TREE, WAYS, UserModel
from runner.harness.model import held


class Array:
    """An array that a computation may still write to."""

    def __init__(self) -> None:
        """Note no wait."""
        self.waits = 0

    def block_until_ready(self) -> None:
        """Wait."""
        self.waits += 1


class Box:
    """An object of the user's that another holds."""

    def __init__(self) -> None:
        """Make an array."""
        self.inside = Array()


class Network:
    """A user's object: attributes with arrays."""

    def __init__(self) -> None:
        """Make data and weights."""
        self.data, self.weights, self.box = Array(), Array(), Box()


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def program(network: Network, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the network as an implementation whose first call has been waited for."""
    monkeypatch.setitem(WAYS, Box, NOTHING)  # what JAX itself says of an object that is no tree
    chosen: Any = UserModel.__new__(UserModel)
    chosen.readers = [held.reader(network), held.reader(network.box)]
    chosen.synchronize()
    return chosen


def test_first_wait_is_for_all_attributes(program: Any, network: Network) -> None:
    assert (network.data.waits, network.weights.waits, network.box.inside.waits) == (1, 1, 1)


def test_what_a_call_returns_and_assigns_is_waited_for_and_nothing_else(program: Any, network: Network) -> None:
    """Waiting for an array takes as long as a small operation does."""
    for _ in range(2):
        updated, inside, loss = Array(), Array(), Array()
        network.weights, network.box.inside = updated, inside
        program.returned = loss
        program.synchronize()
        assert (updated.waits, inside.waits, loss.waits, network.data.waits) == (1, 1, 1, 1)
    assert program.returned is None


class Weights(dict[str, Array]):
    """A dict of weights, whose arrays a step replaces one by one."""


def test_what_a_call_replaces_within_a_tree_is_waited_for(
    program: Any, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training step that updates a dict in place, and returns its loss."""
    monkeypatch.setitem(WAYS, Weights, TREE)
    leaves = SimpleNamespace(tree_leaves=lambda tree: list(tree.values()))
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(tree_util=leaves))
    later: Any = network
    later.tree = Weights(kernel=Array(), bias=Array())
    program.synchronize()
    updated = later.tree["kernel"] = Array()
    before = later.tree["bias"].waits
    program.returned = Array()
    program.synchronize()
    assert (updated.waits, later.tree["bias"].waits) == (1, before)


def test_a_new_attribute_is_waited_for(program: Any, network: Network) -> None:
    later: Any = network
    later.momentum = Array()
    program.returned = Array()
    program.synchronize()
    assert later.momentum.waits == 1
