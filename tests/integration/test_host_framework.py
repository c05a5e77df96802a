"""Which framework the host backend measures, of several that an interpreter has."""

import sys
import time
from pathlib import Path

import pytest

from runner.backends import installed
from runner.backends.host import HostBackend
from runner.core.errors import UsageError
from tests.support.executables import write_executable


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules that the interpreter imports, with three frameworks; the first cannot be imported."""
    folder = tmp_path / "modules"
    folder.mkdir()
    for name, code in (
        ("torch", "raise ImportError('libcudart.so.12 is missing')"),
        ("tensorflow", "print('a banner'); __version__ = '2.18.1'"),
        ("jax", "__version__ = '0.10.2'"),
        ("numpy", "__version__ = '2.1.0'"),
    ):
        (folder / f"{name}.py").write_text(code + "\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def backend(tmp_path: Path, framework: str | None = None) -> HostBackend:
    return HostBackend(sys.executable, tmp_path, framework)


def test_the_first_that_can_be_imported_is_measured_and_the_others_are_named(modules: Path, tmp_path: Path) -> None:
    assert modules.exists()
    installed = backend(tmp_path).installed()
    assert (installed.framework, installed.release) == ("tensorflow", "2.18.1")
    assert installed.others == ("torch", "jax")
    assert installed.python_version == f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_the_chosen_framework_is_measured(modules: Path, tmp_path: Path) -> None:
    (modules / "tensorflow.py").write_text("raise SystemExit('imported without being asked for')")
    installed = backend(tmp_path, "jax").installed()
    assert (installed.framework, installed.release, installed.others) == ("jax", "0.10.2", ())
    assert backend(tmp_path, "numpy").installed().framework == "numpy"


@pytest.mark.parametrize(
    ("framework", "message"),
    [("torch", "cannot import torch; libcudart.so.12 is missing"), ("theano", "cannot import theano")],
)
def test_a_framework_that_cannot_be_imported_is_an_error(
    framework: str, message: str, modules: Path, tmp_path: Path
) -> None:
    assert modules.exists()
    with pytest.raises(UsageError) as caught:
        backend(tmp_path, framework).installed()
    assert message in str(caught.value)
    assert "install it for it" not in str(caught.value)


def test_an_unknown_framework_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no framework 'mxnet'") as caught:
        backend(tmp_path, "mxnet")
    assert "torch, tensorflow, theano, jax, keras, numpy" in str(caught.value)


@pytest.mark.parametrize(
    "program",
    [
        "yes",
        "yes >&2",
        "head -c 20000000 /dev/zero; exit 1",
        "printf '\\033]0;pwned\\007\\033[2J' >&2; exit 1",
        "printf 'numpy 1\\033[2J 3.11 numpy\\n'",
        "echo os 1.0 3.11 numpy",
        "echo numpy 1.0 3.11 numpy and more",
        "echo numpy \"$(head -c 5000 /dev/zero | tr '\\0' 1)\" 3.11 numpy",
        "setsid sleep 60 & exit 1",
        "trap '' TERM; sleep 60",
    ],
)
def test_hostile_interpreter_is_a_usage_error(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "PROBE_SECONDS", 1.0)
    python = write_executable(tmp_path / "python", f"#!/bin/sh\n{program}\n")
    begin = time.monotonic()
    with pytest.raises(UsageError) as caught:
        HostBackend(str(python), tmp_path).installed()
    assert time.monotonic() - begin < 40
    assert caught.value.problems[0].message.isprintable()
    assert len(str(caught.value)) < 2000
