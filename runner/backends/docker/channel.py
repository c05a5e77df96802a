"""A harness server in a container; stdin, stdout and stderr share one attached socket of the engine."""

import math
import socket
import time
from contextlib import suppress
from datetime import datetime
from typing import Any

from docker.errors import APIError
from typing_extensions import override

from runner.backends import ARCHIVE_SECONDS, Channel, harness_archive
from runner.backends.docker.cache import CacheGuard, create_folder, create_volume
from runner.backends.docker.client import FOREIGN, connect, is_podman, sentence, talking
from runner.backends.docker.containers import is_removed, remove_container
from runner.backends.docker.options import CACHE_BYTES, Container, cache_volume, container_name, gpu_request
from runner.backends.docker.streams import MIN_TIMEOUT, Streams, Wire
from runner.backends.line_reader import Lines
from runner.backends.sending import SendTime
from runner.backends.visible_devices import Request
from runner.catalog.gpu_errors import known_gpu_error
from runner.core import machine
from runner.core.errors import EngineError, GpuError, Problem
from runner.core.model import Limits, Provisioned
from runner.core.text import REASON_LENGTH, printable

QUIET_SECONDS = 3.0  # a server that measures sends a heartbeat every second
ENDING_SECONDS = 10.0  # a busy engine notes the end of a container late
OOM_SECONDS = 5  # between the kernel's kill and the end of the container that it caused
KILLED = 137
UNKNOWN_MEMORY = " (killed; Podman does not say whether it was out of memory)"
DIED = ("die", "died")
"""The event of a container's end: Podman 4.3 filters by its own name for it, and lists it by Docker's."""
ATTACH = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}


