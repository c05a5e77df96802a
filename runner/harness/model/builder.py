"""Builds programs of a user's class, and runs them as a reference is made."""

from . import construct
from ..verify.reference import STEPS

OTHER_SEED = 7919  # is added to a seed, to see whether the results depend on it


class Builder(object):
    """Builds programs of a user's class; ``weights`` are drawn once."""

    def __init__(self, implementation: "type", module: "object", case: "dict", device: "str") -> "None":
        """Take the class ``UserModel`` of an adapter, the user's module, the case and the device."""
        self.implementation, self.module, self.case, self.device = implementation, module, case, device
        self.weights = construct.weights(module, case, implementation.framework)

    def __call__(self, precision: "str") -> "object":
        """Return a new program."""
        return self.implementation(self.case, self.module, self.weights, self.device, precision)

    def with_other_generators(self, precision):
        """Return a new program whose framework, and the generators that it holds, were seeded with another number.

        ``random`` draws the same numbers.
        """
        implementation = self.implementation

        class OtherSeed(implementation):
            """Seeds the framework otherwise."""

            def seed(self, number):
                implementation.seed(self, number + OTHER_SEED)

        program = OtherSeed(self.case, self.module, self.weights, self.device, precision)
        program.keep_generators(self.case["seed"] + OTHER_SEED)
        return program

    def with_other_data(self, precision: "str") -> "object":
        """Return a new program whose ``random``, and whose framework, draw other numbers."""
        case = dict(self.case, seed=self.case["seed"] + OTHER_SEED)
        return self.implementation(case, self.module, self.weights, self.device, precision)

    def with_moved_data(self, precision: "str", share: "float") -> "object":
        """Return a new program whose ``random`` draws floats that are moved by a share of them."""
        case = dict(self.case, moved=share)
        return self.implementation(case, self.module, self.weights, self.device, precision)

    def takes(self, name: "str") -> "bool":
        """Return whether the user's class takes an argument."""
        make = getattr(self.module, self.case["classes"][self.implementation.framework])
        return name in construct.taken(make, {name: None})


def start(program: "object", by: "str", groups: "dict") -> "object":
    """Return a program, at the state that all environments start from: the base's, or one that each of them draws."""
    if by == "drawn":
        program.draw_state()
    elif "state" in groups:
        program.load_state(groups["state"])
    return program


def losses(program: "object", values: "tuple" = ()) -> "list":
    """Return the losses of STEPS steps, given those that were made already."""
    values = list(values)
    while len(values) < STEPS:
        values.append(program.read_loss(program.train()))
    return values


def results(program: "object", case: "dict") -> "tuple":
    """Return (outputs, losses of the first steps) of a program that stands at its first state."""
    outputs = program.outputs() if program.has_outputs() else []
    return outputs, losses(program) if "train" in case["phases"] else []
