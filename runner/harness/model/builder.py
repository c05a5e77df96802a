"""Builds programs of a user's class, and makes the calls that are checked, each with generators of a seed of its own."""

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

    def with_other_generators(self, precision, number=1):
        """Return a new program whose framework, and the generators that it holds, are seeded with other numbers.

        ``random`` draws the same.

        Args:
            precision: of the program.
            number: which other numbers, from 1 on.
        """
        implementation = self.implementation

        class OtherSeed(implementation):
            """Seeds the framework otherwise."""

            def seed(self, seed):
                implementation.seed(self, seed + number * OTHER_SEED)

        program = OtherSeed(self.case, self.module, self.weights, self.device, precision)
        program.keep_generators(self.case["seed"] + number * OTHER_SEED)
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


def seed(program: "object", call: "int") -> "None":
    """Seed all generators before a call that is checked, alike in every environment.

    Args:
        program: a program of a user's class.
        call: 0 for outputs, else the number of the training step.
    """
    construct.seed_generators(program.case["seed"] + call, program.seed)
    program.reset_metrics()


def outputs(program: "object") -> "list":
    """Return the outputs of the program's next forward pass; nothing where it has none."""
    if not program.has_outputs():
        return []
    seed(program, 0)
    return program.outputs()


def losses(program: "object", values: "tuple" = ()) -> "list":
    """Return the losses of STEPS steps, given those that were made already."""
    values = list(values)
    while len(values) < STEPS:
        seed(program, len(values) + 1)
        values.append(program.read_loss(program.train()))
    return values


def results(program: "object", case: "dict") -> "tuple":
    """Return (outputs, losses of the first steps) of a program that stands at its first state."""
    return outputs(program), losses(program) if "train" in case["phases"] else []


class Run(object):
    """What a user's class gives from one state, in the calls that are checked.

    Attributes:
        outputs: [(name, array)] of the first forward pass.
        left_out: the names of what is no tensor in them.
        again: of a second one, where a state that was loaded again does not bring the first back.
        losses: of the first steps.
        state: [(name, array)] after the steps.
        trained: [(name, array)], the outputs after the steps.
        repeats: whether the first state brings the loss of the first step back, see ``changing.repeats_first_loss``.
    """

    def __init__(self) -> "None":
        """Hold nothing."""
        self.outputs, self.again, self.losses, self.state, self.trained = [], [], [], [], []
        self.left_out, self.repeats = [], False

    def train(self, program: "object") -> "None":
        """Have a program that stands at the state make the steps."""
        self.losses = losses(program)
        self.state = program.state()
        self.trained = outputs(program)

    def drop(self, phase: "str") -> "None":
        """Hold nothing of a phase: it fails."""
        if phase == "forward":
            self.outputs, self.again, self.trained = [], [], []
        else:
            self.losses, self.state, self.trained = [], [], []


def run(make: "object", state: "list", case: "dict", apart: "bool") -> "Run":
    """Return what a user's class gives from a state.

    Args:
        make: returns a new program.
        state: is loaded; empty where there is none.
        case: its specification.
        apart: whether the steps are those of another program than the forward pass, as they are in cells.
    """
    made, program = Run(), started(make, state)
    made.outputs = outputs(program)
    if "train" in case["phases"]:
        if apart and made.outputs:
            program = None
            program = started(make, state)
        elif state:
            program.load_state(state)
        made.train(program)
    return made


def started(make: "object", state: "list") -> "object":
    """Return a new program that stands at a state; as it was built where that is empty."""
    program = make()
    if state:
        program.load_state(state)
    return program


def start(program: "object", by: "str", groups: "dict") -> "object":
    """Return a program, at the state that all environments start from: the base's, or one that each of them draws."""
    if by == "drawn":
        program.draw_state()
    elif "state" in groups:
        program.load_state(groups["state"])
    return program
