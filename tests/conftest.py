"""What all tests share: their options, and the guard that keeps unit tests away from processes and sockets."""

import gc
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests.support import needs, private_folders

UNIT = Path(__file__).parent / "unit"


def pytest_addoption(parser: pytest.Parser) -> None:
    needs.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Give the session folders of its own before the first test is imported; see ``private_folders``.

    A session below ``nohup`` ignores SIGHUP, and a session in the background of a script ignores SIGINT;
    programs that it starts inherit that.
    """
    needs.named(config.getoption("--need"))  # an unknown name ends the session here
    # On a busy machine, drawing and an example take any time.
    settings.register_profile("busy machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
    settings.load_profile("busy machine")
    gc.set_threshold(50_000, 20, 20)  # as the command line does: plans of the whole matrix take a quarter less time
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = private_folders.enter(os.environ)
    config.add_cleanup(lambda: private_folders.leave(folder))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    needs.skip_slow(config, items)


@pytest.fixture(scope="session")
def docker_engine(request: pytest.FixtureRequest) -> str:
    """The version of the engine; without one the test is skipped, or fails with ``--need docker``."""
    from runner.backends.docker.backend import reachable

    answers = reachable()
    if answers is None:
        needs.missing(request.config, "docker", "no container engine answers")
    return answers


@pytest.fixture(autouse=True)
def _needs_its_engine(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("docker"):
        request.getfixturevalue("docker_engine")


@pytest.fixture(autouse=True)
def _touches_nothing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit test that starts a process or opens a connection is an integration test in the wrong folder."""
    if UNIT not in request.path.parents:
        return

    def refuse(*_args: object, **_options: object) -> NoReturn:
        pytest.fail("a unit test started a process or opened a connection; move it to tests/integration")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
