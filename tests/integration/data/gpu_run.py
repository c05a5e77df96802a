"""`runner run` on a GPU whose computing NumPy does: planned as for a CPU, and held, read and recorded as on a GPU."""

from dataclasses import replace

import typer

from runner.cli import console
from runner.cli.params import planning
from runner.gpu import cooling
from runner.gpu.selection import choose_devices
from runner.session import execution
from runner.session.context import PlannedRun, cache_in_use, prepared
from runner.session.options import Options

app = typer.Typer()
cooling.PAUSES = (0.1, 0.2)  # no test waits for a minute


@app.command()
@planning
def run(options: Options) -> int:
    """Measure, and print where the run is."""
    with console.progress() as progress, cache_in_use(progress.note):
        context, plan = prepared(replace(options, device="cpu"), progress.note)
        _, gpus = choose_devices(options.device or "cuda")
        totals = execution.run(PlannedRun(replace(context, gpus=gpus), plan), progress)
    console.emit(str(totals.run.path), None)
    return 1 if totals.bad else 0


console.end(app)
