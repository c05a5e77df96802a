"""Builds whose GPU code the driver compiles: their first context takes minutes, and is made before anything is timed.

The driver keeps what it compiles in ``CUDA_CACHE_PATH``, in the environment's cache for the device. The first child of
an environment reads the facts of the device and fills most of that cache. A second one runs a cell to its end, since
newer CUDA releases load a kernel's code when it is first launched.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from runner.core.errors import RunnerError
from runner.core.model import Cell, PlannedCell
from runner.core.model.cells import without_control
from runner.measure.precompile import CompileJob, retire_if_lost
from runner.measure.server_pool import ServerPool
from runner.measure.server_start import JIT_SECONDS


def prime(servers: ServerPool, jobs: Iterable[CompileJob]) -> None:
    """Have each environment that runs by JIT compile one cell, unless it has done so in this run.

    Twins share the cache of their environment. A cell that fails here fails again when it is measured.

    Args:
        servers: the servers of the environments.
        jobs: the cells that are measured next.

    Raises:
        EngineError: the engine is gone.
    """
    cost = _costs(servers.plan.cells)
    jobs_by_environment: dict[str, list[CompileJob]] = {}
    for job in jobs:
        name = without_control(job.cell.environment)
        timed_as_it_is = not job.cell.phase.startswith("compile") and job.cell.protocol == "aligned"
        if name in servers.jit and name not in servers.primed and timed_as_it_is:
            jobs_by_environment.setdefault(name, []).append(job)
    for name, candidates in jobs_by_environment.items():
        servers.primed.add(name)
        _compile(servers, name, min(candidates, key=lambda job: cost[job.cell]))


def _compile(servers: ServerPool, name: str, job: CompileJob) -> None:
    session = servers.session(name)
    if session is None:
        return
    servers.say(f"{name}: the driver compiles its GPU code, which may take {JIT_SECONDS / 60:.0f} minutes")
    try:
        truth = job.truth()
    except RunnerError:  # reported when the case is measured
        return
    request = {**job.request, **servers.request_of(replace(job.cell, environment=name))}
    request |= {"precompile": True, "timeout": JIT_SECONDS}
    reply = session.measure(request, partial(dict, truth))
    servers.check(reply)
    session.settle()
    if reply["status"] != "ok":
        servers.note(f"{name}: compiling its GPU code failed: {reply.get('reason')}")
    retire_if_lost(servers, name, session)


def _costs(cells: Sequence[PlannedCell]) -> dict[Cell, tuple[bool, float]]:
    """Return cell -> what makes it a bad choice: it calls cuDNN, which may have no code for the GPU; then its cost."""
    return {planned.cell: (planned.kind == "vendor", planned.seconds) for planned in cells}
