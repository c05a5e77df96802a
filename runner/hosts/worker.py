"""``runner worker``: offer the devices of this host to a driver, through a Dask scheduler."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import Worker
from distributed.comm.addressing import get_address_host
from distributed.comm.core import connect
from distributed.security import Security

from runner.core.errors import EngineError, Problem
from runner.core.model import device_id
from runner.core.units import duration
from runner.gpu.selection import choose_devices
from runner.hosts.executors.dask import (
    CONNECT_SECONDS,
    RESOURCE,
    ForeignProtocolError,
    first_words,
    no_scheduler,
    scheduler_address,
    security,
)
from runner.hosts.task_process import end_all

RETURN_SECONDS = 600.0
"""How long a worker looks for a scheduler that it has lost: longer than a restart of its host takes."""
ATTEMPT_SECONDS = 3.0
"""Of one attempt to connect: a long one waits ever longer between its packets, also after the network is back."""
JOIN_SECONDS = 30.0
"""How long a scheduler that has answered may take to accept the workers of this host."""
SCHEDULER_ENDED = "scheduler-close"
"""The reason that a scheduler gives its workers when it ends in order."""
QUIET = {
    "distributed.worker.profile.enabled": False,  # reads the stack of each task every 10 ms
    "distributed.diagnostics.nvml": False,  # asks the GPU every 500 ms
    "distributed.worker.http.routes": [],
}
"""Dask's settings for a host that measures."""


def serve(
    rest: str,
    device: str | None,
    certificates: Path | None,
    say: Callable[[str], None],
    patience: float = RETURN_SECONDS,
) -> None:
    """Offer devices until the scheduler ends.

    Args:
        rest: ``HOST:PORT`` of the scheduler.
        device: as ``--device``; by default the first GPU, or the CPU.
        certificates: the folder of certificates; None on loopback.
        say: takes sentences for the user.
        patience: seconds for which a scheduler is looked for that was lost.

    Raises:
        UsageError: the address or the certificates are wrong.
        GpuError: the device is not there.
        EngineError: no scheduler answers, or one that was lost has not come back.
    """
    link = _Link(rest, scheduler_address(rest, certificates), security(certificates))
    _, gpus = choose_devices(device, say)
    devices = [gpu.uuid for gpu in gpus] or [device_id(None)]
    logging.disable(logging.CRITICAL)  # what Dask logs with tracebacks, this module says in a sentence
    dask.config.set(QUIET)
    loop = asyncio.new_event_loop()
    task = loop.create_task(_offer(link, devices, say, patience))
    with ThreadPoolExecutor(1) as pool:  # signals interrupt the main thread, and Dask runs in another
        try:
            pool.submit(loop.run_until_complete, task).result()
        except KeyboardInterrupt:
            loop.call_soon_threadsafe(task.cancel)
            raise
    loop.close()


@dataclass(frozen=True, slots=True)
class _Link:
    """The way to a scheduler.

    Attributes:
        rest: ``HOST:PORT``.
        address: as Dask writes it.
        tls: the certificates; None on loopback.
    """

    rest: str
    address: str
    tls: Security | None

    async def reach(self, seconds: float) -> str:
        """Wait until the scheduler answers, and return the address by which it sees this host.

        Raises:
            EngineError: it does not answer for ``seconds``, accepts no certificate of this host, or is no scheduler.
        """
        limit = time.monotonic() + seconds
        options = (self.tls or Security()).get_connection_args("worker")
        while True:
            try:
                async with first_words(ATTEMPT_SECONDS):
                    comm = await connect(self.address, timeout=ATTEMPT_SECONDS, **options)
            except (OSError, ImportError) as error:
                lasting = isinstance(error, ForeignProtocolError) or "SSL" in str(error)
                if lasting or time.monotonic() > limit:
                    raise no_scheduler(self.rest, error) from error
                await asyncio.sleep(1.0)
            else:
                host = get_address_host(comm.local_address)
                await comm.close()
                return f"[{host}]" if ":" in host else host


async def _offer(link: _Link, devices: Sequence[str], say: Callable[[str], None], patience: float) -> None:
    """Offer devices, again and again, until the scheduler ends."""
    host = await link.reach(CONNECT_SECONDS)
    while await _offer_once(link, host, devices, say) != SCHEDULER_ENDED:
        say(f"lost the Dask scheduler at {link.rest}: looks for it for {duration(patience)}")
        host = await link.reach(patience)
    say(f"the Dask scheduler at {link.rest} has ended")


async def _offer_once(link: _Link, host: str, devices: Sequence[str], say: Callable[[str], None]) -> str:
    """Offer devices until one of their workers ends, and return the reason."""
    workers = [HostWorker(link, host, device) for device in devices]
    try:
        async with asyncio.timeout(JOIN_SECONDS):
            await asyncio.gather(*workers)
        say(f"offers {', '.join(devices)} to {link.address}")
        await asyncio.wait(
            [asyncio.ensure_future(worker.finished()) for worker in workers], return_when=asyncio.FIRST_COMPLETED
        )
        return next(worker.ending for worker in workers if worker.ending)
    except TimeoutError as error:
        raise no_scheduler(link.rest, error) from error
    except RuntimeError as error:
        raise EngineError(Problem(f"{link.rest} does not take this worker: {error.__cause__ or error}")) from error
    finally:
        await asyncio.gather(*(worker.close() for worker in workers))
        await asyncio.to_thread(end_all)  # before others may have the devices


class HostWorker(Worker):
    """A worker with one device and one thread.

    Attributes:
        ending: the reason why it ends, as Dask names it.
    """

    def __init__(self, link: _Link, host: str, device: str) -> None:
        """Offer a device; nothing is connected yet.

        Args:
            link: the way to the scheduler.
            host: the address to listen on; by default Dask listens on all, on loopback without TLS.
            device: ``cpu``, or the UUID of a GPU.
        """
        self.ending = ""
        resources: dict[str, float] = {RESOURCE + device: 1.0}
        super().__init__(link.address, nthreads=1, host=host, resources=resources, security=link.tls, memory_limit=0)

    def start_http_server(self, *_arguments: object, **_options: object) -> None:
        """Do nothing: Dask would serve pages about the worker to everyone on the network, without TLS."""

    async def close(self, reason: str = "worker-close", **options: Any) -> str | None:  # type: ignore[override]  # noqa: ANN401
        """Close the worker; see ``Worker.close``, whose arguments Dask gives by name."""
        self.ending = self.ending or reason
        return await super().close(reason=reason, **options)
