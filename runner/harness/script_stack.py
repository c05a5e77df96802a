"""Makes the calls that are timed near the start of the Python stack, where a script makes them.

TensorFlow 2 records up to 30 frames of the caller's stack with every operation that it runs eagerly
(``StackTrace::Capture`` in tensorflow/python/util/stack_trace.h), and JAX those of each call. So an operation takes longer
the deeper the stack is: with TensorFlow 2.21, a loop of 600 operations took 12.8 ms in a function that a script calls, and
13.9 to 15.0 ms below the fifteen functions of a server, its child and its timer.

What decides about calls is therefore a generator: it yields the calls that it requests, and this module, which has few
callers, makes them.
"""

from itertools import repeat
from typing import Any, Generator

Steps = Generator[Any, Any, Any]
"""Yields (call, synchronize, clock, number of calls), is sent two readings of the clock, and returns a result; see ``run``."""

ENDED = "StopIteration: an iterator that the call reads has ended"


class AfterEach(object):
    """A function that waits for a program, to be called after each call and not once after several."""

    def __init__(self, wait: "object") -> "None":
        """Take the function."""
        self.wait = wait

    def __call__(self) -> "None":
        """Wait."""
        self.wait()


def ended(error: "StopIteration") -> "RuntimeError":
    """Return the error for a ``StopIteration`` of other code: a generator that raises one would end without a result."""
    return RuntimeError(ENDED).with_traceback(error.__traceback__)


def without_generator(error: "BaseException") -> "BaseException":
    """Return the error of ``ended`` for a RuntimeError that a generator made of a ``StopIteration``; others as they are."""
    cause = error.__cause__
    return ended(cause) if isinstance(error, RuntimeError) and isinstance(cause, StopIteration) else error


def run(steps: "Steps") -> "Any":
    """Make the calls that a generator yields; return what it returns.

    Args:
        steps: a generator that yields (call, synchronize, clock, number of calls), and is sent the readings of the clock
            before the first call, and after ``synchronize``, which follows each call if it is ``AfterEach``. What a call
            raises is raised where the generator yielded.
    """
    outcome, failure = None, None
    while True:
        try:
            requested = steps.send(outcome) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value
        call, synchronize, clock, number = requested
        outcome, failure = None, None
        try:
            calls = repeat(None, number)
            wait_for_each = synchronize.wait if isinstance(synchronize, AfterEach) else None
            begin = clock()
            if wait_for_each is None:
                for _ in calls:
                    call()
                synchronize()
            else:
                for _ in calls:
                    call()
                    wait_for_each()
            outcome = begin, clock()
        except StopIteration as error:
            failure = ended(error)
        except BaseException as error:
            failure = error
