"""Every implementation that the plan may choose overrides each hook that its base class leaves open."""

import math
from typing import Any

import pytest

from runner.catalog.cases.recurrent import case
from runner.harness import adapters
from runner.harness.adapters.base import Implementation

ALL = [(framework, chosen) for framework in adapters.MODULES for chosen in adapters.implementations(framework)]
WITHOUT_ORIGINALS = [(framework, chosen) for framework, chosen in ALL if chosen.cells and not chosen.originals]


def name(value: Any) -> str:
    """Return the parameter's name in the test's id."""
    return value if isinstance(value, str) else str(value.slug)


def is_open(method: Any) -> bool:
    """Return whether a function only raises NotImplementedError."""
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    return code is not None and code.co_names == ("NotImplementedError",)


def test_is_open_tells_open_hooks_from_others() -> None:
    assert is_open(Implementation.original)
    assert not is_open(Implementation.lacks)


@pytest.mark.parametrize(("framework", "chosen"), ALL, ids=name)
def test_implementation_overrides_every_hook(framework: str, chosen: Any) -> None:
    open_hooks = {hook for hook in dir(chosen) if is_open(getattr(chosen, hook, None))}
    # A class without originals may leave that hook open: the plan skips it then.
    assert open_hooks <= (set() if chosen.originals else {"original"}), framework


@pytest.mark.parametrize(("framework", "chosen"), WITHOUT_ORIGINALS, ids=name)
def test_network_class_without_originals_lacks_the_published_protocol(framework: str, chosen: Any) -> None:
    published = case(workload="lm-lstm", protocol="published", cell=chosen.cells[0], loss=chosen.losses[0])
    code, reason = chosen.lacks(published, (2, math.inf), chosen.devices[0], "fp32")
    assert code == "framework-lacks"
    assert "original program" in reason or framework == "torch7"  # lacks all workloads but rnn-step
