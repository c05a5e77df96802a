"""What a further round in a live environment costs beyond its work, beside the least anybody pays for a process."""

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any

import docker

from benchmarks.environments import Ready, nothing, ready
from benchmarks.table import Row, UnmeasurableError
from benchmarks.turns import seconds
from runner.backends.docker.cleanup import owner
from runner.backends.docker.options import OWNER
from runner.catalog.cases import CASES
from runner.core.locks import exclusive
from runner.core.model import Limits, Provisioned
from runner.measure.references import References
from runner.measure.session import Session
from runner.session.options import Options

CELL = "torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/train/fp32"
CASE = "rnn-step/lstm-b32-h128"
TURNS = 3
COUNT = 10  # rounds in a turn; two more before them are not counted
TARGET = 0.02

Peer = tuple[str, Callable[[], object]]


def rows() -> Iterator[Row]:
    """Give the overhead of a round for each backend; the peers are the SDK's exec and run, and a bare interpreter."""
    for name in ("docker", "venv"):
        figure = f"a round beyond its work, {name}"
        try:
            yield from _rows(figure, ready([CELL], Options(backend=name, threads="2")))
        except UnmeasurableError as error:
            yield Row(figure, target="20 ms", reason=str(error))


def _rows(figure: str, bench: Ready) -> Iterator[Row]:
    made = bench.backend.provision(bench.prepared.specs[0], nothing)
    with (
        exclusive(bench.setup.settings.cache / "measuring-cpu.lock", nothing),
        _peers(made, bench.backend.name) as peers,
    ):
        ours, theirs = _in_turns(bench, made, [call for _, call in peers])
    fastest_peer = min(theirs)
    peer_times = ", ".join(f"{name} {_ms(time_of_peer)}" for (name, _), time_of_peer in zip(peers, theirs, strict=True))
    middle = statistics.median(ours)
    yield Row(figure, _ms(middle), peer_times, middle / fastest_peer, "20 ms", middle < TARGET)
    yield Row("the slowest of them", _ms(max(ours)))


@contextmanager
def _peers(made: Provisioned, backend: str) -> Iterator[list[Peer]]:
    """Lend calls that do nothing in the same image, or with the same interpreter."""
    if backend != "docker":
        yield [("its bare interpreter", partial(subprocess.run, [made.handle, "-I", "-c", "pass"], check=True))]
        return
    plain: dict[str, Any] = {"network_mode": "none", "labels": {OWNER: owner()}}
    with closing(docker.from_env()) as client:
        container = client.containers.run(made.handle, ["600"], entrypoint="sleep", detach=True, **plain)
        try:
            run = partial(client.containers.run, made.handle, [], entrypoint="true", remove=True, **plain)
            yield [("SDK exec", partial(container.exec_run, ["true"])), ("SDK run", run)]
        finally:
            container.remove(force=True)


def _in_turns(bench: Ready, made: Provisioned, peers: list[Callable[[], object]]) -> tuple[list[float], list[float]]:
    """Return the seconds of our rounds, and the median of each peer's calls; turns of ten."""
    ours: list[float] = []
    theirs: list[list[float]] = [[] for _ in peers]
    with ExitStack() as stack:
        sessions = [stack.enter_context(_session(bench, made, number)) for number in (1, 2)]
        ask = _asker(bench, made)
        for _ in range(TURNS):
            ours += [_beyond(sessions[k % 2], sessions[1 - k % 2], ask) for k in range(COUNT + 2)][2:]
            for call, times in zip(peers, theirs, strict=True):
                times += [seconds(call) for _ in range(COUNT)]
    return ours, [statistics.median(times) for times in theirs]


@contextmanager
def _session(bench: Ready, made: Provisioned, number: int) -> Iterator[Session]:
    """Lend a live server; two of them take turns, as the sides of a comparison do."""
    session = Session(bench.backend.open(made, Limits(memory=4 << 30, run="bench")), f"bench#{number}")
    try:
        assert session.hello(made.framework, bench.setup.request.threads, "cpu", 300.0)["status"] == "ok"
        yield session
    finally:
        session.close()


def _asker(bench: Ready, made: Provisioned) -> Callable[[Session], Mapping[str, Any]]:
    """Return a function that has a server measure the cell once, in a round that is not its first."""
    case = dict(CASES[CASE])
    references = References(bench.setup.settings.cache / "references", bench.setup.request.threads)
    _, slug, _, _, phase, precision = CELL.split("/")
    request = {
        "case": case,
        "key": references.key(case),
        "framework": made.framework,
        "implementation": slug,
        "phase": phase,
        "device": "cpu",
        "precision": precision,
        "seconds": 0.05,
        "cache": bench.backend.cache(made),
        "timeout": 60.0,
        "memory": None,
        "already_verified": True,
    }
    return lambda session: session.measure(request, lambda: references.get(case))


def _beyond(session: Session, last: Session, ask: Callable[[Session], Mapping[str, Any]]) -> float:
    """Return what a round takes beyond what its child spends on its work."""
    begin = time.perf_counter()
    last.settle()  # the child before this one is to be gone, memory and all
    reply = ask(session)
    took = time.perf_counter() - begin
    assert reply["status"] == "ok", reply
    return took - float(reply["child_seconds"])


def _ms(value: float) -> str:
    return f"{value * 1e3:.1f} ms"
