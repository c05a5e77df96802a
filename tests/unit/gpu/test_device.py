"""A device that has no GPU has no clocks to hold."""

import pytest

from runner.core.model.devices import ClockPolicy
from runner.gpu.device import DeviceSession


def test_without_a_gpu_nothing_happens_to_its_clocks() -> None:
    session = DeviceSession(None, ClockPolicy(), pytest.fail)
    session.check_policy()
    with session.hold("run"):
        session.check()
        assert session.facts() == {"clocks": None}
