"""A harness server in a container: its stdin, stdout and stderr over one attached socket of the engine."""

import socket
import time
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol

import docker
from docker.errors import NotFound

from runner.backends import harness_archive
from runner.backends.docker.cleanup import remove
from runner.backends.docker.client import FOREIGN, connect, sentence, talking
from runner.backends.docker.options import CACHE, Container, cache_volume, container_name, has_cdi, owner_fix
from runner.backends.line_reader import Lines
from runner.catalog.gpu_errors import known
from runner.core.errors import EngineError, GpuError, Problem
from runner.core.model import Limits, Provisioned

LAST_BYTES = 64 * 1024
HEADER = 8
STDERR = 2
SEND_SECONDS = 60.0
QUIET_SECONDS = 3.0  # a server that measures says something every second
SHORTEST = 0.001  # seconds; 0 would make a socket non-blocking
ENDING_SECONDS = 3.0
OOM_NEAR = 5  # seconds between the kernel's kill and the end of the container it caused
KILLED = 137
ATTACH = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}


class Wire(Protocol):
    """What a socket, a TLS socket and paramiko's channel have in common."""

    def settimeout(self, timeout: float | None, /) -> None: ...  # noqa: D102
    def recv(self, size: int, /) -> bytes: ...  # noqa: D102
    def send(self, data: memoryview, /) -> int: ...  # noqa: D102
    def shutdown(self, how: int, /) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class Streams:
    """Takes apart what the engine sends: frames of a stream's number, a length and that many bytes."""

    def __init__(self, wire: Wire) -> None:
        """Read from ``wire``."""
        self._wire = wire
        self._buffer = bytearray()
        self.stderr = bytearray()

    def read(self, timeout: float) -> bytes:
        """Return some bytes of stdout, b"" at the end; keep the end of stderr. Raises TimeoutError."""
        end = time.monotonic() + timeout
        while True:
            out = self._frames()
            if out:
                return out
            self._wire.settimeout(max(end - time.monotonic(), SHORTEST))
            try:
                some = self._wire.recv(1 << 20)
            except TimeoutError:
                raise
            except OSError:  # the engine went away; `ending` finds out
                return b""
            if not some:
                return b""
            self._buffer += some

    def _frames(self) -> bytes:
        out = bytearray()
        while len(self._buffer) >= HEADER:
            end = HEADER + int.from_bytes(self._buffer[4:HEADER], "big")
            if len(self._buffer) < end:
                break
            (self.stderr if self._buffer[0] == STDERR else out).extend(self._buffer[HEADER:end])
            del self._buffer[:end]
        del self.stderr[:-LAST_BYTES]
        return bytes(out)


