"""The command of a host that measures for others: worker."""

from pathlib import Path
from typing import Annotated

import typer

from runner.cli import console
from runner.cli.params import Certificates, Device, Traceback
from runner.core.errors import Problem, UsageError

app = typer.Typer()


@app.command(short_help="Offer the devices of this host to `runner run --executor`")
def worker(
    address: Annotated[str, typer.Argument(help="the Dask scheduler, dask://HOST:8786")],
    device: Device = None,
    certificates: Certificates = None,
    traceback: Traceback = False,
) -> int:
    """Offer the devices of this host until the scheduler ends; one worker process for each device."""
    scheme, _, rest = address.partition("://")
    if scheme != "dask":
        raise UsageError(Problem(f"a worker cannot join {address!r}", hint="write dask://HOST:8786"))
    try:
        from runner.workflows.hosts.worker import serve
    except ModuleNotFoundError as error:
        hint = "install it with `pip install 'matrix-runner[dask]'`"
        raise UsageError(Problem(f"a worker needs the package {error.name}", hint=hint)) from error
    serve(rest, device, certificates, console.note)
    return 0
