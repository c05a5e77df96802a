"""How long a runner waits for another one that holds the clocks of its GPU."""

import time
from typing import Any

import pytest

from runner.gpu.clocks import lease
from runner.gpu.clocks.lease import UNTRUSTED_SECONDS, ClockLease, start_guardian
from runner.gpu.clocks.policy import ClockHold
from runner.gpu.clocks.protocol import Order

ORDER = Order(task="hold", uuid="GPU-0")
HELD = {"said": "held", "pin": ClockHold(how="locked").json()}
NIGHT = 8 * 3600.0


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of each pause; none of them passes."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def answering(monkeypatch: pytest.MonkeyPatch, slept: list[float], busy: dict[str, Any], seconds: float) -> None:
    """Let guardians answer that another one holds the clocks, until so many seconds were waited."""

    class Guard:
        """A guardian without a process."""

        alive = True

        def __init__(self, *_arguments: object) -> None:
            """Start nothing."""

        def answer(self, _seconds: float) -> dict[str, Any]:
            """Return its first answer."""
            return busy if sum(slept) < seconds else HELD

        def end(self, _seconds: float = 0.0) -> None:
            """End nothing."""

    monkeypatch.setattr(lease, "Guard", Guard)
    monkeypatch.setattr(lease, "sudo_usable", lambda: False)


@pytest.mark.parametrize("busy", [{"said": "busy", "who": "process 7"}, {"said": "busy", "who": "x", "trusted": True}])
def test_a_guardian_of_root_or_of_this_user_is_waited_for_a_night(
    busy: dict[str, Any], slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, slept, busy, NIGHT)
    messages: list[str] = []
    assert start_guardian(ORDER, messages.append)[1] == HELD
    assert sum(slept) >= NIGHT
    assert messages == [f"the GPU's clocks are held by {busy['who']}: waiting until it releases them"]


def test_a_process_of_another_user_delays_a_run_for_ten_minutes_only(
    slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = {"said": "busy", "who": "the guardian of a runner of nobody, process 7", "trusted": False}
    answering(monkeypatch, slept, busy, NIGHT)
    messages: list[str] = []
    pin = ClockLease(ORDER, messages.append).acquire()
    assert UNTRUSTED_SECONDS <= sum(slept) < UNTRUSTED_SECONDS + 20
    assert pin.how == "none"
    assert messages[1:] == [
        f"the GPU's clocks are not held: {busy['who']} still holds their lock after 10 min; ask its user to end it"
    ]
