"""Finding and running the interpreters of the real machine."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.backends.interpreters import find, works
from tests.support.executables import write_executable

OURS = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    find.cache_clear()
    yield
    find.cache_clear()


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_executable(path, f"#!/bin/sh\n{text}\n")


def test_find_returns_a_working_interpreter_of_our_version() -> None:
    path = find(OURS)
    assert path is not None
    assert path == path.resolve()
    report = [str(path), "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix == sys.base_prefix)"]
    assert subprocess.run(report, capture_output=True, text=True, check=True).stdout.split() == [OURS, "True"]


def test_find_an_unknown_version_is_none() -> None:
    assert find("3.99") is None


def test_find_caches_its_result() -> None:
    first = find(OURS)
    assert find(OURS) is first
    assert find.cache_info().hits == 1


def test_find_skips_a_broken_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = find(OURS)
    assert good is not None
    script(tmp_path / "versions" / f"{OURS}.999" / "bin" / f"python{OURS}", "exit 127")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(good.parent), prepend=":")
    find.cache_clear()
    assert find(OURS) == good


def test_find_needs_no_path_if_pyenv_has_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = find(OURS)
    assert good is not None
    release = tmp_path / "versions" / f"{OURS}.1" / "bin"
    release.mkdir(parents=True)
    (release / "python").symlink_to(good)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    find.cache_clear()
    assert find(OURS) == good


@pytest.mark.parametrize(
    ("text", "why"),
    [("exit 0", "it prints nothing"), ("echo 2.7", "it is another version"), ("kill -9 $$", "it dies")],
)
def test_works_is_false_for_scripts_that_are_no_interpreter(tmp_path: Path, text: str, why: str) -> None:
    assert not works(script(tmp_path / "python", text), OURS), why


def test_works_is_false_for_a_missing_file(tmp_path: Path) -> None:
    assert not works(tmp_path / "missing", OURS)
