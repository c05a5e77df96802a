"""Parameters that bisect and explain share."""

from functools import partial
from typing import Annotated

import typer

from runner.cli import completion
from runner.cli.params import planning

searching = partial(
    planning,
    without=("selectors", "workload", "preset", "precision", "all", "budget", "python", "framework", "name", "upgrade"),
)
"""Gives a command the options of ``plan`` that a search takes: it measures one test, and how it does so is fixed."""
SearchedTest = Annotated[
    str,
    typer.Argument(
        metavar="CELL|MODEL",
        help="implementation/workload/case/phase/precision, with or without an environment in front; or a network as "
        "for --model, of which --phase chooses the test",
        autocompletion=completion.environments,
    ),
]
SearchedMetric = Annotated[
    str,
    typer.Option(
        "--metric", help="which metric changed: time, memory, import, size, ...", autocompletion=completion.metrics
    ),
]
Keep = Annotated[bool, typer.Option("--keep", help="keep the environments that are built for the search")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="print the candidates and what the search takes; measure nothing")
]
