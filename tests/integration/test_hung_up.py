"""A conversation with an engine that says nothing ends, whenever it is hung up."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from runner.backends.docker.client import FOREIGN, Conversation

SOON = 60.0  # seconds


@pytest.fixture
def silent_engine(tmp_path: Path) -> Iterator[str]:
    """The address of an engine that takes every request and answers none."""
    path = tmp_path / "engine.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        yield f"unix://{path}"


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_request_ends_that_is_hung_up(when: str, silent_engine: str) -> None:
    conversation = Conversation(docker.DockerClient(base_url=silent_engine, version="1.41"), None)
    if when == "before":
        conversation.hang_up()
    else:
        threading.Timer(0.2, conversation.hang_up).start()
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            conversation.client.api.info()
        except FOREIGN as error:
            ended.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(SOON)
    assert len(ended) == 1
    conversation.close()
