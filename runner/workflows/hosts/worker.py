"""``runner worker``: offer the devices of this host to a driver, through a Dask scheduler."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from distributed import Worker

from runner.core.model import device_id
from runner.gpu.selection import choose_devices
from runner.workflows.hosts.executors.dask import RESOURCE, scheduler_address, security


def serve(rest: str, device: str | None, certificates: Path | None, say: Callable[[str], None]) -> None:
    """Offer a device until the scheduler ends; a process for each further GPU does the same.

    Args:
        rest: ``HOST:PORT`` of the scheduler.
        device: as ``--device``; several GPUs get a process each.
        certificates: the folder of certificates; None on loopback.
        say: takes sentences for the user.

    Raises:
        UsageError: the address or the certificates are wrong.
        GpuError: the device is not there.
    """
    address, tls = scheduler_address(rest, certificates), security(certificates)
    _, gpus = choose_devices(device, say)
    names: Sequence[str] = [gpu.uuid for gpu in gpus] or [device_id(None)]
    for name in names[1:]:
        if os.fork() == 0:
            names = [name]
            break
    say(f"offers {names[0]} to {address}")
    asyncio.run(_work(address, names[0], tls))


async def _work(address: str, device: str, tls: object) -> None:
    worker = Worker(
        address,
        nthreads=1,
        resources={RESOURCE + device: 1},
        security=tls,
        memory_limit=None,
        dashboard=False,
    )
    async with worker:
        await worker.finished()
