"""Messages about clocks: what a success, a busy GPU and a failure say, and that they differ."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import GpuError
from runner.core.model import Gpu
from runner.core.model.devices import ClockPolicy
from runner.gpu.clocks import journal, recovery
from runner.gpu.clocks.journal import Entry
from runner.gpu.clocks.policy import Pin
from runner.gpu.clocks.protocol import Order
from runner.gpu.clocks.recovery import Busy, Failed, Undone
from runner.gpu.device import DeviceSession
from runner.machine import clocks

UUID = "GPU-0a1b2c3d-0000-1111-2222-333344445555"
H200 = Gpu(uuid=UUID, name="H200", capability=(9, 0), driver="580.1")
REFUSED = {"said": "left", "why": "the driver lets only root do that"}


class FakeGuard:
    """A guardian that ends with a given answer."""

    answer: Mapping[str, Any] | None = None

    def __init__(self, order: Order, command: Sequence[str] = ()) -> None:
        """Take an order and do nothing with it."""
        del order, command

    def end(self, seconds: float = 0.0) -> Mapping[str, Any] | None:
        """Return the answer."""
        del seconds
        return self.answer


@pytest.fixture
def guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[FakeGuard]:
    """Replaces the guardian process; the journal is in a folder of the test, and there is no sudo."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(journal, "MACHINE", tmp_path / "machine")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(recovery, "Guard", FakeGuard)
    monkeypatch.setattr(FakeGuard, "answer", None)
    journal.ledger(tmp_path / journal.PROGRAM, UUID).write(Entry(uuid=UUID, name="H200", run="r1", undo=("sm",)))
    return FakeGuard


def test_restored_clocks_are_announced_with_the_run_that_left_them(guard: type[FakeGuard]) -> None:
    guard.answer = {"said": "restored"}
    messages: list[str] = []
    assert recovery.recover(messages.append) == ()
    assert messages == ["restored the clocks of H200 (left locked by run r1)"]


def test_clocks_that_cannot_be_restored_are_a_failure_with_its_reason(guard: type[FakeGuard]) -> None:
    guard.answer = REFUSED
    (failure,) = recovery.recover(pytest.fail)
    assert failure == f"could not restore the clocks of H200 (left locked by run r1): {REFUSED['why']}"


def test_a_reset_says_whether_it_succeeded(guard: type[FakeGuard]) -> None:
    guard.answer = {"said": "restored"}
    assert clocks.reset(H200, pytest.fail) == "reset the clocks of H200 to the driver's defaults"
    guard.answer = REFUSED
    with pytest.raises(GpuError) as caught:
        clocks.reset(H200, pytest.fail)
    (problem,) = caught.value.problems
    assert problem.message == f"could not reset the clocks of H200: {REFUSED['why']}"


def test_only_a_busy_gpu_is_worth_waiting_for(guard: type[FakeGuard]) -> None:
    hints = []
    for answer in ({"said": "busy", "who": "process 7 for run r2"}, REFUSED):
        guard.answer = answer
        with pytest.raises(GpuError) as caught:
            clocks.reset(H200, pytest.fail)
        hints.append(caught.value.problems[0].hint or "")
    assert [hint.startswith("wait until it ends") for hint in hints] == [True, False]
    assert "process 7 for run r2 holds them" in Busy("process 7 for run r2").why


def test_each_last_answer_of_a_guardian_has_its_outcome() -> None:
    assert recovery.outcome_of({"said": "restored"}) == Undone()
    assert recovery.outcome_of({"said": "busy", "who": "another runner"}) == Busy("another runner")
    assert recovery.outcome_of(REFUSED) == Failed("the driver lets only root do that")


class FakeLease:
    """A lease of a clock at 1500 MHz."""

    pin = Pin(how="locked", sm=1500)


class FakeSampler:
    """A sampler that reads the given clocks, one after the other."""

    def __init__(self, *clock_mhz: float) -> None:
        """Start with the first."""
        self.clock_mhz = iter(clock_mhz)

    def take_facts(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the next clock as lowest, median and highest."""
        del reply
        return {"clock_mhz": [next(self.clock_mhz)] * 3}


def test_a_clock_that_differs_from_its_lock_is_announced_once() -> None:
    messages: list[str] = []
    session = DeviceSession(H200, ClockPolicy(1500), messages.append)
    fakes: Any = (FakeLease(), FakeSampler(1490.0, 900.0, 800.0))
    session.lease, session.sampler = fakes
    for _ in range(3):
        session.observed_facts({})
    assert messages == ["the GPU's clock is held at 1500 MHz and was 900 MHz: power or heat allow no more"]
