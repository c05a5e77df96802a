"""Whether a network still computes what it computed first: otherwise, its times are those of another computation.

Of outputs, only those that already differ from the base's, and that ``excuses`` has a reason for, are looked at here.
"""

import traceback

import numpy

from . import builder, compare
from ..errors import CellFailure

LATER = "the network changes its results after its first calls: {}"
TIMED = "the network gives other results in the calls that are timed: {}"
NO_STEP = "train() no longer changes the state once it has been timed, and its first steps change {!r} and {} more of its "
NO_STEP += "arrays: if a schedule has brought the learning rate to 0, keep it constant"
OTHER_LOSS = "train() gives the loss {:.6g} from the first state once it has been timed, and gave {:.6g} first (a schedule, or a "
OTHER_LOSS += "step that does less)"
SOME_STAY = "{!r} and {} more arrays of the state stay as they are in the steps after the timing, and change in the first ones"
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
        put_back(program, state)
        builder.seed(program, 1)
        if compare.loss_difference([program.read_loss(program.train())], [loss], limits):
            return False
    return True


def put_back(program: "object", state: "list") -> "None":
    """Have a program stand at a state again, with its generators where they stood first."""
    program.put_generators_back()
    program.load_state(state)


def changed_arrays(first: "list", after: "list") -> "set":
    """Return the names of the arrays of floats that are others after some steps."""
    after = dict(after)
    names = [name for name, array in first if array.dtype.kind == "f" and name in after]
    values = dict(first)
    return {name for name in names if not numpy.array_equal(values[name], after[name])}


def check_steps(first: "set", later: "set", losses: "tuple", limit: "float", facts: "dict") -> "str":
    """Return how the steps after the timing differ from the first ones, as a sentence; empty where they do not.

    A schedule makes honest steps differ, so that alone is no failure.

    Args:
        first: names of the arrays that the first steps change.
        later: the same of as many steps after the timing, from the same state.
        losses: of the first of these steps, and of the very first.
        limit: the largest error of that loss.
        facts: go into a failure.

    Raises:
        CellFailure: ``wrong-result`` where the first steps change the state and the later ones change nothing.
    """
    stay = sorted(first - later)
    if stay and not later:
        raise CellFailure("wrong-result", NO_STEP.format(stay[0], len(stay) - 1), facts)
    if not compare.loss_error(*losses) <= limit:
        return OTHER_LOSS.format(*losses)
    return SOME_STAY.format(stay[0], len(stay) - 1) if stay else ""


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
