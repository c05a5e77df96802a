"""Dask: a scheduler, and workers that ``runner worker`` starts, each with one device and one thread."""

import asyncio
import concurrent.futures
import ipaddress
import logging
import re
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client, Future
from distributed.security import Security
from typing_extensions import override

from runner.core.errors import EngineError, Problem, UsageError
from runner.core.text import REASON_LENGTH, printable
from runner.hosts.certificates import check
from runner.hosts.executors.executor import Completion, Executor
from runner.hosts.task_process import perform_in_process

RESOURCE = "device:"
"""Begins the name of the resource that a worker of this program has one of; the device follows."""
CONNECT_SECONDS = 10.0
"""How long a driver looks for the scheduler: at the start, and after the connection was lost."""
REFRESH_SECONDS = 1.0
"""How old the list of the workers may be; asking costs a message about every worker."""
PAUSE = 0.05  # seconds between two looks at the tasks


def scheduler_address(rest: str, certificates: Path | None) -> str:
    """Return the address of a scheduler as Dask writes it.

    Args:
        rest: ``HOST:PORT``.
        certificates: the folder that ``certificates.make`` has written; None without TLS, for loopback alone.

    Raises:
        UsageError: it is no address, or is not on loopback and there are no certificates.
    """
    host, _, port = rest.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(Problem(f"dask://{rest} is not an address", hint="write dask://HOST:8786"))
    if certificates is None and not _is_loopback(host):
        message = f"dask://{rest} is not on this host, and without TLS anyone on the network could run code here"
        hint = "`runner worker --make-certificates FOLDER` makes certificates; then add --certificates FOLDER"
        raise UsageError(Problem(message, hint=hint))
    return f"{'tls' if certificates else 'tcp'}://{rest}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def security(certificates: Path | None) -> Security | None:
    """Return the settings of TLS with the certificates of a folder; None without one.

    Raises:
        UsageError: a file is missing, or the key is not private.
    """
    if certificates is None:
        return None
    authority, certificate, key = map(str, check(certificates))
    roles = {f"tls_{role}_{part}": value for role in ("client", "worker", "scheduler")
             for part, value in (("cert", certificate), ("key", key))}  # fmt: skip
    return Security(tls_ca_file=authority, require_encryption=True, **roles)


class ForeignProtocolError(OSError):
    """What answers at the address of a scheduler is no Dask scheduler, or has TLS where this side has none."""


