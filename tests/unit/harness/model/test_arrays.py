"""What a method may return as outputs, by which names its tensors are compared, and what is left out."""

import collections
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import arrays

X = np.arange(6.0).reshape(2, 3)


class Tensor:
    """A tensor of a framework, which holds itself as an attribute."""

    def __init__(self) -> None:
        """Build it."""
        self.data = self


class Cache:
    """An object that holds tensors, deep inside of what is returned."""

    def __init__(self) -> None:
        """Build it."""
        self.keys = [X]


@dataclass
class Output:
    """Outputs as a dataclass."""

    logits: Any = field(default_factory=Tensor)
    hidden: Any = None
    cache: Any = None


class ModelOutput(collections.OrderedDict[str, Any]):
    """A dictionary whose entries are attributes too."""


class Result:
    """Outputs as the attributes of an object."""

    def __init__(self, **attributes: Any) -> None:
        """Build it."""
        self.__dict__.update(attributes)


class Sparse:
    """A matrix of SciPy."""

    def toarray(self) -> Any:
        """Return all numbers."""
        return X


class Pair(NamedTuple):
    """A named tuple."""

    a: Any
    b: Any


NAMED: dict[str, tuple[Any, list[str]]] = {
    "a tensor": (Tensor(), [""]),
    "a tuple": ((Tensor(), X), ["0", "1"]),
    "a named tuple": (Pair(Tensor(), X), ["0", "1"]),
    "a dictionary": ({"b": X, "a": [X, None]}, ["a.0", "b"]),
    "a dataclass": (Output(), ["logits"]),
    "a dataclass in a list": ([Output(hidden=(X, X))], ["0.hidden.0", "0.hidden.1", "0.logits"]),
    "a model output": (ModelOutput(logits=X, hidden=[X]), ["hidden.0", "logits"]),
    "an object": (Result(logits=X, _private=X), ["logits"]),
    "a sparse matrix": (Sparse(), [""]),
    "numbers": ([1.0, 2.0], [""]),
    "a number": (3, [""]),
}
LEFT_OUT: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "a cache": (Output(cache=Cache()), [("cache", "a Cache")]),
    "a text": ((X, "name"), [("1", "a str")]),
    "texts of an object": (Result(logits=X, name="x"), [("name", "a str")]),
}
NO_TENSOR: dict[str, tuple[Any, str]] = {
    "nothing": (None, "forward() returned None: return the outputs"),
    "an empty list": ([], "forward() returned no tensor: return the outputs"),
    "a text": ({"name": "x"}, "forward() returned a str: " + arrays.NO_TENSOR.partition(": ")[2]),
    "an object": (Cache, "forward() returned a type: " + arrays.NO_TENSOR.partition(": ")[2]),
}


def as_array(value: Any) -> Any:
    return X if isinstance(value, Tensor) else None


@pytest.mark.parametrize("name", NAMED)
def test_each_tensor_has_the_name_of_its_place(name: str) -> None:
    value, expected = NAMED[name]
    left_out: list[str] = []
    assert [each for each, _ in arrays.named(value, "forward", as_array, left_out)] == expected
    assert left_out == []


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_no_tensor_is_left_out_and_named(name: str) -> None:
    value, expected = LEFT_OUT[name]
    left_out: list[tuple[str, str]] = []
    assert len(arrays.named(value, "forward", as_array, left_out)) == 1
    assert left_out == expected
    with pytest.raises(CellFailure, match=r"state\(\) returned a (Cache|str): "):
        arrays.named(value, "state", as_array)


@pytest.mark.parametrize("name", NO_TENSOR)
def test_outputs_without_a_tensor_are_a_mistake(name: str) -> None:
    value, expected = NO_TENSOR[name]
    with pytest.raises(CellFailure) as caught:
        arrays.named(value, "forward", as_array, [])
    assert (caught.value.kind, caught.value.reason) == ("crash", expected)
