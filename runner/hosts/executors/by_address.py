"""The executor of an address, whose package is imported only where it is used."""

from collections.abc import Callable
from pathlib import Path

from runner.core.errors import Problem, UsageError
from runner.hosts.executors import Executor

EXECUTORS = {"dask": "dask://HOST:8786", "slurm": "slurm://PARTITION?devices=4&gres=gpu:1"}
"""Scheme of an address -> an example of one."""
LOCAL = "local"
"""The executor of a run on this host alone, which needs none of these."""


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
