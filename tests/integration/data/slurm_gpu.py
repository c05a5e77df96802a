"""`runner` whose jobs of Slurm measure on stand-in GPUs: NumPy computes, planned as for a CPU, and held as on a GPU."""

import sys
from dataclasses import replace
from typing import Any

from runner import cli
from runner.gpu.selection import choose_devices
from runner.hosts import work
from runner.hosts.executors import slurm
from runner.session.context import Context, setup
from runner.session.options import Options


def setup_on_gpu(options: Options, **received: Any) -> Context:
    """Return the context of a plan for the CPU, with the GPU that the job has got."""
    _, gpus = choose_devices(options.device)
    return replace(setup(replace(options, device="cpu"), **received), gpus=gpus)


work.setup = setup_on_gpu  # type: ignore[attr-defined, assignment]
slurm.PROGRAM = (sys.executable, __file__)
slurm.SETTLE_SECONDS = 2.0  # no other host writes here
cli.main()
