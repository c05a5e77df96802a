"""An engine that is gone, restarts, stalls, is slow, or answers with errors."""

import time
from collections.abc import Callable, Mapping

import pytest

from tests.faults.bench import SMALL, Bench
from tests.faults.declared.engine import ENGINE_FAULTS
from tests.faults.fault import Fault
from tests.faults.images import image_build
from tests.integration.conftest import containers
from tests.support.engine_socket import EngineSocket

pytestmark = pytest.mark.docker

DOCKER = (*SMALL, "np-old", "--backend", "docker")
LONG = (*DOCKER, "--seconds", "1.5")  # a measurement is under way whenever the one before is recorded


def refuses(bench: Bench, engine: EngineSocket) -> None:
    engine.cut()
    bench.check(bench("run", *DOCKER))


def absent_auto(bench: Bench, engine: EngineSocket) -> None:
    engine.cut()
    bench.check(bench("run", *SMALL, "np-old"))


def dies_measure(bench: Bench, engine: EngineSocket) -> None:
    process = bench.start("run", *LONG)
    bench.measured(process)
    engine.cut()
    back(bench, engine, process)


def dies_server(bench: Bench, engine: EngineSocket) -> None:
    process = bench.start("run", *DOCKER, pause="runner.measure.session:Session.hello")
    bench.paused(process)
    engine.cut()
    bench.go_on()
    back(bench, engine, process)


def dies_build(bench: Bench, engine: EngineSocket) -> None:
    process = image_build(bench)
    engine.cut()
    back(bench, engine, process)


def restarts_measure(bench: Bench, engine: EngineSocket) -> None:
    process = bench.start("run", *LONG)
    bench.measured(process)
    time.sleep(0.5)  # the next measurement is under way
    engine.drop()
    bench.check(bench.end(process))


def stalls_measure(bench: Bench, engine: EngineSocket) -> None:
    process = bench.start("run", *LONG)
    bench.measured(process)
    engine.flowing.clear()
    time.sleep(5)
    engine.flowing.set()
    bench.check(bench.end(process))


def slow(bench: Bench, engine: EngineSocket) -> None:
    engine.delay = 0.05
    bench.check(bench("run", *DOCKER))


def error_start(bench: Bench, engine: EngineSocket) -> None:
    engine.failing = b"HTTP/1.1"
    bench.check(bench("run", *DOCKER))


def error_create(bench: Bench, engine: EngineSocket) -> None:
    engine.failing = b"/containers/create"
    bench.check(bench("run", *DOCKER))


def container_killed(bench: Bench, engine: EngineSocket) -> None:
    import docker

    process = bench.start("run", *LONG)
    bench.measured(process)
    (name,) = containers(*[path.name for path in bench.reports.glob("runs/[!.]*")])
    client = docker.from_env()
    client.api.kill(name)
    client.close()
    bench.check(bench.end(process))


def back(bench: Bench, engine: EngineSocket, process: "object") -> None:
    """Check how a command ends, start the engine again, and check what is kept."""
    done = bench.end(process)  # type: ignore[arg-type]
    bench.check_seen(done)
    engine.listen()
    bench.check_cleaned()
    bench.check_kept()


ACTIONS: Mapping[str, Callable[[Bench, EngineSocket], None]] = {
    "engine-refuses": refuses,
    "engine-absent-auto": absent_auto,
    "engine-dies-measure": dies_measure,
    "engine-dies-server": dies_server,
    "engine-dies-build": dies_build,
    "engine-restarts-measure": restarts_measure,
    "engine-stalls-measure": stalls_measure,
    "engine-slow": slow,
    "engine-error-start": error_start,
    "engine-error-create": error_create,
    "engine-container-killed": container_killed,
}


@pytest.mark.parametrize("fault", ENGINE_FAULTS, ids=lambda fault: fault.id)
def test_an_engine(fault: Fault, bench: Bench, engine: EngineSocket) -> None:
    ACTIONS[fault.id](bench, engine)
