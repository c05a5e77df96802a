"""Dask: a scheduler, and workers that ``runner worker`` starts, each with one device and one thread."""

import ipaddress
import logging
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from distributed import Client, Future
from distributed.security import Security

from runner.core.errors import EngineError, Problem, UsageError
from runner.workflows.hosts.certificates import FILES
from runner.workflows.hosts.executors import Completion
from runner.workflows.hosts.work import perform_guarded

RESOURCE = "device:"
"""Begins the name of the resource that a worker of this program has one of; the device follows."""
CONNECT_SECONDS = 10.0
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
        UsageError: a file is missing.
    """
    if certificates is None:
        return None
    paths = [certificates / name for name in FILES]
    for path in paths:
        if not path.is_file():
            hint = "`runner worker --make-certificates FOLDER` makes them"
            raise UsageError(Problem(f"there is no {path}", hint=hint))
    authority, certificate, key = map(str, paths)
    roles = {f"tls_{role}_{part}": value for role in ("client", "worker", "scheduler")
             for part, value in (("cert", certificate), ("key", key))}  # fmt: skip
    return Security(tls_ca_file=authority, require_encryption=True, **roles)


class DaskExecutor:
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
            self.client = Client(
                address,
                security=security(certificates),
                timeout=CONNECT_SECONDS,
                set_as_default=False,
                name="matrix-runner",
            )
        except (OSError, TimeoutError) as error:
            message = f"no Dask scheduler answers at dask://{rest}: {error}"
            raise EngineError(Problem(message, hint="start one with `dask scheduler`")) from error
        self.address = rest
        self.pending: dict[str, Future] = {}

    def _workers(self) -> Mapping[str, Mapping[str, Any]]:
        if self.client.status != "running":
            raise self._gone(f"the connection is {self.client.status}")
        try:
            workers: Mapping[str, Mapping[str, Any]] = self.client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError) as error:
            raise self._gone(str(error)) from error
        return workers

    def _gone(self, reason: str) -> EngineError:
        message = f"the Dask scheduler at {self.address} is gone: {reason}"
        return EngineError(Problem(message, hint="start it again with `dask scheduler`, and its workers"))

    def devices(self) -> Mapping[str, str]:
        """See Executor; workers that ``runner worker`` did not start are left out."""
        devices = {}
        for address, worker in self._workers().items():
            names = [name for name in worker["resources"] if name.startswith(RESOURCE)]
            if names:
                devices[address] = names[0].removeprefix(RESOURCE)
        return devices

    def submit(self, key: str, task: bytes) -> None:
        """See Executor."""
        device = self.devices().get(key, "")
        self.pending[key] = self.client.submit(
            perform_guarded, task, device, workers=[key], allow_other_workers=False, retries=0, pure=False
        )

    def completed(self, seconds: float) -> Iterable[Completion]:
        """See Executor."""
        limit = time.monotonic() + seconds
        while True:
            completions = [*self._ended(), *self._lost()]
            if completions or time.monotonic() > limit:
                return completions
            time.sleep(PAUSE)

    def _ended(self) -> Iterable[Completion]:
        for key, future in list(self.pending.items()):
            if not future.done():
                continue
            del self.pending[key]
            if future.status == "finished":
                yield Completion(key, result=future.result())
            else:
                yield Completion(key, reason=f"the worker was lost: {future.exception() or future.status}", lost=True)

    def _lost(self) -> Iterable[Completion]:
        present = self._workers()
        for key, future in list(self.pending.items()):
            if key not in present and not future.done():
                del self.pending[key]
                future.cancel(force=True)
                yield Completion(key, reason="the worker has left the scheduler", lost=True)

    def close(self) -> None:
        """See Executor."""
        for future in self.pending.values():
            future.cancel(force=True)
        self.client.close(timeout=CONNECT_SECONDS)
