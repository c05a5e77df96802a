"""Orders to the guardian of clocks: read back as they were written, and refused where they are not."""

import json

import pytest

from runner.core.model.devices import ClockPolicy
from runner.gpu.clocks.policy import clock_policy
from runner.gpu.clocks.protocol import Order, read

UUID = "GPU-0a1b2c3d-0000-1111-2222-333344445555"


def test_an_order_is_read_back_and_another_one_refused() -> None:
    order = Order(task="hold", uuid=UUID, clocks=ClockPolicy(1410, "leave"), run="r", runner=7, patience=0.5)
    assert read(order.line()) == order
    for name, value in (("task", "erase"), ("uuid", "GPU-/../x"), ("clocks", {"sm": "fast", "memory": "max"})):
        with pytest.raises(ValueError, match=r"no order|is no clock"):
            read(json.dumps({**json.loads(order.line()), name: value}).encode())
    with pytest.raises(ValueError, match="is no clock"):
        clock_policy({"sm": True, "memory": "max"})
