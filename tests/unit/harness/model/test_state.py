"""A state that is loaded: what both sides have is written, the rest stays, and is named."""

from typing import Any

import numpy as np
import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import state

WEIGHT = np.random.RandomState(0).rand(3, 2).astype("float32")
OTHER = WEIGHT + 1
MASK = np.tril(np.ones((2, 2), "float32"))


def no_tensor(_value: Any) -> None:
    """Know no framework."""


class Side:
    """Arrays of an environment, by name, in a store that counts what is read and written."""

    def __init__(self, aliases: dict[str, list[str]] | None = None, **arrays: Any) -> None:
        """Build it."""
        self.arrays = {name.replace("__", "."): array.copy() for name, array in arrays.items()}
        self.calls: list[str] = []
        self.store = state.Store(self.arrays, self.read, self.write, aliases)  # type: ignore[no-untyped-call]

    def read(self) -> list[Any]:
        """Return all arrays."""
        self.calls.append("read")
        return list(self.arrays.values())

    def write(self, values: list[Any]) -> None:
        """Take all arrays that are given."""
        self.calls.append("write")
        self.arrays = {
            name: old if new is None else new for (name, old), new in zip(self.arrays.items(), values, strict=True)
        }

    def load(self, **given: Any) -> state.Loaded:
        """Load a state."""
        named = [(name.replace("__", "."), array) for name, array in given.items()]
        return state.load([self.store], named, no_tensor)


def test_a_state_of_the_same_names_is_read_once_and_written_once() -> None:
    arrays: dict[str, Any] = {f"net__{number}": WEIGHT for number in range(200)}
    side = Side(**arrays)
    loaded = side.load(**{f"net__{number}": OTHER for number in range(200)})
    assert (loaded.shared, loaded.note(), side.calls) == (200, "", ["read", "write"])
    assert all((array == OTHER).all() for array in side.arrays.values())


@pytest.mark.parametrize("wrapped", ["net___orig_mod__a", "module__net__a", "net__module___orig_mod__a"])
def test_a_wrapper_changes_no_name(wrapped: str) -> None:
    arrays: dict[str, Any] = {wrapped: WEIGHT}
    side = Side(**arrays)
    assert [name for name, _ in state.read([side.store], no_tensor)] == ["net.a"]
    assert side.load(net__a=OTHER).shared == 1
    assert (side.arrays[wrapped.replace("__", ".")] == OTHER).all()


def test_any_of_the_names_of_a_tensor_will_do() -> None:
    side = Side({"net.a": ["compiled._orig_mod.a"]}, net__a=WEIGHT)
    assert (side.load(compiled__a=OTHER).note(), side.arrays["net.a"].tolist()) == ("", OTHER.tolist())


def test_what_the_base_alone_has_is_named_and_excuses_nothing() -> None:
    loaded = Side(a=WEIGHT).load(a=OTHER, mask=MASK, steps=np.array(3))
    assert (loaded.shared, loaded.note(), loaded.is_drawn) == (1, "only the base's state has mask", False)


def test_what_this_environment_alone_has_stays_and_is_named() -> None:
    side = Side(a=WEIGHT, mask=MASK, steps=np.array(3))
    loaded = side.load(a=OTHER)
    assert loaded.note() == "only this environment's state has mask, as it was built"
    assert not loaded.is_drawn
    assert (side.arrays["mask"] == MASK).all()
    assert Side(a=WEIGHT, b=WEIGHT).load(a=OTHER).is_drawn


def test_nothing_in_common_is_nothing_shared() -> None:
    side = Side(a=WEIGHT)
    loaded = side.load(b=OTHER)
    assert (loaded.shared, loaded.only_given, loaded.only_here, side.calls) == (0, ["b"], ["a"], ["read"])


def test_weights_of_another_shape_are_wrong_and_a_mask_of_another_shape_stays() -> None:
    with pytest.raises(CellFailure, match=r"^a has the shape \(3, 2\), and \(2, 3\) in the base's state$") as caught:
        Side(a=WEIGHT).load(a=OTHER.T)
    assert caught.value.kind == "wrong-result"
    side = Side(a=WEIGHT, mask=MASK)
    assert side.load(a=OTHER, mask=np.ones((4, 4), "float32")).only_here == ["mask"]
    assert (side.arrays["mask"] == MASK).all()


def test_names_that_only_a_wrapper_tells_apart_stay() -> None:
    side = Side(module__a=WEIGHT, a=MASK)
    assert [name for name, _ in state.read([side.store], no_tensor)] == ["a", "module.a"]


def test_complex_numbers_come_back() -> None:
    side = Side(a=WEIGHT * 1j)
    (pair,) = state.read([side.store], no_tensor)
    assert pair[1].shape == (2, 3, 2)
    side.load(a=np.stack([OTHER, WEIGHT]))
    assert (side.arrays["a"] == OTHER + 1j * WEIGHT).all()
