"""Ways to reach the devices of other hosts, one protocol: Dask and Slurm.

An executor knows devices by a key, gives a device one task at a time, and returns bytes. It never retries: the driver
decides what happens to the block of a worker that is lost.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runner.core.errors import Problem, UsageError

EXECUTORS = {"dask": "dask://HOST:8786", "slurm": "slurm://PARTITION?devices=4&gres=gpu:1"}
"""Scheme of an address -> an example of one."""
LOCAL = "local"
"""The executor of a run on this host alone, which needs none of these."""
MAX_REPLY_BYTES = 1 << 30
"""The largest reply of a worker: the records of a block."""


@dataclass(frozen=True, slots=True)
class Completion:
    """How a task ended.

    Attributes:
        key: of the device that had it.
        result: what the worker returned; None if it failed.
        reason: why it failed, in a sentence; empty if it did not.
        lost: the worker is gone, so that nobody knows how far it came; a failed task was ended by the worker itself.
        host: the host that had it, where the executor chooses hosts; empty where it does not, or does not know.
    """

    key: str
    result: bytes | None = None
    reason: str = ""
    lost: bool = False
    host: str = ""


class Executor(Protocol):
    """Hands tasks to the devices of other hosts."""

    def devices(self) -> Mapping[str, str]:
        """Return key -> device (``cpu`` or the UUID of a GPU) of every device that can be given a task now or later.

        Raises:
            EngineError: the scheduler is gone.
        """

    def submit(self, key: str, task: bytes, avoid: Collection[str] = ()) -> None:
        """Give a task to a device that has none.

        Args:
            key: of the device.
            task: what to do.
            avoid: hosts that should not get it if others can, where the executor chooses hosts.
        """

    def completed(self, seconds: float) -> Iterable[Completion]:
        """Yield the tasks that ended, each once; wait at most ``seconds`` for the first.

        Who asks for the next one has used the one before: until then, a reply is kept for a later driver where it can.

        Raises:
            EngineError: the scheduler is gone.
        """

    def uncollected(self, run: str) -> Iterable[bytes]:
        """Yield the replies that earlier drivers of a run have not collected, and end their other tasks.

        Args:
            run: its id.

        Raises:
            EngineError: the scheduler is gone.
        """

    def close(self) -> None:
        """Give up all tasks, and the connection."""


def connect(
    address: str, certificates: Path | None, folder: Path, say: Callable[[str], None] = lambda _: None
) -> Executor:
    """Return the executor of an address.

    Args:
        address: such as those of ``EXECUTORS``.
        certificates: a folder of certificates for TLS; None without TLS.
        folder: the folder of the reports, which all nodes of a Slurm cluster share.
        say: takes sentences for the user.

    Raises:
        UsageError: there is no such executor, or its package is not installed.
        EngineError: nothing answers there.
    """
    scheme, _, rest = address.partition("://")
    if scheme == "slurm":
        from runner.hosts.executors.slurm import SlurmExecutor

        return SlurmExecutor(rest, folder, say)
    if scheme != "dask":
        examples = ", ".join(EXECUTORS.values())
        raise UsageError(Problem(f"there is no executor {address!r}", hint=f"there are {LOCAL}, {examples}"))
    try:
        from runner.hosts.executors.dask import DaskExecutor
    except ModuleNotFoundError as error:
        hint = "install it with `pip install 'matrix-runner[dask]'`"
        raise UsageError(Problem(f"the executor dask needs the package {error.name}", hint=hint)) from error
    return DaskExecutor(rest, certificates)
