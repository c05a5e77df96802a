"""Signals at every stage of a run."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from subprocess import Popen

import pytest

from runner.core.locks import try_exclusive
from tests.faults.bench import HOST, SMALL, Bench
from tests.faults.fault import Fault, Kept
from tests.faults.images import image_build, sleeping
from tests.faults.index import index
from tests.faults.signals import INTERRUPTED, OTHER_STAGES, STAGES, signals
from tests.integration.conftest import wait_for

PAUSES = {
    "plan": "runner.session.context:prepare",
    "build": "runner.session.execution:build",
    "folder": "runner.store.run:write_whole",
    "reference": "runner.measure.references:write_whole",
    "server": "runner.measure.session:Session.hello",
    "record": "runner.store.run:append@measured",
    "report": "runner.session.results:report",
}
OPTIONS = (*SMALL, *HOST)


@contextmanager
def stopped_at(stage: str, bench: Bench) -> Iterator["Popen[str]"]:
    """A run that has reached a stage, for the length of the block."""
    with ExitStack() as stack:
        if stage == "lock":
            assert stack.enter_context(try_exclusive(bench.cache / "measuring-cpu.lock"))
        options = (*OPTIONS, "--seconds", "0.3") if stage == "measure" else OPTIONS
        process = bench.start("run", *options, pause=PAUSES.get(stage, ""))
        if stage == "lock":
            bench.printed(process, "another runner measures on this machine: waiting for it")
        elif stage == "measure":
            bench.measured(process)
        else:
            bench.paused(process)
        yield process


@pytest.mark.parametrize("fault", signals(STAGES), ids=lambda fault: fault.id)
def test_a_signal(fault: Fault, bench: Bench) -> None:
    stage = fault.id.rpartition("-")[2]
    with stopped_at(stage, bench) as process:
        send(process, fault, bench)
        done = bench.end(process)
        bench.check_seen(done)
    bench.check_cleaned()
    bench.check_kept(*(OPTIONS if fault.kept is Kept.NOTHING and done.returncode < 0 else ()))


@contextmanager
def stopped_in(stage: str, bench: Bench) -> Iterator["Popen[str]"]:
    """Another command that has reached a stage, for the length of the block."""
    with ExitStack() as stack:
        if stage == "venv-build":
            server = stack.enter_context(index(bench, "stalls"))
            process = bench.start("build", "np-old", "--backend", "venv")
            bench.reached(process, server.requested.is_set)
        elif stage == "docker-build":
            process = image_build(bench)
        elif stage == "docker-measure":
            process = bench.start("run", *SMALL, "np-old", "--backend", "docker", "--seconds", "0.3")
            bench.measured(process)
        else:
            options = (*OPTIONS, "--seconds", "0.2", "--max-rounds", "4")
            process = bench.start("run", *options, program=("tests.faults.open_verdicts",))
            bench.reached(process, lambda: bench.events("further"))
        yield process


@pytest.mark.parametrize("fault", signals(OTHER_STAGES), ids=lambda fault: fault.id)
def test_a_signal_at_another_stage(fault: Fault, bench: Bench, request: pytest.FixtureRequest) -> None:
    if "docker" in fault.id:
        bench.environment["FAULTS_ENGINE"] = request.getfixturevalue("docker_engine")
    stage = next(stage for stage in OTHER_STAGES if fault.id.endswith(stage))
    with stopped_in(stage, bench) as process:
        send(process, fault, bench)
        done = bench.end(process)
        bench.check_seen(done)
    bench.check_cleaned()
    bench.check_kept()
    if stage == "venv-build" and fault.exits[0] > 0:
        assert not [path for path in (bench.cache / "venvs").iterdir() if path.is_dir()]
    if stage == "docker-build":
        wait_for(lambda: not sleeping(str(bench.folder)))


def send(process: "Popen[str]", fault: Fault, bench: Bench) -> None:
    """Send the signal of a fault; a second one as soon as the first is taken. A thread that is stopped goes on then."""
    number = signal.Signals[fault.what.partition(",")[0]]
    process.send_signal(number)
    if number == signal.SIGKILL:
        return
    wait_for(lambda: INTERRUPTED in bench.stderr() or process.poll() is not None)
    if "twice" in fault.id:
        process.send_signal(number)
    bench.go_on()
