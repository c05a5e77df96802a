"""Ways to reach the devices of other hosts, one protocol: Dask and Slurm.

An executor knows devices by a key, gives a device one task at a time, and returns bytes. It never retries: the driver
decides what happens to the block of a worker that is lost.
"""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runner.core.errors import Problem, UsageError

EXECUTORS: Mapping[str, str] = {
    "dask": "runner.workflows.hosts.executors.dask:DaskExecutor",
    "slurm": "runner.workflows.hosts.executors.slurm:SlurmExecutor",
}
"""Scheme of an address -> module and class, imported when it is chosen."""
LOCAL = "local"
"""The executor of a run on this host alone, which needs none of these."""


@dataclass(frozen=True, slots=True)
class Completion:
    """How a task ended.

    Attributes:
        key: of the device that had it.
        result: what the worker returned; None if it failed.
        reason: why it failed, in a sentence; empty if it did not.
        lost: the worker is gone, so that nobody knows how far it came; a failed task was ended by the worker itself.
    """

    key: str
    result: bytes | None = None
    reason: str = ""
    lost: bool = False


class Executor(Protocol):
    """Hands tasks to the devices of other hosts."""

    def devices(self) -> Mapping[str, str]:
        """Return key -> device (``cpu`` or the UUID of a GPU) of every device that can be given a task now or later.

        Raises:
            EngineError: the scheduler is gone.
        """

    def submit(self, key: str, task: bytes) -> None:
        """Give a task to a device that has none."""

    def completed(self, seconds: float) -> Iterable[Completion]:
        """Return the tasks that ended, each once; wait at most ``seconds`` for the first.

        Raises:
            EngineError: the scheduler is gone.
        """

    def close(self) -> None:
        """Give up all tasks, and the connection."""


def connect(address: str, certificates: Path | None = None) -> Executor:
    """Return the executor of an address such as ``dask://host:8786`` or ``slurm://partition``.

    Args:
        address: the scheme and what is behind it.
        certificates: a folder of certificates for TLS; None without TLS.

    Raises:
        UsageError: there is no such executor, or its package is not installed.
        EngineError: nothing answers there.
    """
    scheme, _, rest = address.partition("://")
    if scheme not in EXECUTORS:
        names = ", ".join(f"{name}://..." for name in EXECUTORS)
        raise UsageError(Problem(f"there is no executor {address!r}", hint=f"there are {LOCAL}, {names}"))
    module, _, name = EXECUTORS[scheme].partition(":")
    try:
        executor: Executor = getattr(importlib.import_module(module), name)(rest, certificates)
    except ModuleNotFoundError as error:
        hint = f"install it with `pip install 'matrix-runner[{scheme}]'`"
        raise UsageError(Problem(f"the executor {scheme} needs the package {error.name}", hint=hint)) from error
    return executor
