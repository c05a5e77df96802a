"""``runner worker``: offer the devices of this host to a driver, through a Dask scheduler."""

import asyncio
import logging
import multiprocessing
from collections.abc import Callable
from pathlib import Path

from distributed import Worker
from distributed.security import Security

from runner.core.model import device_id
from runner.gpu.selection import choose_devices
from runner.workflows.hosts.executors.dask import RESOURCE, scheduler_address, security


def serve(rest: str, device: str | None, certificates: Path | None, say: Callable[[str], None]) -> None:
    """Offer devices until the scheduler ends, each in a process with one thread.

    Args:
        rest: ``HOST:PORT`` of the scheduler.
        device: as ``--device``; by default the first GPU, or the CPU.
        certificates: the folder of certificates; None on loopback.
        say: takes sentences for the user.

    Raises:
        UsageError: the address or the certificates are wrong.
        GpuError: the device is not there.
    """
    address, tls = scheduler_address(rest, certificates), security(certificates)
    _, gpus = choose_devices(device, say)
    first, *others = [gpu.uuid for gpu in gpus] or [device_id(None)]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_offer, args=(address, name, tls), daemon=True) for name in others]
    for process in processes:
        process.start()
    say(f"offers {', '.join([first, *others])} to {address}")
    _offer(address, first, tls)
    say("the scheduler has ended, and this worker with it")


def _offer(address: str, device: str, tls: Security | None) -> None:
    logging.getLogger("distributed").setLevel(logging.WARNING)  # at the end of a scheduler it logs tracebacks as INFO
    asyncio.run(_work(address, device, tls))


async def _work(address: str, device: str, tls: Security | None) -> None:
    resources: dict[str, float] = {RESOURCE + device: 1.0}
    worker = Worker(
        address,
        nthreads=1,
        resources=resources,
        security=tls,
        memory_limit=0,
        dashboard=False,
        dashboard_address="127.0.0.1:0",  # its pages have no TLS
    )
    async with worker:
        await worker.finished()
