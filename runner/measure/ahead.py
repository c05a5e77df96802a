"""Compilers that take minutes do so before the first round, those of several environments side by side.

In a round, one cell is built after the other. What is measured here is thrown away, and what fails here will fail in
its round; all that stays is what compilers keep on disk.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from runner.errors import RunnerError
from runner.measure.aside import side_by_side
from runner.measure.servers import Servers
from runner.model import Cell

SECONDS = 0.01  # of measuring


class Job(NamedTuple):
    """A cell, the request to measure it, and what gives the packed reference of its case."""

    cell: Cell
    request: Mapping[str, Any]
    truth: Callable[[], dict[str, Any]]


def compile_ahead(servers: Servers, jobs: Sequence[Job]) -> None:
    """Have each environment compile what it will need and has not yet, the longest first.

    Nothing happens where servers do not start side by side, as on a GPU.

    Raises:
        EngineError: the engine is gone.
    """
    most = servers.limits.side_by_side
    if most < 2:
        return
    names = dict.fromkeys(job.cell.environment for job in jobs)
    mine = {name: [job for job in jobs if job.cell.environment == name] for name in names}
    waiting = dict(side_by_side(lambda name: _cold(servers, mine[name]), list(names), most))
    order = sorted((name for name in names if waiting[name]), key=lambda name: -sum(waiting[name].values()))
    lock = threading.Lock()  # references are read one at a time
    for _ in side_by_side(lambda name: _compile(servers, mine[name], waiting[name], lock), order, most):
        pass


def _cold(servers: Servers, jobs: Sequence[Job]) -> dict[int, float]:
    """Return the places of the jobs that have to be compiled, with a guess at the seconds."""
    session = servers.session(jobs[0].cell.environment)
    if session is None:
        return {}
    names = ("key", "implementation", "phase", "precision")
    cells = [{name: job.request[name] for name in names} for job in jobs]
    found = session.cold(jobs[0].request["cache"], cells)
    return {int(place): float(seconds) for place, seconds in found.items()}


def _compile(servers: Servers, jobs: Sequence[Job], places: Mapping[int, float], lock: threading.Lock) -> None:
    """Build the cells of one environment; its server may be lost over it, and is started anew when it is needed."""
    session = servers.session(jobs[0].cell.environment)
    for place in places:
        if session is None or not session.alive:
            return
        servers.say(f"compiling before the first round: {jobs[place].cell.id}")
        try:
            with lock:
                truth = jobs[place].truth()
        except RunnerError:  # the round tells of it
            continue
        servers.check(session.measure({**jobs[place].request, "seconds": SECONDS}, partial(dict, truth)))
        session.settle()
