"""Mixed precision in PyTorch, with a stand-in for it."""

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness.adapters.torch import compat, precisions
from runner.harness.errors import CellFailure


class _Autocast(contextlib.nullcontext[None]):
    def __init__(self, *, enabled: bool) -> None:
        super().__init__()
        self._enabled = enabled


def mixed(monkeypatch: pytest.MonkeyPatch, *, enabled: bool) -> Any:
    torch = SimpleNamespace(float16="half", autocast=lambda *_, **__: _Autocast(enabled=enabled))
    monkeypatch.setattr(compat, "torch", torch)
    kind: Any = precisions.Mixed
    return kind("cuda", "fp16")


def test_autocast_covers_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mixed(monkeypatch, enabled=True).covering(lambda x: x + 1)(2) == 3


def test_a_disabled_autocast_fails_the_cell_instead_of_being_measured_in_single_precision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CellFailure, match="autocast to float16 is disabled on this device"):
        mixed(monkeypatch, enabled=False).covering(lambda x: x + 1)
