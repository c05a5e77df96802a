"""How clocks are to be held, by what a GPU can and what a policy asks for."""

from typing import Any

import pytest

from runner.core.errors import GpuError
from runner.core.model.devices import LEAVE, ClockPolicy
from runner.gpu.clocks.policy import ClockHold, choose, clock_policy
from runner.gpu.types import AMPERE, HOPPER, KEPLER, PASCAL, TURING, VOLTA, Abilities, ClockPair

SM = (1980, 1500, 1200, 345)


DEFAULT = ClockPair(2619, 1200)


def able(generation: int = HOPPER, **more: Any) -> Abilities:
    """Return a GPU of a generation, with application clocks where ``tesla`` is given."""
    tesla = {"application": ClockPair(1593, 1500), "default": DEFAULT} if more.pop("tesla", False) else {}
    return Abilities(**{"name": "H", "architecture": generation, "memory": (2619, 1593), "sm": SM, **tesla, **more})


@pytest.mark.parametrize(
    ("board", "requested", "ways"),
    [
        (
            able(),
            ClockPolicy(),
            ["locked base 2619", "locked 1200 2619", "none"],
        ),  # 1200 < 0.75 * 1980
        (able(tesla=True), ClockPolicy(), ["locked base 2619", "locked 1200 2619", "application 1200 2619", "none"]),
        (able(AMPERE), ClockPolicy("max"), ["locked 1980 2619", "none"]),
        (able(), ClockPolicy(1490, 1600), ["locked 1500 1593", "none"]),
        (able(), ClockPolicy(1350, "leave"), ["locked 1200 None", "none"]),  # as near as 1500, and lower
        (able(), ClockPolicy("leave", "max"), ["locked None 2619", "none"]),
        (able(TURING), ClockPolicy(), ["locked base None", "locked 1200 None", "none"]),
        (able(VOLTA), ClockPolicy("leave", "max"), ["none"]),
        (able(PASCAL), ClockPolicy(), ["none"]),
        (able(PASCAL, tesla=True), ClockPolicy(), ["application 1200 2619", "none"]),
        (able(KEPLER, tesla=True), ClockPolicy("max"), ["application 1980 2619", "none"]),
        (able(PASCAL, tesla=True), ClockPolicy(1500, "leave"), ["application 1500 1593", "none"]),
        (able(PASCAL, tesla=True), ClockPolicy("leave", "max"), ["none"]),
        (able(sm=(), memory=()), ClockPolicy(), ["locked base None", "none"]),
        (able(sm=()), ClockPolicy(1234), ["locked 1234 2619", "none"]),
        (able(sliced=True), ClockPolicy(), ["none"]),
        (able(sliced=False), LEAVE, ["left"]),
    ],
)
def test_the_ways_to_hold_clocks(board: Abilities, requested: ClockPolicy, ways: list[str]) -> None:
    pins = choose(board, requested)
    assert [f"{pin.how} {pin.sm} {pin.memory}" if pin.sm or pin.memory else pin.how for pin in pins] == ways
    assert bool(pins[-1].why) == (pins[-1].how == "none")


def test_what_cannot_be_held_is_said() -> None:
    first = choose(able(TURING), ClockPolicy())[0]
    assert first.why == "the memory clock of a GPU of the generation Turing cannot be locked"
    assert choose(able(TURING), ClockPolicy(memory="leave"))[0].why == ""
    assert str(first) == "SM base"
    assert str(ClockHold(how="locked", sm=1410, memory=1215)) == "SM 1410 MHz, memory 1215 MHz"
    assert str(ClockHold(how="left")) == ""


@pytest.mark.parametrize("requested", [ClockPolicy(2000), ClockPolicy(344), ClockPolicy(memory=3000)])
def test_a_clock_that_there_is_not_is_refused(requested: ClockPolicy) -> None:
    with pytest.raises(GpuError, match=r"H has no (SM|memory) clock of") as caught:
        choose(able(), requested)
    assert "hint: it has" in str(caught.value)


def test_a_policy_of_an_older_program_does_not_force_anything() -> None:
    assert clock_policy({"sm": "base", "memory": "max"}) == ClockPolicy("base", "max", force=False)
    with pytest.raises(ValueError, match="neither true nor false"):
        clock_policy({"sm": "base", "memory": "max", "force": 1})
