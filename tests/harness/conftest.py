"""Servers under every installed interpreter, each in a venv of its own with NumPy and nothing else."""

import functools
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.backends import harness_archive, interpreters
from runner.backends.local_channel import ProcessChannel
from runner.core.locks import exclusive
from runner.harness import cases
from runner.harness.verify.__main__ import main
from runner.measure.session import Session
from tests.support import private_folders
from tests.support.cases import TINY

VERSIONS = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")

Ask = Callable[..., dict[str, Any]]


def environment(version: str) -> str | None:
    """Return the interpreter of a venv with NumPy, made once for a Python version; None where that is not installed."""
    interpreter = interpreters.find(version)
    if interpreter is None:
        return None
    home = private_folders.kept() / f"numpy-{version}"
    python = home / "bin" / "python"
    with exclusive(home.with_name(f"{home.name}.lock"), print, "another session makes this environment"):
        if not (home / ".ready").exists():
            shutil.rmtree(home, ignore_errors=True)
            subprocess.run([str(interpreter), "-m", "venv", str(home)], check=True, capture_output=True)
            pip = [str(python), "-m", "pip", "install", "-q", "--retries", "1"]
            if version == "3.6":
                subprocess.run([*pip, "pip==21.3.1"], check=True, capture_output=True)
            subprocess.run([*pip, "numpy"], check=True, capture_output=True)
            (home / ".ready").touch()
    return str(python)


@functools.cache
def truth(key: str) -> dict[str, Any]:
    """Return the packed reference of TINY, which has this key."""
    assert key == cases.key(TINY)
    return main(TINY)


@pytest.fixture(scope="session")
def faulty_harness(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The packed harness, with an adapter that fails on request."""
    folder = tmp_path_factory.mktemp("harness") / "harness"
    shutil.copytree(harness_archive.FOLDER, folder)
    shutil.copy(Path(__file__).parent / "faulty.py", folder / "adapters" / "numpy.py")
    return harness_archive.pack(folder)


@pytest.fixture(scope="session")
def hostile_harness(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The packed harness, with an adapter that leaves processes and files behind, or attacks its server."""
    return harness_archive.pack(hostile_folder(tmp_path_factory.mktemp("hostile")))


def hostile_folder(parent: Path) -> Path:
    """Return a copy of the harness with the hostile adapter."""
    folder = parent / "harness"
    shutil.copytree(harness_archive.FOLDER, folder)
    shutil.copy(Path(__file__).parent / "faulty.py", folder / "adapters" / "faulty.py")
    shutil.copy(Path(__file__).parent / "hostile.py", folder / "adapters" / "numpy.py")
    return folder


@pytest.fixture(scope="session")
def opening_harness(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The packed harness, with an adapter whose import opens ``/dev/zero``, which counts as a GPU."""
    folder = tmp_path_factory.mktemp("opening") / "harness"
    shutil.copytree(harness_archive.FOLDER, folder)
    adapter = (Path(__file__).parent / "faulty.py").read_text("utf-8")
    old = '    """Import nothing."""\n'
    assert old in adapter
    (folder / "adapters" / "numpy.py").write_text(adapter.replace(old, f"{old}    os.open('/dev/zero', os.O_RDONLY)\n"))
    procfs = (folder / "procfs.py").read_text("utf-8")
    assert '"/dev/dxg"' in procfs
    (folder / "procfs.py").write_text(procfs.replace('"/dev/dxg"', '"/dev/zero"'))
    return harness_archive.pack(folder)


@pytest.fixture(scope="session")
def silent_harness(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The packed harness, with an adapter that cannot describe its framework, as in a release that lacks some names."""
    folder = tmp_path_factory.mktemp("silent") / "harness"
    shutil.copytree(harness_archive.FOLDER, folder)
    adapter = (Path(__file__).parent / "faulty.py").read_text("utf-8")
    old = '    return {"version": "1", '
    assert old in adapter
    (folder / "adapters" / "numpy.py").write_text(adapter.replace(old, f"    raise AttributeError('keras')\n{old}"))
    return harness_archive.pack(folder)


@pytest.fixture
def python() -> str:
    """The interpreter of a venv with NumPy, of the newest installed Python."""
    return next(path for version in reversed(VERSIONS) if (path := environment(version)))


@pytest.fixture
def open_session(faulty_harness: bytes) -> Iterator[Callable[..., Session]]:
    """A function that starts servers with the faulty adapter; they are closed after the test."""
    opened: list[Session] = []

    def start(interpreter: str, cpus: Sequence[int] = ()) -> Session:
        session = Session(ProcessChannel(interpreter, "cpu", faulty_harness), "test#1")
        opened.append(session)
        facts = session.hello("numpy", 1, "cpu", 60, cpus)
        assert facts["status"] == "ok", facts
        return session

    yield start
    for session in opened:
        session.close()


@pytest.fixture
def ask(open_session: Callable[..., Session], python: str, tmp_path: Path) -> Ask:
    """A function that measures a slug in a new server, or in the given session."""

    def measure(slug: str, session: Session | None = None, **changes: object) -> dict[str, Any]:
        return request(session or open_session(python), slug, tmp_path, **changes)

    return measure


def request(session: Session, slug: str, cache: Path, **changes: object) -> dict[str, Any]:
    """Measure a slug of the faulty adapter on TINY, for 0.05 s unless ``changes`` says otherwise."""
    key = cases.key(TINY)
    settings = {
        "key": key,
        "case": TINY,
        "framework": "numpy",
        "implementation": slug,
        "phase": "train",
        "device": "cpu",
        "precision": "fp32",
        "seconds": 0.05,
        "cache": str(cache),
        "timeout": 20.0,
        "memory": None,
    }
    return session.measure({**settings, **changes}, lambda: truth(key))
