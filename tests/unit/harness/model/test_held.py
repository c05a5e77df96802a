"""What is found in a user's object: in attributes, containers, objects and closures, within bounds."""

import functools
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runner.harness.model import held

walk: Any = held.walk
X = np.zeros(3)


class Trainer:
    """An object of a user's class, with a cycle."""

    def __init__(self, value: Any) -> None:
        """Build it."""
        self.network = value
        self.owner = self

    def step(self) -> None:
        """Do nothing."""


class Slotted:
    """Keeps its value without a dictionary."""

    __slots__ = ("missing", "network")

    def __init__(self) -> None:
        """Build it."""
        self.network = X


@dataclass
class Parts:
    """Two towers."""

    towers: list[Any]


class Derived(threading.Thread):
    """An object of a user's class that is derived from one of the standard library."""

    def __init__(self) -> None:
        """Build it."""
        super().__init__()
        self.network = X


def closure() -> Callable[[], Any]:
    """Return a function that keeps a value."""
    network = X
    return lambda: network


def names(**attributes: Any) -> list[str]:
    """Return where X is found in an object with attributes."""
    return [name for name, value in walk(SimpleNamespace(**attributes)) if value is X]


class Library:
    """An object like those of llvmlite: without a dict, and with an answer for each name that somebody reads."""

    __slots__ = ("_held", "network")

    def __init__(self) -> None:
        """Build it."""
        self.network = X

    def __getattr__(self, name: str) -> int:
        return 3


class Lazy:
    """An object whose class computes its dict."""

    network = X

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return {"network": self.network}


class Empty:
    """An object without a dict and without slots, as those of extension modules are."""

    __slots__ = ()


PLACES: dict[str, tuple[Any, list[str]]] = {
    "attribute": (X, ["a"]),
    "list": ([1, X], ["a.1"]),
    "tuple in a dict": ({"b": (X,)}, ["a.b.0"]),
    "object": (Trainer(X), ["a.network"]),
    "object in a list": ([Trainer(X)], ["a.0.network"]),
    "object in an object": (Trainer(Trainer(X)), ["a.network.network"]),
    "dataclass": (Parts([X, X]), ["a.towers.0", "a.towers.1"]),
    "slots": (Slotted(), ["a.network"]),
    "an object that answers each name": (Library(), ["a.network"]),
    "an object that computes its dict": (Lazy(), []),
    "a subclass of a standard class": (Derived(), ["a.network"]),
    "closure": (closure(), ["a.network"]),
    "method": (Trainer(X).step, ["a.self.network"]),
    "partial": (functools.partial(print, X, sep=X), ["a.0", "a.sep"]),
    "a lock": (threading.Lock(), []),
    "a class": (Trainer, []),
    "a module": (functools, []),
    "another array": (np.zeros(3), []),
    "too deep": ([[[[[[X]]]]]], []),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_value_is_found_by_its_path(name: str) -> None:
    value, expected = PLACES[name]
    assert names(a=value) == expected


def test_an_object_that_is_reached_twice_is_looked_into_once() -> None:
    shared = Trainer(X)
    assert names(a=shared, b=shared) == ["a.network"]


def test_a_value_with_two_names_has_both() -> None:
    assert names(b=X, a=[X]) == ["b", "a.0"]


def test_the_object_itself_comes_first_with_an_empty_name() -> None:
    root = SimpleNamespace(a=1)
    assert list(walk(root)) == [("", root), ("a", 1)]


def test_an_object_of_a_framework_is_yielded_and_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    framework = type("Module", (), {"__module__": "torch.nn.modules"})
    network = type("Net", (framework,), {"__module__": "my_network"})()
    network.inside = X
    assert [name for name, value in walk(SimpleNamespace(net=network)) if value is network] == ["net"]
    assert names(net=network) == []


def test_what_numba_has_compiled_is_not_looked_into() -> None:
    dispatcher = type("Dispatcher", (), {"__module__": "numba.core.dispatcher"})
    compiled = type("CPUDispatcher", (dispatcher,), {"__module__": "numba.core.registry"})()
    compiled.inside = X
    assert names(taken=compiled) == []


def test_a_class_may_have_something_else_in_place_of_its_module() -> None:
    odd = type("Odd", (Trainer,), {"__module__": property(lambda _: "a")})  # as functions of Cython have
    assert held.module_of(odd) == Trainer.__module__
    assert names(a=odd(X)) == ["a.network"]


def test_an_object_that_is_whole_is_not_looked_into() -> None:
    pairs = walk(SimpleNamespace(a=Trainer(X)), lambda value: isinstance(value, Trainer))
    assert [name for name, _ in pairs] == ["", "a"]


def test_a_data_set_in_a_list_costs_no_more_than_the_bound() -> None:
    assert len(list(walk(SimpleNamespace(a=[[0] * 999] * 99, b=[list(range(999)) for _ in range(99)])))) == held.LIMIT
    assert names(a=[0] * (held.LIMIT + 1), b=X) == ["b"]


READ = [(Parts([]), [[]]), (Slotted(), [X]), (Library(), [X]), (Lazy(), []), (Empty(), []), (re.compile("x"), [])]


@pytest.mark.parametrize(("value", "expected"), READ)
def test_a_reader_returns_the_values_of_the_attributes(value: Any, expected: list[Any]) -> None:
    read: Any = held.reader(value)
    assert list(read()) == expected
