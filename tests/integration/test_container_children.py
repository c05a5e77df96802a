"""Children that exhaust what their container has: the next cell of the same server is sound."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from runner.backends.docker.backend import DockerBackend
from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.cleanup import owner
from runner.backends.docker.options import CACHE_FOLDER, cache_volume
from runner.core.model import Limits, Provisioned, Spec
from runner.measure.session import Session
from tests.harness.conftest import hostile_harness, request

__all__ = ["hostile_harness"]

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
SPEC = Spec(
    environment="numpy", framework="numpy", release="2.*", base="python:3.11-slim", lock=ROOT / "docker/locks/numpy.txt"
)
MIB = 1 << 20


@pytest.fixture(scope="module")
def ready(docker_engine: str) -> Provisioned:
    """The NumPy environment."""
    assert docker_engine
    return DockerBackend(ROOT / "docker").provision(SPEC, lambda _line: None)


@pytest.fixture
def session(ready: Provisioned, hostile_harness: bytes) -> Iterator[Session]:
    """A server in a container of 400 MiB, with a cache volume of its own: some children fill it."""
    run = f"test-{os.getpid()}-{time.monotonic_ns()}"
    limits = Limits(memory=400 * MIB, run=run, networks=run)
    session = Session(DockerChannel(ready, limits, owner(), hostile_harness), "test#1")
    try:
        assert session.hello("numpy", 1, "cpu", 60)["status"] == "ok"
        yield session
    finally:
        session.close()
        with closing(docker.from_env()) as client:
            client.api.remove_volume(cache_volume(ready.handle, "cpu", run))


CACHE = Path(CACHE_FOLDER)


def test_files_that_fill_a_container_cost_no_other_cell(session: Session) -> None:
    for _ in range(2):
        reply = request(session, "fills-folders", CACHE)
        assert reply["class"] == "oom", reply
        assert request(session, "sound", CACHE)["status"] == "ok"


def test_fork_bomb_costs_no_other_cell(session: Session) -> None:
    reply = request(session, "fork-bomb", CACHE, timeout=1.0)
    assert reply["class"] in ("oom", "timeout"), reply
    assert request(session, "sound", CACHE)["status"] == "ok"


def test_a_child_opens_nothing_of_its_server_and_answers_no_other_cell(session: Session) -> None:
    reply = request(session, "opens-its-server", CACHE)
    assert "opened: []" in reply["log"]
    for _ in range(3):
        assert min(request(session, "sound", CACHE)["seconds"]) > 1e-6


def test_a_child_may_read_and_write_what_the_kernel_says_of_it(session: Session) -> None:
    assert "score: 1000" in request(session, "reads-itself", CACHE)["log"]


def test_shared_memory_of_a_child_ends_with_it(session: Session) -> None:
    assert "segment: -1" not in request(session, "leaves-shared-memory", CACHE)["log"]
    assert "segments: 0" in request(session, "counts-segments", CACHE)["log"]


def test_a_harness_that_a_child_changes_fails_its_cell_alone(session: Session) -> None:
    reply = request(session, "changes-the-harness", CACHE)
    assert reply["reason"] == "it has changed the file of the harness, which belongs to its server"
    assert request(session, "sound", CACHE, process="plain")["status"] == "ok"


def test_daemons_of_a_child_end_in_a_container(session: Session) -> None:
    for slug in ("leaves-daemon", "leaves-200", "leaves-hoppers"):
        assert request(session, slug, CACHE)["status"] == "ok"
    reply = request(session, "counts-processes", CACHE)
    assert "processes: 2" in reply["log"]  # the server and its child
