"""No implementation that the plan may choose is hollow: every hook that a base class leaves open is filled."""

from typing import Any

import pytest

from runner.harness import adapters
from runner.harness.adapters.base import Implementation

ALL = [(framework, found) for framework in adapters.MODULES for found in adapters.implementations(framework)]


def is_open(method: Any) -> bool:
    """Say whether a function does nothing but refuse."""
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    return code is not None and code.co_names == ("NotImplementedError",)


def test_an_open_hook_is_seen() -> None:
    assert is_open(Implementation.original)
    assert not is_open(Implementation.lacks)


@pytest.mark.parametrize(("framework", "found"), ALL, ids=[f"{name}-{found.slug}" for name, found in ALL])
def test_every_hook_of_an_implementation_is_filled(framework: str, found: Any) -> None:
    left = {name for name in dir(found) if is_open(getattr(found, name, None))}
    assert left <= (set() if found.originals else {"original"}), framework  # which the plan skips where there is none
