"""The environments a figure is measured in: only those that are made already, since a benchmark fetches nothing."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.table import UnmeasurableError
from runner.backends import Backend, Resources, choose_backend
from runner.core.errors import EngineError, NothingSelectedError
from runner.core.model import Cell, Provisioned
from runner.core.paths import cache_folder
from runner.harness import cases
from runner.session.context import Context, setup
from runner.session.options import Options
from runner.session.preparation import Prepared, prepare

ROOT = Path(__file__).parent.parent
MATRIX = ROOT / "matrix.yaml"
REPORTS = ROOT / "reports"


@dataclass(frozen=True, slots=True)
class Ready:
    """A plan all of whose environments are made."""

    setup: Context
    prepared: Prepared

    @property
    def backend(self) -> Backend:
        """What starts the servers."""
        return self.setup.backend


def nothing(*_line: str) -> None:
    """Take a line of progress and say nothing."""


def backends() -> Iterator[tuple[str, Backend | str]]:
    """Give each backend with its name; why it cannot be had, where no engine answers."""
    resources = Resources(dockerfiles=MATRIX.parent / "docker", cache=cache_folder(os.environ))
    for name in ("docker", "venv"):
        try:
            yield name, choose_backend(name, resources)[0]
        except EngineError as error:
            yield name, error.problems[0].message


def ready(cells: Sequence[str], options: Options) -> Ready:
    """Return the plan of some cells on the CPU.

    Args:
        cells: ids or globs of cells, each with the name of its environment.
        options: all else; its selectors are not used.

    Raises:
        UnmeasurableError: an environment of them is not made here, or a cell cannot run.
    """
    try:
        context = setup(replace(options, selectors=list(cells), matrix=MATRIX, device="cpu"))
    except (EngineError, NothingSelectedError) as error:
        raise UnmeasurableError(error.problems[0].message) from error
    prepared = prepare(context.matrix, context.request, context.backend, context.settings, None)
    made = {spec.environment for spec in prepared.specs} & prepared.survey.cached
    for cell in cells:
        name = cell.partition("/")[0]
        if name not in made:
            raise UnmeasurableError(f"{name} is not made: `runner build {name} --backend {context.backend.name}`")
    return Ready(context, prepared)


def request(bench: Ready, made: Provisioned, cell: Cell, seconds: float) -> dict[str, Any]:
    """Return what a server is asked for a cell on the CPU, but for what is said of the round."""
    (case,) = (block.spec for block in bench.prepared.plan.blocks if cell in block.cells)
    return {
        "case": dict(case),
        "key": cases.key(dict(case)),
        "framework": made.framework,
        "implementation": cell.implementation,
        "phase": cell.phase,
        "device": "cpu",
        "precision": cell.precision,
        "seconds": seconds,
        "cache": bench.backend.cache(made),
        "timeout": 600.0,
        "memory": None,
    }
