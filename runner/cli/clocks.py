"""The command about the clocks of GPUs."""

from typing import Annotated, Literal

import typer

from runner.cli import console
from runner.cli.results import Output, Traceback
from runner.core.errors import Problem, UsageError
from runner.workflows.options import check_format

app = typer.Typer()


@app.command()
def clocks(
    action: Annotated[Literal["show", "reset"], typer.Argument(help="show or reset")] = "show",
    device: Annotated[
        str | None, typer.Option("--device", help="reset this GPU to its driver's own clocks, whoever has set them")
    ] = None,
    format: Annotated[str, typer.Option(help="table or json, of show")] = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Show what is held of the GPUs' clocks, or let go of what a run that was killed has left held."""
    from runner.gpu.selection import choose_devices
    from runner.workflows.clocks import reset, show

    check_format(format, ("table", "json"))
    if action == "show":
        if device is not None:
            raise UsageError(Problem("--device is for reset", hint="show has all GPUs"))
        found = show()
        console.emit(console.json_text(found.json()) if format == "json" else found.text(), output)
        return 0
    gpus = choose_devices(device)[1] if device is not None else (None,)
    if len(gpus) > 1:
        raise UsageError(Problem("the clocks of one GPU are reset at a time", hint="name one: --device cuda:0"))
    if not gpus:
        raise UsageError(Problem(f"{device!r} has no clocks that are held", hint="name a GPU: --device cuda:0"))
    console.emit(reset(gpus[0], console.note), output)
    return 0
