"""Options of JAX, with a stand-in for a release that has some of them."""

import sys
from types import SimpleNamespace

import pytest

from runner.harness.adapters.jax import device


def test_an_option_that_the_release_lacks_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX 0.4.18 has no folder for its compilation cache; each cell of it crashed."""
    options: dict[str, object] = {"jax_platforms": None, "jax_default_matmul_precision": None}

    def update(name: str, value: object) -> None:
        if name not in options:
            raise AttributeError(f"Unrecognized config option: {name}")
        options[name] = value

    jax = SimpleNamespace(config=SimpleNamespace(update=update), devices=lambda kind: [kind])
    monkeypatch.setitem(sys.modules, "jax", jax)
    device.prepare("cpu", "fp32")
    assert options == {"jax_platforms": "cpu", "jax_default_matmul_precision": "highest"}