@asynccontextmanager
async def first_words(seconds: float) -> AsyncIterator[None]:
    """Limit how long a peer may take for its first words, and turn what they raise into an OSError.

    Dask limits how long a connection takes and not how long its peer is silent then: a scheduler that is stopped, or a
    tunnel that is dead. What is no message of Dask raises whatever its reader happens to raise: ``ValueError``,
    ``MemoryError``, ``AssertionError``.

    Raises:
        TimeoutError: the peer was silent for too long.
        ForeignProtocolError: it speaks another protocol.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except (OSError, ImportError):  # Dask raises ImportError where the versions of both sides do not fit
        raise
    except Exception as error:
        raise ForeignProtocolError(f"{type(error).__name__} {error}".strip()) from error


def no_scheduler(rest: str, error: OSError | ImportError) -> EngineError:
    """Return the error of a scheduler that cannot be reached at ``HOST:PORT``."""
    if isinstance(error, ForeignProtocolError):
        message = f"what answers at {rest} is no Dask scheduler, or only one side has --certificates"
        hint = "check the port, which is 8786 unless the scheduler was given another; 8787 is the port of its pages"
        return EngineError(Problem(f"{message} ({printable(str(error), REASON_LENGTH)})", hint=hint))
    reason = re.sub("^in <[^>]*>: ", "", str(error.__cause__ or error)) or "no answer"
    if "SSL" in reason:
        message = f"the Dask scheduler at {rest} and this host do not accept each other's certificates: {reason}"
        return EngineError(Problem(message, hint="use the folder that the scheduler was started with"))
    return EngineError(
        Problem(f"no Dask scheduler answers at {rest}: {reason}", hint="start one with `dask scheduler`")
    )


@dataclass(frozen=True, slots=True)
class _Task:
    """A task that a worker has, and what fetches its reply as soon as there is one."""

    future: Future
    reply: "concurrent.futures.Future[bytes]"

    def cancel(self) -> None:
        self.reply.cancel()
        self.future.cancel(force=True)


class _Client(Client):
    """A client that gives up a scheduler that is silent or no scheduler, at the start and after a lost connection."""

    async def _ensure_connected(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  as Dask declares it
        async with first_words(CONNECT_SECONDS):
            await super()._ensure_connected(timeout=timeout)


class DaskExecutor(Executor):
    """The devices of the workers of a Dask scheduler."""

    def __init__(self, rest: str, certificates: Path | None = None) -> None:
        """Connect to the scheduler at ``HOST:PORT``.

        Raises:
            UsageError: the address or the certificates are wrong.
            EngineError: nothing answers there.
        """
        address = scheduler_address(rest, certificates)
        logging.disable(logging.CRITICAL)  # what Dask logs with tracebacks, this class says in a sentence
        try:
            self.client = _Client(
                address,
                security=security(certificates),
                timeout=CONNECT_SECONDS,
                set_as_default=False,
                name="matrix-runner",
            )
        except (OSError, ImportError) as error:
            raise no_scheduler(rest, error) from error
        self.address = rest
        self.pending: dict[str, _Task] = {}
        self.workers: Mapping[str, Mapping[str, Any]] = {}
        self.refreshed = 0.0

    def _workers(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what the scheduler knows about its workers; wait while the connection is made again."""
        while self.client.status == "connecting":  # until CONNECT_SECONDS have passed
            self.refreshed = 0.0
            time.sleep(PAUSE)
        if self.client.status != "running":
            message = f"the Dask scheduler at {self.address} is gone: the connection is {self.client.status}"
            raise EngineError(Problem(message, hint="start it again with `dask scheduler`, and its workers"))
        if time.monotonic() - self.refreshed > REFRESH_SECONDS:
            self.workers = self.client.scheduler_info(n_workers=-1)["workers"]
            self.refreshed = time.monotonic()
        return self.workers

    @override
    def devices(self) -> Mapping[str, str]:
        """See Executor; workers that ``runner worker`` did not start are left out."""
        devices = {}
        for address, worker in self._workers().items():
            names = [name for name in worker["resources"] if name.startswith(RESOURCE)]
            if names:
                devices[address] = names[0].removeprefix(RESOURCE)
        return devices

    @override
    def submit(self, key: str, task: bytes, avoid: Collection[str] = ()) -> None:
        device = self.devices().get(key, "")
        future = self.client.submit(
            perform_in_process, task, device, workers=[key], allow_other_workers=False, retries=0, pure=False
        )
        fetching = self.client.gather(future, asynchronous=True)
        loop: Any = self.client.loop
        self.pending[key] = _Task(future, asyncio.run_coroutine_threadsafe(fetching, loop.asyncio_loop))

    @override
    def completed(self, seconds: float) -> Iterable[Completion]:
        limit = time.monotonic() + seconds
        while True:
            completions = [*self._ended()] or [*self._lost()]
            yield from completions
            if completions or time.monotonic() > limit:
                return
            time.sleep(PAUSE)

    def _ended(self) -> Iterable[Completion]:
        for key, task in list(self.pending.items()):
            if not task.reply.done():
                continue
            del self.pending[key]
            try:
                yield Completion(key, result=task.reply.result())
            except (asyncio.CancelledError, concurrent.futures.CancelledError):
                yield Completion(key, reason="the connection to the scheduler was lost", lost=True)
            except Exception as error:  # noqa: BLE001  whatever Dask raises
                yield Completion(key, reason=f"the worker was lost: {str(error) or type(error).__name__}", lost=True)

    def _lost(self) -> Iterable[Completion]:
        present = self._workers()
        for key, task in list(self.pending.items()):
            if key not in present and not task.reply.done():
                del self.pending[key]
                task.cancel()
                yield Completion(key, reason="the worker has left the scheduler", lost=True)

    @override
    def uncollected(self, run: str) -> Iterable[bytes]:
        """See Executor. Dask forgets the tasks of a driver that is gone, and workers stop them."""
        return ()

    @override
    def close(self) -> None:
        for task in self.pending.values():
            task.cancel()
        self.client.close(timeout=CONNECT_SECONDS)
