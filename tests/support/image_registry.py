"""Real registries of images on this machine, and a second container engine with images of its own."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import docker

REGISTRY, ENGINE = "docker-registry", "dockerd"
USER, PASSWORD = "alice", "n0bodymayread"
PASSWORD_FILE = f"{USER}:$2b$05$abcdefghijklmnopqrstuuHaqU3OncmqJE1EJNT1ztmpIhEzIqg1u\n"
CONFIGURATION = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/images}}, delete: {{enabled: true}}, {storage}}}
http: {{addr: "{address}"}}
{more}
"""
WITH_PASSWORD = "auth: {{htpasswd: {{realm: test, path: {folder}/passwords}}}}"
READ_ONLY = "maintenance: {readonly: {enabled: true}}"
START_SECONDS = 30.0


class Registry(NamedTuple):
    """A registry that answers.

    Attributes:
        address: host and port.
        folder: its files are in ``images`` below it.
        pid: its process.
    """

    address: str
    folder: Path
    pid: int


def missing() -> str:
    """Return why there can be no registry and no second engine; empty if there can."""
    absent = [name for name in (REGISTRY, ENGINE) if _program(name) is None]
    if absent:
        return f"{' and '.join(absent)} of Debian's packages docker-registry and docker.io are not installed"
    return "" if os.geteuid() == 0 else "a second engine needs root"


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def registry(
    folder: Path, host: str = "127.0.0.1", *, password: bool = False, read_only: bool = False
) -> Iterator[Registry]:
    """Serve a registry until the block ends.

    Args:
        folder: for its files; a folder that another registry has used has its images.
        host: the address to listen on.
        password: ask for USER and PASSWORD.
        read_only: accept no image.
    """
    address = f"{host}:{free_port(host)}"
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "passwords").write_text(PASSWORD_FILE)
    more, storage = (WITH_PASSWORD.format(folder=folder) if password else ""), (READ_ONLY if read_only else "")
    configuration = folder / "configuration.yml"
    configuration.write_text(CONFIGURATION.format(folder=folder, address=address, storage=storage, more=more))
    with _running([REGISTRY, "serve", str(configuration)], folder / "registry.log") as process:
        _until(lambda: _listens(address), folder / "registry.log")
        yield Registry(address, folder, process.pid)


@contextmanager
def second_engine() -> Iterator[str]:
    """Run an engine of its own until the block ends; give the ``DOCKER_HOST`` that leads to it.

    Its containers have no network.
    """
    folder = Path(tempfile.mkdtemp(prefix="engine-"))  # short: sockets are below it
    host = f"unix://{folder}/socket"
    (folder / "configuration.json").write_text("{}")  # that of this machine's engine does not count
    places = ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    options = ["--host", host, "--bridge", "none", "--iptables=false", "--config-file", f"{folder}/configuration.json"]
    try:
        with _running([ENGINE, *places, *options], folder / "log"):
            _until(lambda: _answers(host), folder / "log")
            yield host
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    program = _program(command[0])
    assert program is not None, missing()
    with log.open("wb") as stream:
        process = subprocess.Popen([program, *command[1:]], stdout=stream, stderr=stream)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


def _until(condition: Callable[[], bool], log: Path) -> None:
    limit = time.monotonic() + START_SECONDS
    while not condition():
        assert time.monotonic() < limit, log.read_text()[-2000:]
        time.sleep(0.05)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def _answers(host: str) -> bool:
    try:
        client = docker.DockerClient(base_url=host)
        client.close()
    except docker.errors.DockerException:
        return False
    return True
