"""The calls that a generator yields, made by the function that runs it."""

import sys
from collections.abc import Callable, Iterator

import pytest

from runner.harness import script_stack
from runner.harness.script_stack import Steps


def steps(call: Callable[[], object], number: int = 1) -> Steps:
    """Yield calls from a function, and return the readings of a clock that counts."""
    return (yield call, lambda: None, iter(range(100)).__next__, number)


def below(depth: int, call: Callable[[], object]) -> Steps:
    return (yield from (below(depth - 1, call) if depth else steps(call)))


def test_calls_are_made_between_two_readings_of_the_clock() -> None:
    made: list[int] = []
    assert script_stack.run(steps(lambda: made.append(1), 3)) == (0, 1)
    assert made == [1, 1, 1]


def test_a_wait_is_made_once_after_all_calls_or_after_each() -> None:
    """Calls that return before they have ended would otherwise overlap, only in samples of several calls."""
    log: list[str] = []

    def wait() -> None:
        log.append("wait")

    def yields(synchronize: Callable[[], object]) -> Steps:
        return (yield lambda: log.append("call"), synchronize, lambda: 0.0, 2)

    script_stack.run(yields(wait))
    script_stack.run(yields(script_stack.AfterEach(wait)))
    script_stack.AfterEach(wait)()
    assert log == ["call", "call", "wait"] + ["call", "wait"] * 2 + ["wait"]


def test_depth_of_the_stack_is_that_of_run() -> None:
    def callers() -> int:
        frame, count = sys._getframe(), 0
        while frame.f_back is not None:
            frame, count = frame.f_back, count + 1
        return count

    depths: list[int] = []
    here = callers()
    for depth in (0, 20):
        script_stack.run(below(depth, lambda: depths.append(callers())))
    assert depths == [here + 2] * 2  # ``run`` and the lambda


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3), KeyboardInterrupt()])
def test_failure_of_a_call_is_raised_where_it_was_wanted(error: BaseException) -> None:
    def fail() -> None:
        raise error

    def guarded() -> Steps:
        try:
            yield from below(3, fail)
        except (ValueError, SystemExit, KeyboardInterrupt) as caught:
            return caught

    assert script_stack.run(guarded()) is error
    with pytest.raises(type(error)):
        script_stack.run(below(3, fail))


def test_iterator_that_ends_in_a_call_is_a_failure_with_the_line_of_the_call() -> None:
    batches: Iterator[int] = iter([])
    with pytest.raises(RuntimeError, match="an iterator that the call reads has ended") as caught:
        script_stack.run(below(3, lambda: next(batches)))
    assert caught.traceback[-1].name == "<lambda>"


def test_calls_continue_after_a_failure() -> None:
    def fail() -> None:
        raise ValueError

    def tries() -> Steps:
        try:
            yield from steps(fail)
        except ValueError:
            return (yield from steps(lambda: None))

    assert script_stack.run(tries()) == (0, 1)


def test_iterator_that_ends_within_a_generator_is_the_same_failure() -> None:
    """A user's network is built and checked there; Python makes a RuntimeError without the user's line of it."""

    def builds() -> Steps:
        next(iter(()))
        yield

    with pytest.raises(RuntimeError, match="generator raised StopIteration") as caught:
        script_stack.run(builds())
    error = script_stack.without_generator(caught.value)
    assert str(error) == script_stack.ENDED
    assert error.__traceback__ is not None
    assert error.__traceback__.tb_frame.f_code.co_name == "builds"
    other = ValueError("bad")
    assert script_stack.without_generator(other) is other
