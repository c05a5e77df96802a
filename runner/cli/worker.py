"""The command of a host that measures for others: worker."""

from pathlib import Path
from typing import Annotated

import typer

from runner.cli import console
from runner.cli.commands import CommandGroup
from runner.cli.params import Certificates, Device, Traceback
from runner.core.errors import Problem, UsageError

app = CommandGroup()


@app.command(short_help="Offer the devices of this host to `runner run --executor`")
def worker(
    address: Annotated[str | None, typer.Argument(help="the Dask scheduler, dask://HOST:8786")] = None,
    device: Device = None,
    certificates: Certificates = None,
    make_certificates: Annotated[
        Path | None,
        typer.Option("--make-certificates", metavar="FOLDER", help="write new certificates for all hosts, and exit"),
    ] = None,
    task: Annotated[Path | None, typer.Option("--task", hidden=True)] = None,
    reply: Annotated[Path | None, typer.Option("--reply", hidden=True)] = None,
    traceback: Traceback = False,
) -> int:
    """Offer the devices of this host until the scheduler ends; one worker process for each device."""
    if task is not None and reply is not None:
        from runner.hosts.work import perform_file

        perform_file(task, reply, device or "cpu")
        return 0
    try:
        if make_certificates is not None:
            from runner.hosts.certificates import make

            make(make_certificates)
            console.note(f"copy {make_certificates} to every host, and keep its files secret")
            return 0
        from runner.hosts.worker import serve
    except ModuleNotFoundError as error:
        hint = "install it with `pip install 'matrix-runner[dask]'`"
        raise UsageError(Problem(f"a worker needs the package {error.name}", hint=hint)) from error
    scheme, _, rest = (address or "").partition("://")
    if scheme != "dask":
        raise UsageError(Problem(f"a worker cannot join {address!r}", hint="write `runner worker dask://HOST:8786`"))
    serve(rest, device, certificates, console.note)
    return 0
