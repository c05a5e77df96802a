"""Compilers that take minutes do so before a case is measured for the first time, several environments side by side.

While a case is measured, one cell is built after the other. Here nothing is measured, and what fails here will fail
there; all that stays is what compilers keep on disk.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from runner.core.errors import RunnerError
from runner.core.model import Cell
from runner.core.model.cells import is_twin
from runner.core.threads import run_concurrently
from runner.measure.server_pool import ServerPool
from runner.measure.session import Session

AT_ONCE = 600.0  # seconds of compiling, one after the other, for which measuring waits
SIDE_BY_SIDE = 4  # more than cores are no loss where nothing is timed
PARALLEL = 2  # cores without which there is nothing to win


class Job(NamedTuple):
    """A cell, the bytes it holds, the request to measure it, and what gives the packed reference of its case."""

    cell: Cell
    memory_bytes: int
    request: Mapping[str, Any]
    truth: Callable[[], dict[str, Any]]


def compile_ahead(servers: ServerPool, jobs: Sequence[Job], now: Collection[Cell]) -> Collection[Cell]:
    """Have each environment compile what it will need and has not yet; return the cells that were tried.

    Nothing happens where servers do not start side by side, as on a GPU, or have one core.

    Args:
        servers: of the environments.
        jobs: what is measured from now on, in this order.
        now: the cells that are measured next. Where one of them is cold, those of later cases are built with it, as
            far as that is no long wait.

    Raises:
        EngineError: the engine is gone.
    """
    if not possible(servers):
        return ()
    jobs = [job for job in jobs if not is_twin(job.cell.environment)]  # it has the cache of its other half
    names = dict.fromkeys(job.cell.environment for job in jobs)
    mine = {name: [job for job in jobs if job.cell.environment == name] for name in names}
    cold: dict[Cell, float] = {}
    for _, found in run_concurrently(lambda name: _cold(servers, mine[name]), list(names), SIDE_BY_SIDE):
        cold.update(found)
    if not cold.keys() & set(now):
        return ()
    waiting = [job for job in jobs if job.cell in cold]
    spent = accumulate(cold[job.cell] for job in waiting)
    chosen = [job for job, seconds in zip(waiting, spent, strict=True) if seconds <= AT_ONCE or job.cell in now]
    work = {name: [job for job in chosen if job.cell.environment == name] for name in names}
    order = sorted(filter(work.get, names), key=lambda name: -sum(cold[job.cell] for job in work[name]))
    lock = threading.Lock()  # references are read one at a time
    room = servers.limits.memory // 2 // max(1, *(job.memory_bytes for job in chosen))
    for _ in run_concurrently(lambda name: _compile(servers, work[name], lock), order, max(1, min(SIDE_BY_SIDE, room))):
        pass
    return {job.cell for job in chosen}


def possible(servers: ServerPool) -> bool:
    """Say whether anything is compiled ahead."""
    limits = servers.limits
    return min(limits.side_by_side, len(limits.cpus) or limits.side_by_side) >= PARALLEL


def _cold(servers: ServerPool, jobs: Sequence[Job]) -> dict[Cell, float]:
    """Return the cells that have to be compiled, with a guess at the seconds."""
    session = servers.session(jobs[0].cell.environment)
    if session is None:
        return {}
    names = ("key", "implementation", "phase", "precision")
    cells = [{name: job.request[name] for name in names} for job in jobs]
    found = session.cold(jobs[0].request["cache"], cells)
    _lost(servers, jobs[0].cell.environment, session)
    return {jobs[int(place)].cell: float(seconds) for place, seconds in found.items()}


def _compile(servers: ServerPool, jobs: Sequence[Job], lock: threading.Lock) -> None:
    """Build the cells of one environment; its server may be lost over it, and is started anew when it is needed."""
    session = servers.session(jobs[0].cell.environment)
    for job in jobs:
        if session is None or not session.alive:
            break
        servers.say(f"compiling ahead: {job.cell.id}")
        try:
            with lock:
                truth = job.truth()
        except RunnerError:  # it is told of when the case is measured
            continue
        servers.check(session.measure({**job.request, "ahead": True}, partial(dict, truth)))
        session.settle()
    _lost(servers, jobs[0].cell.environment, session)


def _lost(servers: ServerPool, name: str, session: Session | None) -> None:
    """End a server that was given up: its child may still be at work."""
    if session is not None and not session.alive:
        servers.retire(name)
