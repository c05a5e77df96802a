"""Whether a network still computes what it computed first: otherwise, its times are those of another computation.

Of outputs, only those that already differ from the base's, and that ``excuses`` has a reason for, are looked at here.
"""

import traceback

import numpy

from . import builder, carried, compare
from ..errors import CellFailure

LATER = "the network changes its results after its first calls: {}"
TIMED = "the network gives other results in the calls that are timed: {}"
MORE_STEPS = 32
"""Steps that are made where three change nothing: a class may update in some of its calls alone."""
NO_STEP = "train() no longer changes the state after the timing, and its first steps change {}: if a schedule has brought the "
NO_STEP += "learning rate to 0, keep it constant"
OTHER_LOSS = "train() gives the loss {:.6g} from the first state after the timing, and gave {:.6g} first (a schedule, or a step "
OTHER_LOSS += "that does less)"
SOME_STAY = "{} of the state stay as they are in the steps after the timing, and change in the first ones"
NEW_OBJECT = "the first call of a new object"
NEXT_CALLS = "a later call"


def check_later(values: "list", expected: "list", new: "object", compared: "dict", facts: "dict") -> "None":
    """Raise CellFailure where a new object gives the results of the base, and the one that was timed no longer does.

    A new object of an honest network whose results are others here, or differ from call to call, has others, too. Nothing
    is concluded where there is no second object: a device may have no memory for it.

    Args:
        values: outputs after the timing, [(name, array)].
        expected: the same of the base.
        new: returns those of the first call of a new object, of a file that is read anew.
        compared: ``limits`` and ``wider``, see ``compare.outputs``.
        facts: go into the failure.
    """
    try:
        first = new()
    except Exception:  # whatever a framework raises
        traceback.print_exc()
        return
    if not _difference(first, expected, NEW_OBJECT, compared):
        _fail_where_different(LATER, values, first, NEW_OBJECT, compared, facts)


def check_timed(values: "list", second: "list", compared: "dict", facts: "dict") -> "None":
    """Raise CellFailure where a call among those that were timed has other results than a later one.

    Args:
        values: outputs of the call, [(name, array)].
        second: those of a later call, which are known to be those of the base.
        compared: see ``check_later``.
        facts: go into the failure.
    """
    _fail_where_different(TIMED, values, second, NEXT_CALLS, compared, facts)


def repeats_first_loss(program: "object", state: "list", loss: "float", limits: "dict") -> "bool":
    """Return whether a program gives the loss of its first step again in both of two further steps from the first state.

    One that takes the next batch in each call does not: two numbers of calls that follow each other have no common divisor.

    Args:
        program: has made the first steps.
        state: the first one.
        loss: of the first step.
        limits: see ``compare.limits``.
    """
    for _ in range(2):
        program.load_state(state)
        builder.seed(program, 1)
        if compare.loss_difference([program.read_loss(program.train())], [loss], limits):
            return False
    return True


def changed_arrays(first: "list", after: "list") -> "set":
    """Return the names of the arrays of floats that are others after some steps."""
    after = dict(after)
    names = [name for name, array in first if array.dtype.kind == "f" and name in after]
    values = dict(first)
    return {name for name in names if not numpy.array_equal(values[name], after[name])}


class LaterSteps(object):
    """Training steps of a program that has been timed, from its first state.

    Attributes:
        losses: of STEPS steps.
        changed: the names of the arrays of floats that they change; where they change none, of MORE_STEPS further ones.
    """

    def __init__(self, program: "object") -> "None":
        """Make the steps."""
        program.reset()
        first = program.state()
        self.losses = builder.losses(program)
        self.changed = changed_arrays(first, program.state())
        if not self.changed:
            for _ in range(MORE_STEPS):
                program.train()
            self.changed = changed_arrays(first, program.state())

    def difference(self, first: "set", loss: "float", limit: "float", facts: "dict") -> "str":
        """Return how they differ from the first steps, as a sentence; empty where they do not.

        A schedule makes honest steps differ, so that alone is no failure.

        Args:
            first: the names of the arrays that the first steps change.
            loss: of the first step.
            limit: the largest error of that loss.
            facts: go into a failure.

        Raises:
            CellFailure: ``wrong-result`` where the first steps change the state and these change nothing.
        """
        stay = sorted(first - self.changed)
        names = carried.listed(["`{}`".format(name) for name in stay])
        if stay and not self.changed:
            raise CellFailure("wrong-result", NO_STEP.format(names), facts)
        if not compare.loss_error(self.losses[0], loss) <= limit:
            return OTHER_LOSS.format(self.losses[0], loss)
        return SOME_STAY.format(names) if stay else ""


def _fail_where_different(text, values, others, of, compared, facts):
    """Raise CellFailure with a text where results differ."""
    difference = _difference(values, others, of, compared)
    if difference:
        raise CellFailure("wrong-result", text.format(difference), facts)


def _difference(values, others, of, compared):
    """Return how results differ, as a sentence; empty where they agree."""
    try:
        compare.outputs(values, others, compared["limits"], of, {}, wider=compared["wider"])
    except CellFailure as failure:
        return failure.reason
    return ""
