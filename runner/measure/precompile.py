"""Let slow compilers work before a case is measured for the first time, several environments in parallel.

While a case is measured, its cells compile one after the other. Here nothing is measured: the results are the compiler
caches on disk, and a cell that fails here fails again when it is measured.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from runner.core.errors import RunnerError
from runner.core.model import Cell
from runner.core.model.cells import is_control
from runner.core.threads import run_concurrently
from runner.measure.server_pool import ServerPool
from runner.measure.session import Session

MAX_SECONDS = 600.0  # of compiling, one cell after the other, for which measuring waits
PARALLEL = 4  # environments; more than there are cores do no harm, as nothing is timed
MIN_CORES = 2  # with fewer, nothing is gained


class CompileJob(NamedTuple):
    """What it takes to compile a cell.

    Attributes:
        cell: the cell.
        memory_bytes: the memory that it needs.
        request: the request to measure it.
        truth: returns the packed reference of its case.
    """

    cell: Cell
    memory_bytes: int
    request: Mapping[str, Any]
    truth: Callable[[], dict[str, Any]]


def compile_ahead(servers: ServerPool, jobs: Sequence[CompileJob], now: Collection[Cell]) -> Collection[Cell]:
    """Have each environment compile what its cache does not have; return the cells that were tried.

    Nothing is compiled if servers start one after the other, as on a GPU, or have one core.

    Args:
        servers: the servers of the environments.
        jobs: the cells that are measured from now on, in this order.
        now: the cells that are measured next. If one of them is not compiled, cells of later cases are compiled with
            it, up to ``MAX_SECONDS``.

    Raises:
        EngineError: the engine is gone.
    """
    if not possible(servers):
        return ()
    jobs = [job for job in jobs if not is_control(job.cell.environment)]  # a twin shares its environment's cache
    names = dict.fromkeys(job.cell.environment for job in jobs)
    by_environment = {name: [job for job in jobs if job.cell.environment == name] for name in names}
    cold: dict[Cell, float] = {}
    for _, seconds_by_cell in run_concurrently(
        lambda name: _cold_cells(servers, by_environment[name]), list(names), PARALLEL
    ):
        cold.update(seconds_by_cell)
    if not cold.keys() & set(now):
        return ()
    waiting = [job for job in jobs if job.cell in cold]
    total_seconds = accumulate(cold[job.cell] for job in waiting)
    chosen = [
        job for job, seconds in zip(waiting, total_seconds, strict=True) if seconds <= MAX_SECONDS or job.cell in now
    ]
    work = {name: [job for job in chosen if job.cell.environment == name] for name in names}
    order = sorted(filter(work.get, names), key=lambda name: -sum(cold[job.cell] for job in work[name]))
    lock = threading.Lock()  # references are read one at a time
    fitting = servers.limits.memory // 2 // max(1, *(job.memory_bytes for job in chosen))
    for _ in run_concurrently(lambda name: _compile(servers, work[name], lock), order, max(1, min(PARALLEL, fitting))):
        pass
    return {job.cell for job in chosen}


def possible(servers: ServerPool) -> bool:
    """Return True if ``compile_ahead`` would compile anything."""
    limits = servers.limits
    return min(limits.side_by_side, len(limits.cpus) or limits.side_by_side) >= MIN_CORES


def _cold_cells(servers: ServerPool, jobs: Sequence[CompileJob]) -> dict[Cell, float]:
    """Return the cells of one environment that have to be compiled, with the estimated seconds."""
    session = servers.session(jobs[0].cell.environment)
    if session is None:
        return {}
    names = ("key", "implementation", "phase", "precision")
    cells = [{name: job.request[name] for name in names} for job in jobs]
    seconds_by_index = session.cold(jobs[0].request["cache"], cells)
    retire_if_lost(servers, jobs[0].cell.environment, session)
    return {jobs[int(index)].cell: float(seconds) for index, seconds in seconds_by_index.items()}


def _compile(servers: ServerPool, jobs: Sequence[CompileJob], lock: threading.Lock) -> None:
    """Compile the cells of one environment; if its server is lost, a new one is started when it is needed."""
    session = servers.session(jobs[0].cell.environment)
    for job in jobs:
        if session is None or not session.alive:
            break
        servers.say(f"compiling ahead: {job.cell.id}")
        try:
            with lock:
                truth = job.truth()
        except RunnerError:  # reported when the case is measured
            continue
        servers.check(session.measure({**job.request, "precompile": True}, partial(dict, truth)))
        session.settle()
    retire_if_lost(servers, jobs[0].cell.environment, session)


def retire_if_lost(servers: ServerPool, name: str, session: Session | None) -> None:
    """End a server that no longer answers: its child may still be running."""
    if session is not None and not session.alive:
        servers.retire(name)
