"""Generators of random numbers that a user's object holds: they are put back with its state, and seeded otherwise on request."""

import random

from . import held

CLASSES = {
    ("torch", "Generator"),
    ("tensorflow", "Generator"),
    ("numpy", "Generator"),
    ("numpy", "RandomState"),
    ("mtrand", "RandomState"),  # NumPy before 1.17
    ("random", "Random"),
}
"""Package and name of their classes."""


def among(values: "list") -> "list":
    """Return the generators among values, each once."""
    distinct = []
    for value in values:
        if kind_of(value) and not any(value is each for each in distinct):
            distinct.append(value)
    return distinct


def kind_of(value: "object") -> "object":
    """Return the line of CLASSES for a generator; None for anything else."""
    if isinstance(value, random.SystemRandom):  # it has no state
        return None
    names = [(held.top_module(base), base.__name__) for base in type(value).__mro__]
    return next((name for name in names if name in CLASSES), None)


def kept(value: "object") -> "object":
    """Return a function that puts a generator back to where it stands now."""
    kind = kind_of(value)
    if kind == ("tensorflow", "Generator"):
        numbers = value.state.numpy()
        return lambda: value.state.assign(numbers)
    if kind == ("numpy", "Generator"):
        state = value.bit_generator.state
        return lambda: setattr(value.bit_generator, "state", state)
    if kind == ("random", "Random"):
        state = value.getstate()
        return lambda: value.setstate(state)
    state = value.get_state()
    return lambda: value.set_state(state)


def reseed(value: "object", number: "int") -> "None":
    """Seed a generator with another number, where releases may draw other numbers from one seed.

    RandomState and Python's generator draw the same in all releases.
    """
    kind = kind_of(value)
    if kind == ("torch", "Generator"):
        value.manual_seed(number)
    elif kind == ("tensorflow", "Generator"):
        value.reset_from_seed(number)
    elif kind == ("numpy", "Generator"):
        value.bit_generator.state = type(value.bit_generator)(number).state
