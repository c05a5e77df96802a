"""Users' networks in NumPy, measured by servers under this interpreter: each environment sets ``ENVIRONMENT``."""

import contextlib
import hashlib
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.backends.local_channel import ProcessChannel
from runner.core.model import (
    Block,
    Cell,
    Limits,
    Measurement,
    ModelFiles,
    Outcome,
    Plan,
    PlannedCell,
    Provisioned,
    Record,
)
from runner.measure.record import collect
from runner.measure.references import References
from runner.measure.rounds import Hooks, measure
from runner.measure.server_pool import ServerPool
from tests.support.executables import write_executable
from tests.support.fake_servers import GB, FakeBackend

NETWORK = """\
import os
import numpy
from layers import rectified

ENVIRONMENT = os.environ["ENVIRONMENT"]


class NumpyModel:
    def __init__(self, random, width, precision="fp32"):
        kind = {"fp64": "float64"}.get(precision, "float32")
        self.weights = numpy.random.rand(width, width).astype("float32").astype(kind)
        self.x = random.rand(8, width).astype(kind)

    def forward(self):
        return rectified(self.x.dot(self.weights))

    def train(self):
        outputs = self.forward()
        self.weights -= 0.01 * self.x.T.dot(2 * outputs / outputs.size)
        return (outputs ** 2).mean()
"""
LAYERS = "def rectified(x):\n    return x * (x > 0)\n"


def files(network: str = NETWORK) -> ModelFiles:
    """Return a network and its neighbour."""
    contents = {"my_network.py": network.encode(), "layers.py": LAYERS.encode()}
    digest = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()
    return ModelFiles(digest=f"sha256:{digest}", entry="my_network.py", files=contents)


def spec(name: str, model: ModelFiles, **changes: Any) -> dict[str, Any]:
    """Return the specification of a case."""
    values = {
        "workload": "my-network",
        "name": name,
        "family": "model",
        "seed": 0,
        "phases": ["forward", "train"],
        "entry": model.entry,
        "files": model.digest,
        "sizes": {"width": 16},
        "classes": {"numpy": "NumpyModel"},
        "takes_weights": [],
        "takes_precision": ["numpy"],
        "tolerance": None,
    }
    return {**values, **changes}


def block(specification: Mapping[str, Any], environments: Sequence[str] = ("np-a", "np-b")) -> Block:
    """Return a block with a cell for each environment and phase."""
    cells = tuple(
        Cell(environment=name, implementation="model", workload="my-network", case=specification["name"], phase=phase)
        for name in environments
        for phase in specification["phases"]
    )
    return Block(case_id=cells[0].case_id, spec=specification, device="cpu", cells=cells)


class LocalBackend(FakeBackend):
    """Starts real servers, each under a script that sets ``ENVIRONMENT`` and runs this interpreter."""

    def __init__(self, folder: Path) -> None:
        """Keep scripts and caches in ``folder``."""
        super().__init__()
        self.folder = folder

    def open(self, ready: Provisioned, _: Limits) -> ProcessChannel:  # type: ignore[override]
        """See Backend."""
        start = f'#!/bin/sh\nENVIRONMENT={ready.environment} exec {shlex.quote(sys.executable)} "$@"\n'
        script = write_executable(self.folder / f"python-{ready.environment}", start)
        return ProcessChannel(str(script), "cpu", variables=ready.variables)

    def cache(self, ready: Provisioned) -> str:
        """See Backend."""
        return str(self.folder / "cache" / ready.environment)


def planned(blocks: Sequence[Block], models: Sequence[ModelFiles], **how: Any) -> Plan:
    """Return a plan of some blocks."""
    cells = tuple(
        PlannedCell(cell=cell, device="cpu", kind="flexible", seconds=1.0) for b in blocks for cell in b.cells
    )
    return Plan(
        device="cpu",
        backend="venv",
        measurement=Measurement(**{"rounds": 1, "seconds": 0.05, "timeout": 10.0, "restart": 100, **how}),
        cells=cells,
        blocks=tuple(blocks),
        frameworks={planned_cell.cell.environment: "numpy" for planned_cell in cells},
        models={model.digest: model for model in models},
    )


def measured(plan: Plan, folder: Path, lines: list[str] | None = None) -> Iterator[tuple[Record, str]]:
    """Measure a plan with real servers; yield each record and its log."""
    ready = {
        name: Provisioned(environment=name, framework="numpy", handle="h", digest="d", seconds=0.0, cached=True)
        for name in plan.frameworks
    }
    say = (lines if lines is not None else []).append
    limits = Limits(memory=16 * GB, side_by_side=2)
    with contextlib.closing(ServerPool(plan, ready, LocalBackend(folder), limits, say)) as servers:
        for event in measure(plan, servers, References(folder / "references", 1), Hooks(say=say)):
            if isinstance(event, Outcome):
                yield collect(event, "run", {"device": "cpu"})