class DockerChannel(Channel):
    """A server in its own container, which is gone after ``close`` and when the runner dies."""

    def __init__(
        self,
        ready: Provisioned,
        limits: Limits,
        owner: str,
        harness: bytes | None = None,
        *,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """Start a container and send it the harness.

        Args:
            ready: the environment.
            limits: what the container may use.
            owner: the process that the container belongs to, see ``cleanup.owner``.
            harness: see ``harness_archive.pack``; the shipped harness by default.
            cache_bytes: what its cache volume may hold.

        Raises:
            EngineError: the engine refuses, or is gone.
            GpuError: the engine cannot give the container the GPU.
            UnreadError: the server does not read the harness.
        """
        self.name = container_name(limits.run, ready.environment)
        self._wire: Wire | None = None
        self._cache: CacheGuard | None = None
        self._podman = False
        self._client = connect()
        try:
            with talking(f"cannot start a container for {ready.environment!r}"):
                self._start(ready, limits, owner, cache_bytes)
            with suppress(BrokenPipeError):  # the server has ended: the first reply says how
                self.send(harness or harness_archive.pack(), ARCHIVE_SECONDS)
        except BaseException as error:
            with suppress(EngineError):
                self.close()
            gpu_error = known_gpu_error(str(error)) if limits.device != "cpu" else None
            if gpu_error:
                message = f"the engine gives no GPU: {gpu_error.sentence} ({error})"
                raise GpuError(Problem(message, hint=gpu_error.fix)) from error
            raise

    def _start(self, ready: Provisioned, limits: Limits, owner: str, cache_bytes: int) -> None:
        gpus: Request = "uuid"
        self._podman = podman = is_podman(self._client)
        if limits.device != "cpu":
            gpus = gpu_request(self._client.info(), limits.device, wsl=machine.is_wsl(), podman=podman)
        python = str(ready.facts.get("interpreter", "python3"))
        config = self._client.api.inspect_image(ready.handle).get("Config") or {}  # type: ignore[no-untyped-call]
        spec = Container(
            name=self.name,
            image=ready.handle,
            python=python,
            limits=limits,
            owner=owner,
            gpus=gpus,
            image_volumes=frozenset(config.get("Volumes") or ()),
            variables=ready.variables,
            podman=podman,
        )
        volume = cache_volume(ready.handle, limits.device, limits.networks)
        create_volume(self._client, volume, ready.environment)
        self._cache = CacheGuard(self._client, volume, cache_bytes)
        container = self._client.containers.create(**spec.options())
        create_folder(self._client, self.name)
        self._attached = self._client.api.attach_socket(self.name, params=ATTACH)
        self._wire = getattr(self._attached, "_sock", self._attached)
        self._streams = Streams(self._wire)
        self._lines = Lines(self._read)
        container.start()

    @override
    def send(self, data: bytes, timeout: float) -> None:
        if self._wire is None:
            raise BrokenPipeError
        remaining, time_left = memoryview(data), SendTime(timeout)
        while remaining:
            self._wire.settimeout(min(max(time_left.left(), MIN_TIMEOUT), QUIET_SECONDS))
            try:
                remaining = remaining[self._wire.send(remaining) :]
                time_left.note_progress()
            except TimeoutError:
                if not self._may_be_running():
                    raise BrokenPipeError("the server has ended") from None
            except OSError as error:
                raise BrokenPipeError(str(error)) from error

    @override
    def receive(self, timeout: float) -> bytes | None:
        return None if self._wire is None else self._lines.next(timeout)

    @override
    def discard(self) -> None:
        self._lines.discard()

    def _read(self, timeout: float) -> bytes:
        """Return what Streams.read does; b"" if the container has ended, as an engine may keep the socket open.

        Also b"" as soon as the cache is too large; ``close`` then ends the container.
        """
        end = time.monotonic() + timeout
        while self._cache is None or not self._cache.exceeded():
            try:
                return self._streams.read(min(max(end - time.monotonic(), 0.0), QUIET_SECONDS))
            except TimeoutError:
                if time.monotonic() >= end:
                    raise
                if not self._may_be_running():
                    return b""
        return b""

    def _may_be_running(self) -> bool:
        """Return False if the container has ended; True as well while the engine is too busy to answer."""
        with suppress(*FOREIGN):
            return self._is_running()
        return True

    @override
    def words(self) -> str:
        return self._streams.words()

    @override
    def ending(self) -> tuple[str, str]:
        """See Channel. The container removes itself, so its end is read from the engine's recent events."""
        if self._cache is not None and self._cache.excess:
            return "crash", f"the harness server was ended: {self._cache.excess}"
        if self._streams.invalid:
            return "engine", f"the engine sent something that is not a frame of a stream: {self._streams.invalid}"
        try:
            with talking("the container engine stopped answering"):
                code, out_of_memory = self._exit()
                running = code is None and self._is_running()
        except EngineError as error:
            return "engine", error.problems[0].message
        last = printable((self.words().strip().splitlines() or ["it printed nothing"])[-1], REASON_LENGTH)
        if code is None:
            state = "but its container runs" if running else "and the engine no longer knows how its container ended"
            return "crash", f"the harness server closed its output, {state}; last words: {last}"
        if code == KILLED and out_of_memory:
            return "oom", "the kernel killed the harness server: its container was out of memory"
        unknown = UNKNOWN_MEMORY if code == KILLED and self._podman else ""
        return "crash", f"the harness server's container ended with exit {code}{unknown}; last words: {last}"

    def _exit(self) -> tuple[int | None, bool]:
        """Return the exit code, None if there is none yet, and whether memory ran out shortly before."""
        end = time.monotonic() + ENDING_SECONDS
        while True:
            events = self._events()
            died = [event for event in events if event["Action"] == "die"]
            if died:
                kills = [event for event in events if event["Action"] == "oom"]
                recent = any(0 <= died[-1]["time"] - kill["time"] <= OOM_SECONDS for kill in kills)
                return int(died[-1]["Actor"]["Attributes"]["exitCode"]), recent
            if time.monotonic() > end:
                return None, False
            time.sleep(0.1)

    def _is_running(self) -> bool:
        try:
            return bool(self._client.api.inspect_container(self.name)["State"]["Running"])
        except APIError as error:
            if not is_removed(error):
                raise
            return False

    def _events(self) -> list[dict[str, Any]]:
        """Return the container's events up to now, by the clock of the engine.

        Podman lists none up to a time that has passed, so it waits for the second to end.
        """
        now = _seconds(self._client.info()["SystemTime"])
        query: dict[str, Any] = {"since": 1, "until": f"{math.floor(now) + 1}" if self._podman else f"{now:.3f}"}
        query["filters"] = {"container": self.name, "event": ["oom", *DIED]}
        return list(self._client.api.events(decode=True, **query))

    @override
    def close(self) -> None:
        """See Channel. The end of stdin comes first: it ends the server even if the rest is interrupted.

        Raises:
            EngineError: the engine is gone, or the cache was too large and was removed.
        """
        wire, self._wire = self._wire, None
        if wire is not None:
            with suppress(OSError, EOFError):  # the engine closed it first
                wire.shutdown(socket.SHUT_RDWR)
            wire.close()
            self._attached.close()
        try:
            remove_container(self._client, self.name)
            cache, self._cache = self._cache, None
            removed = cache.close() if cache is not None else ""
        except FOREIGN as error:
            raise EngineError(f"cannot remove the container {self.name!r}: {sentence(error)}") from error
        finally:
            self._client.close()
        if removed:
            raise EngineError(removed)


def _seconds(moment: str) -> float:
    """Return a time in RFC 3339, to the nanosecond as Go writes it, as seconds since 1970."""
    head, _, fraction = moment.rstrip("Z").partition(".")
    return datetime.fromisoformat(head + "+00:00").timestamp() + float(f"0.{fraction or 0}")
