"""When a run changes a GPU's clocks without `--pin`, and what it says beforehand."""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from runner.core.errors import GpuError
from runner.core.model import Gpu
from runner.core.model.devices import LEAVE, ClockPolicy
from runner.gpu.clocks import preconditions
from runner.gpu.clocks.permission import allow
from runner.gpu.clocks.preconditions import (
    HINT,
    IDLE_SECONDS,
    LOCKED,
    LOOK_SECONDS,
    PROCESS_SECONDS,
    Observed,
    announcement,
    lasting_objection,
    read_announcement,
)
from runner.gpu.types import HOPPER, PASCAL, Abilities, Pair

H200 = Gpu(uuid="GPU-0a1b2c3d", name="H200", capability=(9, 0), driver="580.65.06")
NAME = "H200 (GPU-0a1b2c3d)"
ABLE = Abilities(name="H200", architecture=HOPPER, memory=(3201, 2619), sm=(1980, 1830, 345))
DEFAULT = Pair(2619, 1500)
TESLA = replace(ABLE, application=DEFAULT, default=DEFAULT)
LOCKS = f"locks the clocks of {NAME} at SM base, memory 3201 MHz until the run ends; `--no-pin` measures without"
SETS = f"locks the clocks of {NAME} at SM 1500 MHz, memory 3201 MHz until the run ends; `--no-pin` measures without"
BY_SOMEBODY = "the application clocks that somebody has set, SM 1200 MHz and memory 2619 MHz"
NOT_LOCKED = f"the clocks of {NAME} are not locked while"
REMOVES = "If somebody else has locked the clocks, the end of the run removes that lock: no driver reports it"


def seen(able: Abilities = ABLE, **more: Any) -> Observed:
    """Return an idle GPU."""
    return Observed(**{"able": able, "reasons": 0x1, "sm": 345, **more})


@pytest.mark.parametrize(
    ("observed", "objection"),
    [
        (seen(), ""),
        (seen(processes=None), ""),
        (seen(processes=("7 (python3 of ann)",)), "process 7 (python3 of ann) computes on it"),
        (seen(processes=("7", "8"), reasons=0x2), "processes 7 and 8 compute on it"),
        (seen(sm=989), ""),
        (seen(sm=990), f"it is idle at 990 of 1980 MHz: {LOCKED}"),
        (seen(sm=1980, reasons=0x0), ""),  # it draws
        (seen(sm=1980, reasons=None), ""),
        (seen(sm=None), ""),
        (seen(replace(ABLE, sm=()), sm=1980), ""),
        (
            seen(sm=1200, reasons=0x2),
            f"a setting other than application clocks limits its clock to 1200 MHz: {LOCKED}",
        ),
        (seen(TESLA, sm=1500, reasons=0x2), ""),  # its default application clocks are below its highest clock
        (
            seen(replace(TESLA, application=Pair(2619, 1980)), sm=1200, reasons=0x2),
            f"a setting other than application clocks limits its clock to 1200 MHz: {LOCKED}",
        ),
        (seen(replace(TESLA, application=Pair(2619, 1200)), sm=345), ""),  # read and restored
    ],
)
def test_what_speaks_against_a_change(observed: Observed, objection: str) -> None:
    assert observed.objection == objection


class Looks:
    """A GPU that shows one state after the other, and then the last one for ever."""

    def __init__(self, *states: Observed) -> None:
        """Begin with the first."""
        self.states: Iterator[Observed] = iter(states)
        self.last = states[-1]
        self.waited: list[float] = []

    def look(self) -> Observed:
        """Return the next state."""
        return next(self.states, self.last)

    def objection(self) -> str:
        """Return what remains."""
        return lasting_objection(self.look, self.waited.append)


BUSY, HIGH, LIMITED = seen(processes=("7",)), seen(sm=1830), seen(sm=1200, reasons=0x2)


def test_a_free_gpu_is_looked_at_once() -> None:
    looks = Looks(seen())
    assert (looks.objection(), looks.waited) == ("", [])


def test_a_process_that_ends_and_a_clock_that_falls_are_no_objection() -> None:
    looks = Looks(BUSY, BUSY, *[HIGH] * 50, seen())
    assert looks.objection() == ""
    assert looks.waited == [LOOK_SECONDS] * 52


@pytest.mark.parametrize(
    ("state", "seconds"), [(BUSY, PROCESS_SECONDS), (LIMITED, PROCESS_SECONDS), (HIGH, IDLE_SECONDS)]
)
def test_what_stays_is_an_objection_after_some_seconds(state: Observed, seconds: float) -> None:
    looks = Looks(state)
    assert looks.objection() == state.objection
    assert seconds <= sum(looks.waited) < seconds + 2 * LOOK_SECONDS


@pytest.mark.parametrize(
    ("observed", "policy", "text"),
    [
        (seen(), ClockPolicy(), f"{LOCKS}. {REMOVES}"),
        (seen(), ClockPolicy(1830, "leave"), f"{LOCKS}. {REMOVES}".replace("base, memory 3201 MHz", "1830 MHz")),
        (BUSY, ClockPolicy(), f"{NOT_LOCKED} process 7 computes on it; {HINT}"),
        (BUSY, ClockPolicy(force=True), f"{LOCKS}. {REMOVES}"),
        (
            HIGH,
            ClockPolicy(),
            f"{NOT_LOCKED} it is idle at 1830 of 1980 MHz: {LOCKED}; {HINT}",
        ),
        (
            seen(replace(TESLA, application=Pair(2619, 1200))),
            ClockPolicy(),
            f"{LOCKS}. It does not touch {BY_SOMEBODY}. {REMOVES}",
        ),
        (
            seen(replace(TESLA, architecture=PASCAL)),
            ClockPolicy(),
            SETS,
        ),
        (
            seen(replace(TESLA, architecture=PASCAL, application=Pair(2619, 1200))),
            ClockPolicy(1980),
            f"{SETS}. The end of the run restores {BY_SOMEBODY}".replace("1500", "1980"),
        ),
        (
            replace(BUSY, able=replace(ABLE, sliced=True)),
            ClockPolicy(),
            f"the clocks of {NAME} cannot be locked: it is cut into MIG slices, which share its clocks",
        ),
    ],
)
def test_what_a_run_says_before_it_changes_anything(observed: Observed, policy: ClockPolicy, text: str) -> None:
    announced = announcement(H200, observed, policy, may_lock=True)
    assert announced is not None
    assert announced.text == text
    assert bool(announced.fix) == ("are not locked" in text)


def test_a_user_who_may_not_lock_is_told_how_to_get_there() -> None:
    announced = announcement(H200, seen(), ClockPolicy(), may_lock=False)
    assert announced is not None
    assert "until the run ends, if the driver lets a user do that who is not root; `--no-pin`" in announced.text
    assert announced.fix == allow(os.geteuid())


def test_nothing_is_said_of_clocks_that_are_left() -> None:
    assert announcement(H200, BUSY, LEAVE, may_lock=True) is None
    assert read_announcement(H200, LEAVE) is None  # without looking at the GPU


def test_a_gpu_that_cannot_be_read_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(uuid: str, seconds: float) -> Observed:
        raise GpuError("the GPU is lost", kind="lost")

    monkeypatch.setattr(preconditions, "observe_gpu", refuse)
    assert read_announcement(H200, ClockPolicy()) is None


def test_a_clock_that_there_is_not_is_refused_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preconditions, "observe_gpu", lambda *_: seen())
    with pytest.raises(GpuError, match="no SM clock of 5000 MHz"):
        read_announcement(H200, ClockPolicy(5000))
