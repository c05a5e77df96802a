"""Every implementation that the plan may choose overrides each hook that its base class leaves open."""

from typing import Any

import pytest

from runner.harness import adapters
from runner.harness.adapters.base import Implementation

ALL = [(framework, chosen) for framework in adapters.MODULES for chosen in adapters.implementations(framework)]


def is_open(method: Any) -> bool:
    """Return whether a function only raises NotImplementedError."""
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    return code is not None and code.co_names == ("NotImplementedError",)


def test_is_open_tells_open_hooks_from_others() -> None:
    assert is_open(Implementation.original)
    assert not is_open(Implementation.lacks)


@pytest.mark.parametrize(("framework", "chosen"), ALL, ids=[f"{name}-{chosen.slug}" for name, chosen in ALL])
def test_implementation_overrides_every_hook(framework: str, chosen: Any) -> None:
    open_hooks = {name for name in dir(chosen) if is_open(getattr(chosen, name, None))}
    # A class without originals may leave that hook open: the plan skips it then.
    assert open_hooks <= (set() if chosen.originals else {"original"}), framework
