"""Options of JAX, with a stand-in for a release that has some of them."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from runner.harness.adapters.jax import device
from runner.harness.adapters.jax.model import UserModel
from runner.harness.adapters.jax.scan import Scan


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


@pytest.mark.parametrize("can_import", [True, False])
def test_without_packages_that_jax_opens_files_with_there_is_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, can_import: bool
) -> None:
    """Each cell of JAX 0.4.38 failed: the ``epath`` of etils 1.11 needs packages that were not installed."""
    options: dict[str, object] = {}
    jax = SimpleNamespace(config=SimpleNamespace(update=options.__setitem__), devices=lambda kind: [kind])
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "etils", SimpleNamespace(epath=object()) if can_import else ModuleType("etils"))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    device.prepare("cpu", "fp32")
    assert options["jax_compilation_cache_dir"] == (str(tmp_path) if can_import else None)


def test_a_release_that_keeps_no_programs_on_disk_has_no_warm_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of ``compile-warm`` was that of a cold start with JAX 0.4.18, and nothing said so."""
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(__version__="0.4.18"))
    for folder in (tmp_path, tmp_path / "missing"):
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder))
        for chosen in (Scan, UserModel):
            program: Any = chosen.__new__(chosen)
            assert program.why_cold().startswith("JAX 0.4.18 keeps no compiled programs on disk here")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    (tmp_path / "jit_step-0123").touch()
    assert device.why_cold() == ""
