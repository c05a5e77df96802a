"""What NumPy tells about its wheel, in this release and in stand-ins for older and newer ones."""

import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runner.harness.adapters import numpy as adapter

MODULES = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")


def core(monkeypatch: pytest.MonkeyPatch, name: str, **attributes: Any) -> None:
    """Let one of ``MODULES`` have these attributes, and the other be missing."""
    for each in MODULES:
        monkeypatch.delitem(sys.modules, each, raising=False)
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(**attributes))


def test_this_release_names_its_compiler_and_its_kernels() -> None:
    facts = adapter.facts("cpu")
    assert facts["version"] == np.__version__
    assert facts["compiler"].split()[0] in {"gcc", "clang"}
    assert " " not in facts["cpu"]


@pytest.mark.parametrize("name", MODULES)
def test_kernels_are_the_newest_that_the_processor_has(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features = {"SSE2": True, "AVX2": True, "AVX512_SKX": False}
    dispatch = ["AVX2", "AVX512_SKX"]
    core(monkeypatch, name, __cpu_baseline__=["SSE2"], __cpu_dispatch__=dispatch, __cpu_features__=features)
    assert adapter.cpu_kernels() == {"cpu": "AVX2"}
    features["AVX2"] = False  # switched off by NPY_DISABLE_CPU_FEATURES
    assert adapter.cpu_kernels() == {"cpu": "SSE2"}


def test_1_16_tells_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    def show() -> None:
        """Print the configuration, as before 1.25."""

    core(monkeypatch, MODULES[1])
    monkeypatch.setattr(np, "show_config", show)
    monkeypatch.setattr(np, "version", SimpleNamespace())
    assert adapter.facts("cpu") == {"version": np.__version__}


def test_the_wheel_has_the_commit_that_it_was_made_from() -> None:
    assert re.fullmatch("[0-9a-f]{40}", adapter.facts("cpu")["source_revision"])
