"""What all tests share: their options, and the guard that keeps unit tests away from processes and sockets."""

import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support import private_folders

UNIT = Path(__file__).parent / "unit"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-docker", action="store_true", help="tests that need an engine fail where none answers")
    parser.addoption(
        "--run-postgresql", action="store_true", help="tests that need PostgreSQL fail where it is missing"
    )
    parser.addoption("--run-slurm", action="store_true", help="tests that need Slurm fail where it is missing")
    parser.addoption(
        "--run-networks", action="store_true", help="tests that need network namespaces fail where there are none"
    )
    parser.addoption("--run-browser", action="store_true", help="tests that need Chromium fail where there is none")
    parser.addoption("--run-frameworks", action="store_true", help="make the framework environments where they miss")
    parser.addoption("--run-faults", action="store_true", help="run every fault, where CI runs a dozen")
    parser.addoption("--run-slow", action="store_true", help="run the tests that take minutes each, too")


def pytest_configure(config: pytest.Config) -> None:
    """Give the session folders of its own before the first test is imported; see ``private_folders``.

    A session below ``nohup`` ignores SIGHUP, and a session in the background of a script ignores SIGINT;
    programs that it starts inherit that.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = private_folders.enter(os.environ)
    config.add_cleanup(lambda: private_folders.leave(folder))


@pytest.fixture(scope="session")
def docker_engine(request: pytest.FixtureRequest) -> str:
    """The version of the engine; without one the test is skipped, or fails where --run-docker was given."""
    from runner.backends.docker.backend import reachable

    answers = reachable()
    if answers is None:
        if request.config.getoption("--run-docker"):
            pytest.fail("--run-docker was given and no container engine answers")
        pytest.skip("no container engine answers")
    return answers


@pytest.fixture(autouse=True)
def _needs_its_engine(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("docker"):
        request.getfixturevalue("docker_engine")


@pytest.fixture(autouse=True)
def _takes_its_time(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("slow") and not request.config.getoption("--run-slow"):
        pytest.skip("takes minutes: --run-slow runs it")


@pytest.fixture(autouse=True)
def _touches_nothing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit test that starts a process or opens a connection is an integration test in the wrong folder."""
    if UNIT not in request.path.parents:
        return

    def refuse(*_args: object, **_options: object) -> NoReturn:
        pytest.fail("a unit test started a process or opened a connection; move it to tests/integration")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
