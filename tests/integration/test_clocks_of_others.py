"""A GPU that others use, or have locked, keeps its clocks unless `--pin` says otherwise; on the stand-in."""

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.model.devices import ClockPolicy
from runner.gpu.clocks.lease import ClockLease
from runner.gpu.clocks.preconditions import HINT, LOCKED, Observed, observe_gpu
from tests.fakes import driver
from tests.fakes.driver import NOBODY, TDP, StandIn
from tests.integration.conftest import Runner
from tests.integration.test_clocks import HOLD, books, measured

HELD = {"sm": (TDP, TDP), "memory": (2619, 2619)}
COMM = Path("/proc/self/comm").read_text().strip()


@contextmanager
def leased(clocks: ClockPolicy) -> Iterator[tuple[ClockLease, list[str]]]:
    """Take a lease of the first GPU; return it with what it says."""
    messages: list[str] = []
    lease = ClockLease(replace(HOLD, clocks=clocks), messages.append, 40.0)
    try:
        lease.acquire()
        yield lease, messages
    finally:
        lease.release()


@contextmanager
def later(change: "threading.Timer") -> Iterator[None]:
    """Change the GPU while the block runs."""
    change.start()
    try:
        yield
    finally:
        change.join()


def test_nothing_is_locked_where_another_process_computes(standin: StandIn) -> None:
    standin.gpu.processes[0], standin.gpu.processes[1] = os.getpid(), NOBODY
    with leased(ClockPolicy()) as (lease, messages):
        assert lease.pin.how == "left"
        (sentence,) = messages
        assert sentence.startswith(f"the GPU's clocks are not held: processes {os.getpid()} ({COMM} of ")
        assert sentence.endswith(f" and {NOBODY} compute on it; {HINT}")
    assert (standin.sets(), standin.pinned(), books()) == ([], {}, [])


def test_with_force_it_is_locked(standin: StandIn) -> None:
    standin.gpu.processes[0] = os.getpid()
    with leased(ClockPolicy(force=True)) as (lease, _):
        assert lease.pin.how == "locked"
        assert standin.pinned() == HELD
    assert standin.pinned() == {}


def test_a_process_that_has_just_ended_is_waited_for(standin: StandIn) -> None:
    standin.gpu.processes[0] = NOBODY

    def end() -> None:
        standin.gpu.processes[0] = 0

    with later(threading.Timer(1.5, end)), leased(ClockPolicy()) as (lease, _):
        assert lease.pin.how == "locked"


def test_a_lock_that_shows_as_a_reason_is_kept(standin: StandIn) -> None:
    standin.make(0, application=False)
    standin.gpu.locked_sm[0] = standin.gpu.locked_sm[1] = 1200
    standin.gpu.busy, standin.gpu.reasons = 1, 0x2
    with leased(ClockPolicy()) as (lease, messages):
        assert lease.pin.how == "left"
        why = f"a setting other than application clocks limits its clock to 1200 MHz: {LOCKED}"
        assert messages == [f"the GPU's clocks are not held: {why}; {HINT}"]
    assert (standin.sets(), standin.pinned()) == ([], {"sm": (1200, 1200)})


def observed(standin: StandIn, library: Path) -> Observed:
    """Return what the stand-in's GPU shows in this process."""
    with driver.in_this_process(library, standin):
        return observe_gpu(standin.uuid)


def test_application_clocks_explain_the_reason(standin: StandIn, driver_library: Path) -> None:
    standin.gpu.busy = 1  # limited by the default application clocks of 1500 MHz
    seen = observed(standin, driver_library)
    assert (seen.reasons, seen.sm, seen.objection) == (0x2, 1500, "")


def test_a_lock_shows_as_a_high_clock_of_an_idle_gpu(standin: StandIn, driver_library: Path) -> None:
    assert not observed(standin, driver_library).objection
    standin.gpu.locked_sm[0] = standin.gpu.locked_sm[1] = 1410
    assert observed(standin, driver_library).objection == f"it is idle at 1410 of 1980 MHz: {LOCKED}"
    standin.gpu.locked_sm[0] = 0  # only an upper limit: nothing shows it, and the run says so beforehand
    assert not observed(standin, driver_library).objection


