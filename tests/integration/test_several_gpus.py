"""A run on two GPUs of the stand-in driver at once: cases dealt out, clocks held and given back on both."""

import os
import signal
import subprocess
import sys

import pytest

from tests.fakes.driver import LOST, TDP, UUID, StandIn
from tests.integration.conftest import ROOT, Runner, wait_for
from tests.integration.test_clocks import SCRIPT
from tests.support.options import with_last_values

HELD = {"sm": (TDP, TDP), "memory": (2619, 2619)}


@pytest.fixture
def two(standin: StandIn) -> StandIn:
    """A second GPU like the first."""
    standin.make(1)
    standin.state.devices = 2
    for number in range(2):
        standin.state.device[number].busy = 1
    return standin


def start_run(runner: Runner, *words: str, device: str = "cuda:all") -> "subprocess.Popen[str]":
    command = [sys.executable, str(SCRIPT), "--backend", "venv", "--threads", "1", "--device", device, "--busy-ok"]
    command += with_last_values(["--workload", "rnn-step", "--rounds", "2", "--seconds", "0.3", *words])
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=runner.folder, text=True, env=env, stdout=pipe, stderr=pipe)
    runner.started.append(process)
    return process


@pytest.mark.slow
def test_each_case_is_measured_on_one_gpu_and_both_are_held(two: StandIn, runner: Runner) -> None:
    process = start_run(runner)
    wait_for(lambda: two.pinned(0) == two.pinned(1) == HELD)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    on: dict[str, set[str]] = {}
    for record in runner.records():
        on.setdefault(record["cell"].split("/")[3], set()).add(record["facts"]["device_uuid"])
        assert record["facts"]["pinned"] == "SM base, memory 2619 MHz"
        assert record["status"] == "ok"
    assert sorted(map(sorted, on.values())) == [[UUID.format(0)], [UUID.format(1)]]
    assert (two.pinned(0), two.pinned(1), two.open_in()) == ({}, {}, [])
    assert runner("report").returncode == 0
    (page,) = runner.folder.glob("reports/runs/[!.]*/report.md")
    assert "2 x Stand-in Hopper" in page.read_text()


def test_a_runner_that_is_killed_leaves_both_as_they_were(two: StandIn, runner: Runner) -> None:
    process = start_run(runner, "--rounds", "50")
    wait_for(lambda: two.pinned(0) == two.pinned(1) == HELD)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: two.pinned(0) == two.pinned(1) == {})


@pytest.mark.slow
def test_one_gpu_that_is_lost_ends_the_run_and_the_other_is_given_back(two: StandIn, runner: Runner) -> None:
    process = start_run(runner, "--rounds", "50")
    wait_for(runner.records)
    two.rule(0, "nvmlDeviceGetClockInfo", LOST)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 5, stderr
    assert "the GPU is lost" in stderr
    assert "then `runner run --resume " in stderr
    two.no_rules()
    wait_for(lambda: two.pinned(0) == two.pinned(1) == {})
    assert {record["status"] for record in runner.records()} == {"ok"}


def test_gpus_that_differ_share_no_run(two: StandIn, runner: Runner) -> None:
    two.make(1, "Ampere")
    done = runner("plan", "--device", "cuda:0,1")
    assert done.returncode == 2
    assert "Stand-in Hopper and Stand-in Ampere cannot share a run: they are not of one kind" in done.stderr