class DockerChannel:
    """A server in a container of its own; the container is gone after ``close``, or when the runner dies."""

    def __init__(self, ready: Provisioned, limits: Limits, owner: str, harness: bytes | None = None) -> None:
        """Start a container and send it the harness.

        Args:
            ready: the environment.
            limits: what the container may use.
            owner: who may sweep it, see ``docker_sweep.owner``.
            harness: what ``archive.pack`` returns; the shipped harness by default.

        Raises:
            EngineError: the engine refuses, or is gone.
            GpuError: the engine has no GPU to give.
        """
        self.name = container_name(limits.run, ready.environment)
        self._wire: Wire | None = None
        self._client = connect()
        try:
            with talking(f"cannot start a container for {ready.environment!r}"):
                self._start(ready, limits, owner)
                self.send(harness or harness_archive.pack())
        except BaseException as error:
            with suppress(EngineError):
                self.close()
            trouble = known(str(error)) if limits.device != "cpu" else None
            if trouble:
                what = f"the engine gives no GPU: {trouble.sentence} ({error})"
                raise GpuError(Problem(what, hint=trouble.fix)) from error
            raise

    def _start(self, ready: Provisioned, limits: Limits, owner: str) -> None:
        cdi = limits.device != "cpu" and has_cdi(self._client.info(), limits.device)
        python = str(ready.facts.get("interpreter", "python3"))
        asked = Container(name=self.name, image=ready.handle, python=python, limits=limits, owner=owner, cdi=cdi)
        prepare_cache(self._client, ready, limits.device, owner)
        container = self._client.containers.create(**asked.options())
        self._attached = self._client.api.attach_socket(self.name, params=ATTACH)
        self._wire = getattr(self._attached, "_sock", self._attached)
        self._streams = Streams(self._wire)
        self._lines = Lines(self._read)
        container.start()

    def send(self, data: bytes) -> None:
        """See Channel."""
        if self._wire is None:
            raise BrokenPipeError
        left, end = memoryview(data), time.monotonic() + SEND_SECONDS
        while left:
            self._wire.settimeout(QUIET_SECONDS)
            try:
                left = left[self._wire.send(left) :]
            except TimeoutError as error:
                if time.monotonic() >= end or not self._goes_on():
                    raise BrokenPipeError("nobody reads on") from error
            except OSError as error:
                raise BrokenPipeError(str(error)) from error

    def receive(self, timeout: float) -> bytes | None:
        """See Channel."""
        return None if self._wire is None else self._lines.next(timeout)

    def _read(self, timeout: float) -> bytes:
        """Return what Streams.read does, and b"" where the container has ended: an engine may keep its socket open."""
        end = time.monotonic() + timeout
        while True:
            try:
                return self._streams.read(min(max(end - time.monotonic(), 0.0), QUIET_SECONDS))
            except TimeoutError:
                if time.monotonic() >= end:
                    raise
                if not self._goes_on():
                    return b""

    def _goes_on(self) -> bool:
        """Say whether the container runs, as far as one knows: an engine may be too busy to answer for a moment."""
        with suppress(*FOREIGN):
            return self._alive()
        return True

    def words(self) -> str:
        """See Channel."""
        return self._streams.stderr.decode("utf-8", "replace")

    def ending(self) -> tuple[str, str]:
        """See Channel. The container removes itself, so the engine's recent events tell how it ended."""
        try:
            with talking("the container engine stopped answering"):
                code, starved = self._end()
                alive = code is None and self._alive()
        except EngineError as error:
            return "engine", error.problems[0].message
        last = (self.words().strip().splitlines() or ["it printed nothing"])[-1]
        if code is None:
            how = "but its container goes on" if alive else "and the engine no longer knows how its container ended"
            return "crash", f"the harness server closed its output, {how}; last words: {last}"
        if code == KILLED and starved:
            return "oom", "the kernel killed the harness server: its container was out of memory"
        return "crash", f"the harness server's container ended with exit {code}; last words: {last}"

    def _end(self) -> tuple[int | None, bool]:
        """Return the exit code, None where there is none yet, and whether memory ran out shortly before."""
        end = time.monotonic() + ENDING_SECONDS
        while True:
            events = self._events()
            died = [event for event in events if event["Action"] == "die"]
            if died:
                starved = [event for event in events if event["Action"] == "oom"]
                near = any(0 <= died[-1]["time"] - event["time"] <= OOM_NEAR for event in starved)
                return int(died[-1]["Actor"]["Attributes"]["exitCode"]), near
            if time.monotonic() > end:
                return None, False
            time.sleep(0.1)

    def _alive(self) -> bool:
        try:
            return bool(self._client.api.inspect_container(self.name)["State"]["Running"])
        except NotFound:
            return False

    def _events(self) -> list[dict[str, Any]]:
        """Return what happened to the container so far, by the engine's own clock."""
        asked: dict[str, Any] = {"since": 1, "until": f"{_seconds(self._client.info()['SystemTime']):.3f}"}
        asked["filters"] = {"container": self.name, "event": ["oom", "die"]}
        return list(self._client.api.events(decode=True, **asked))

    def close(self) -> None:
        """See Channel. The end of stdin comes first: it ends the server even where what follows is interrupted."""
        wire, self._wire = self._wire, None
        if wire is not None:
            with suppress(OSError, EOFError):  # the other end was faster
                wire.shutdown(socket.SHUT_RDWR)
            wire.close()
            self._attached.close()
        try:
            remove(self._client, self.name)
        except FOREIGN as error:
            raise EngineError(f"cannot remove the container {self.name!r}: {sentence(error)}") from error
        finally:
            self._client.close()


def prepare_cache(client: docker.DockerClient, ready: Provisioned, device: str, owner: str) -> None:
    """Make the cache volume; the image's own /cache gives it its owner, for a pulled image a helper does."""
    volume = cache_volume(ready.handle, device)
    try:
        client.api.inspect_volume(volume)
    except NotFound:
        client.api.create_volume(volume, labels={CACHE: ready.environment})
        if ready.facts.get("pulled"):
            _hand_over(client, ready.handle, volume, owner)


def _hand_over(client: docker.DockerClient, image: str, volume: str, owner: str) -> None:
    helper = client.containers.create(**owner_fix(image, volume, owner))
    code = -1
    try:
        helper.start()
        code = helper.wait(timeout=60)["StatusCode"]
    finally:
        remove(client, str(helper.id))
        if code != 0:  # else the next start would find a volume that it cannot write to
            client.api.remove_volume(volume)
    if code != 0:
        raise EngineError(f"cannot give the cache volume {volume!r} to uid 1000: chown ended with exit {code}")


def _seconds(moment: str) -> float:
    """Return an RFC 3339 moment, to the nanosecond as Go writes it, as seconds since 1970."""
    head, _, fraction = moment.rstrip("Z").partition(".")
    return datetime.fromisoformat(head + "+00:00").timestamp() + float(f"0.{fraction or 0}")
