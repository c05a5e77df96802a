"""Real registries of images on this machine, and a second container engine with images of its own."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.ports import free_port

REGISTRY, ENGINE = "docker-registry", "dockerd"
USER, PASSWORD = "alice", "n0bodymayread"
PASSWORD_FILE = f"{USER}:$2b$05$abcdefghijklmnopqrstuuHaqU3OncmqJE1EJNT1ztmpIhEzIqg1u\n"
CONFIGURATION = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/images}}, {storage}}}
http: {{addr: "{address}"}}
{more}
"""
WITH_PASSWORD = "auth: {{htpasswd: {{realm: test, path: {folder}/passwords}}}}"
CAN_DELETE = "delete: {enabled: true}"
READ_ONLY = "maintenance: {readonly: {enabled: true}}"
OUTSIDE = "198.51.100.1"
"""An address beyond loopback that the second engine has; RFC 5737 reserves it for documentation."""
START_SECONDS = 180.0


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


class Engine(NamedTuple):
    """A container engine in a network of its own.

    Attributes:
        host: the ``DOCKER_HOST`` that leads to it.
        pid: its process.
    """

    host: str
    pid: int


def missing() -> str:
    """Return why there can be no registry and no second engine; empty if there can."""
    absent = [name for name in (REGISTRY, ENGINE) if _program(name) is None]
    if absent:
        return f"{' and '.join(absent)} of Debian's packages docker-registry and docker.io are not installed"
    return "" if os.geteuid() == 0 else "a second engine needs root"


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")


@contextmanager
def registry(
    folder: Path, host: str = "127.0.0.1", engine: Engine | None = None, *, password: bool = False, more: str = ""
) -> Iterator[Registry]:
    """Serve a registry until the block ends.

    Args:
        folder: for its files.
        host: the address to listen on.
        engine: serve it in the network of that engine, instead of that of this machine.
        password: ask for USER and PASSWORD.
        more: settings of its storage.
    """
    address = f"{host}:{free_port()}"
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "passwords").write_text(PASSWORD_FILE)
    login = WITH_PASSWORD.format(folder=folder) if password else ""
    text = CONFIGURATION.format(folder=folder, address=address, storage=more, more=login)
    (folder / "configuration.yml").write_text(text)
    with serving(Registry(address, folder, 0), engine) as process:
        yield Registry(address, folder, process.pid)


@contextmanager
def serving(registry: Registry, engine: Engine | None) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process of a registry: a second one in another network has the same address and the same images there."""
    inside = [] if engine is None else ["nsenter", f"--net=/proc/{engine.pid}/ns/net"]
    log = registry.folder / f"registry{engine.pid if engine else ''}.log"
    with _running([*inside, _program(REGISTRY), "serve", str(registry.folder / "configuration.yml")], log) as process:
        _until(lambda: _listens(registry.address, inside), process, log)
        yield process


@contextmanager
def second_engine() -> Iterator[Engine]:
    """Run an engine until the block ends.

    It is in a network of its own, with loopback and OUTSIDE: an engine without a bridge removes ``docker0``, which
    belongs to the engine of this machine. Its containers have no network.
    """
    folder = Path(tempfile.mkdtemp(prefix="engine-"))  # short: sockets are below it
    (folder / "configuration.json").write_text("{}")  # that of this machine's engine does not count
    places = ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    options = ["--bridge", "none", "--iptables=false", "--config-file", f"{folder}/configuration.json"]
    network = f'ip link set lo up && ip addr add {OUTSIDE}/32 dev lo && exec "$@"'
    command = ["unshare", "--net", "sh", "-c", network, "sh", _program(ENGINE), "--host", f"unix://{folder}/socket"]
    try:
        with _running([*command, *places, *options], folder / "log") as process:
            _until(lambda: _listens(f"unix://{folder}/socket"), process, folder / "log")
            yield Engine(f"unix://{folder}/socket", process.pid)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(command: list[str | None], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as stream:
        process = subprocess.Popen(list(map(str, command)), stdout=stream, stderr=stream)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


def _until(condition: Callable[[], bool], process: "subprocess.Popen[bytes]", log: Path) -> None:
    limit = time.monotonic() + START_SECONDS
    while not condition():
        assert process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < limit, log.read_text()[-2000:]
        time.sleep(0.05)


def _listens(address: str, inside: Sequence[str] = ()) -> bool:
    """Return True if somebody listens at ``host:port`` or ``unix://PATH``, in a network that a command enters."""
    if inside:
        host, _, port = address.rpartition(":")
        probe = [*inside, "bash", "-c", f"</dev/tcp/{host}/{port}"]
        return subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode == 0
    scheme, _, path = address.partition("://")
    host, _, port = address.rpartition(":")
    family = socket.AF_UNIX if scheme == "unix" else socket.AF_INET
    with socket.socket(family) as client:
        return client.connect_ex(path if family == socket.AF_UNIX else (host, int(port))) == 0