def test_a_clock_that_falls_is_waited_for(standin: StandIn) -> None:
    standin.gpu.locked_sm[0] = standin.gpu.locked_sm[1] = 1410

    def fall() -> None:
        standin.gpu.locked_sm[0] = standin.gpu.locked_sm[1] = 0

    begin = time.monotonic()
    with later(threading.Timer(3.0, fall)), leased(ClockPolicy()) as (lease, _):
        assert lease.pin.how == "locked"
    assert 3.0 <= time.monotonic() - begin < 40.0


@pytest.mark.slow
def test_a_run_beside_others_measures_without_locked_clocks_and_says_why(standin: StandIn, runner: Runner) -> None:
    standin.gpu.busy, standin.gpu.processes[0] = 1, os.getpid()
    done = measured(runner)
    assert done.returncode == 0, done.stderr
    assert f"the clocks of Stand-in Hopper ({standin.uuid}) are not locked while process {os.getpid()}" in done.stderr
    assert f"({COMM} of " in done.stderr
    assert "will disturb what is measured" in done.stderr
    assert done.stderr.count(HINT) == 2  # before anything is built, and when the measuring starts
    assert standin.sets() == []
    assert {record["facts"]["clocks"] for record in runner.records()} == {"left"}


def test_a_run_says_what_it_changes_before_it_builds_anything(standin: StandIn, runner: Runner) -> None:
    standin.gpu.application[1] = 1200  # by somebody else
    done = measured(runner)
    assert done.returncode == 0, done.stderr
    announced = (
        f"locks the clocks of Stand-in Hopper ({standin.uuid}) at SM base, memory 2619 MHz until the run ends; "
        "`--no-pin` measures without. It does not touch the application clocks that somebody has set, SM 1200 MHz and "
        "memory 2619 MHz. If somebody else has locked the clocks, the end of the run removes that lock: no driver "
        "reports it"
    )
    built, held = re.search(r": (ready|built in)", done.stderr), done.stderr.index("clocks are held: ")
    assert built
    assert done.stderr.index(announced) < built.start() < held
    assert standin.pinned() == {"application": (2619, 1200)}


def test_plan_doctor_and_clocks_say_what_a_run_would_do(standin: StandIn, runner: Runner) -> None:
    locks = f"locks the clocks of Stand-in Hopper ({standin.uuid}) at SM base, memory 2619 MHz until the run ends"
    assert locks in runner("plan", "--device", "cuda").stderr
    assert f"        a run: {locks}" in runner("clocks").stdout
    assert clocks_findings(runner) == [("ok", locks)]
    standin.gpu.processes[0] = os.getpid()
    left = f"the clocks of Stand-in Hopper ({standin.uuid}) are not locked while process {os.getpid()} ({COMM} of "
    assert left in runner("plan", "--device", "cuda").stderr
    assert locks in runner("plan", "--device", "cuda", "--pin").stderr
    assert "clocks of" not in runner("plan", "--device", "cuda", "--no-pin").stderr
    (gpu,) = runner.json("clocks", "show", "--format", "json")["gpus"]
    assert gpu["processes"][0].startswith(f"{os.getpid()} ({COMM} of ")
    assert gpu["announcement"].startswith(left)
    ((state, text),) = clocks_findings(runner)
    assert (state, text.startswith(left)) == ("warning", True)
    assert standin.sets() == []


def clocks_findings(runner: Runner) -> list[tuple[str, str]]:
    """Return the state and the first clause of what the doctor says of clocks."""
    findings = json.loads(runner("doctor", "--format", "json").stdout)["findings"]
    return [(item["state"], item["found"].split(";")[0]) for item in findings if item["what"] == "gpu clocks"]


@pytest.mark.parametrize("command", ["plan", "doctor"])
def test_a_clock_that_there_is_not_is_named_beforehand(command: str, standin: StandIn, runner: Runner) -> None:
    assert standin.sets() == []
    matrix = runner.folder / "matrix.yaml"
    matrix.write_text(matrix.read_text() + "gpu: {clocks: 5000}\n")
    done = runner(command, "--device", "cuda")
    assert "Stand-in Hopper has no SM clock of 5000 MHz" in done.stdout + done.stderr
