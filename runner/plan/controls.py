"""What is measured to know the noise: an environment beside itself, and a product that no environment touches.

``ENVIRONMENT@twin`` is the same image on a server of its own. Whatever sets the two apart is no difference of releases.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from runner.core.model import Block, Cell, Plan, PlannedCell, Provisioned

TWIN = "@twin"
SIZE = 512
PRODUCTS = 15  # of which the first few warm up
WARM_UP = 5


def is_twin(environment: str) -> bool:
    """Say whether an environment is the twin of another one."""
    return environment.endswith(TWIN)


def twin(cell: Cell) -> Cell:
    """Return the cell that is measured beside a cell, on a server of its own."""
    return replace(cell, environment=cell.environment + TWIN)


def with_twins(plan: Plan) -> Plan:
    """Return the plan with an A/A pair in each block: the first cell of it and its twin.

    A block of one cell compares nothing, and gets none.
    """
    blocks = tuple(
        replace(block, cells=(*block.cells, twin(block.cells[0]))) if len(block.cells) > 1 else block
        for block in plan.blocks
    )
    known = {planned.cell: planned for planned in plan.cells}
    added = tuple(_planned(known, block) for block in blocks if is_twin(block.cells[-1].environment))
    names = {one.cell.environment: plan.frameworks[_origin(one.cell.environment)] for one in added}
    return replace(plan, blocks=blocks, cells=plan.cells + added, frameworks={**plan.frameworks, **names})


def _planned(known: Mapping[Cell, PlannedCell], block: Block) -> PlannedCell:
    return replace(known[block.cells[0]], cell=block.cells[-1])


def provisioned(plan: Plan, ready: Mapping[str, Provisioned]) -> dict[str, Provisioned]:
    """Return the environments that could be made, with the twins of a plan among them."""
    twins = [name for name in plan.frameworks if is_twin(name) and _origin(name) in ready]
    return {**ready, **{name: replace(ready[_origin(name)], environment=name) for name in twins}}


def _origin(environment: str) -> str:
    return environment.removesuffix(TWIN)


def canary(threads: int, cpus: Sequence[int] = ()) -> float:
    """Return the median seconds of a product of 512 x 512 numbers in single precision, in a fresh process.

    The process is of this program's own interpreter and NumPy, so that what changes is the machine.

    Args:
        threads: of the BLAS.
        cpus: the processors it keeps to; empty for any.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    command = [sys.executable, "-P", "-m", "runner.plan.controls", *map(str, cpus)]
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    times = sorted(json.loads(done.stdout)[WARM_UP:])
    return float(times[len(times) // 2])


def main(cpus: Sequence[str] = ()) -> None:
    """Take the times of the products on some CPUs, or any, and give them as a JSON list on stdout."""
    if cpus:
        os.sched_setaffinity(0, map(int, cpus))  # before BLAS counts them
    import numpy as np

    one, other = np.random.default_rng(0).random((2, SIZE, SIZE), dtype=np.float32)
    times = []
    for _ in range(PRODUCTS):
        begin = time.perf_counter()
        one @ other
        times.append(time.perf_counter() - begin)
    sys.stdout.write(json.dumps(times))


if __name__ == "__main__":
    main(sys.argv[1:])
