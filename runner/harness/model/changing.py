"""Whether a network still computes what it computed first: otherwise, its times are those of another computation.

Only results that already differ from the base's, and that ``excuses`` has a reason for, are looked at here.
"""

import traceback

from . import compare
from ..errors import CellFailure

LATER = "the network changes its results after its first calls: {}"
TIMED = "the network gives other results in the calls that are timed: {}"
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
