"""Runs whose jobs a real Slurm starts: on two stand-in GPUs, whose clocks come back, and whatever fails on the way."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.gpu.clocks import journal
from runner.gpu.clocks.journal import ClockEntry
from runner.hosts.executors import slurm
from runner.hosts.executors.executor import Completion
from runner.hosts.executors.slurm import SlurmExecutor
from runner.hosts.executors.slurm_leftovers import job_name
from runner.store.run import Run, runs
from tests.fakes.driver import TDP, UUID, StandIn
from tests.integration.conftest import ROOT, alive, children, wait_for
from tests.support.slurm import NODE, Cluster

SCRIPT = ROOT / "tests" / "integration" / "data" / "slurm_gpu.py"
MATRIX = """
version: 1
environments:
  np: {framework: numpy, release: "2.*", python: "3.11", requirements: [numpy]}
workloads:
  rnn-step: {cases: [lstm-b32-h128, rnn-b32-h128], phases: [forward, train]}
measure: {rounds: 2, max_rounds: 2, seconds: 0.02, threads: 1, controls: false}
"""
HELD = {"sm": (TDP, TDP), "memory": (2619, 2619)}
HELD_JOB = "of Slurm waits: JobHeldAdmin, which does not pass by itself"
ON_GPU, ON_CPU = (str(SCRIPT),), (str(SCRIPT.with_name("slurm_cpu.py")),)


class Driver:
    """`runner run --executor slurm://...` in a folder of its own."""

    def __init__(self, folder: Path, address: str, program: tuple[str, ...], *words: str) -> None:
        """Start it, with further options."""
        self.reports, self.log, matrix = folder / "reports", folder / "driver.log", folder / "matrix.yaml"
        matrix.write_text(MATRIX)
        self.command = [sys.executable, *program, "run", "--busy-ok", "--executor", address]
        self.start("--matrix", str(matrix), "--reports", str(self.reports), "--backend", "host", *words)

    def start(self, *words: str) -> None:
        """Start it with further options."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen([*self.command, *words], cwd="/", stdout=log, stderr=log)

    @property
    def text(self) -> str:
        """What it has printed."""
        return self.log.read_text()

    @property
    def run(self) -> Run:
        """Its run."""
        (run,) = runs(self.reports)
        return run

    def has_blocks(self) -> bool:
        """Return whether a block is complete."""
        return bool(runs(self.reports) and self.run.journal().blocks)

    def finish(self) -> Run:
        """Wait for its end, and return the run, of which nothing is missing or counted twice."""
        assert self.process.wait(240) == 0, self.text
        counts = Counter((entry.cell, entry.round) for entry in self.run.journal().counting())
        assert set(counts.values()) == {1}
        assert len(counts) == 2 * len(self.run.plan()["cells"])
        assert not list(self.run.path.rglob("*.tmp"))
        return self.run


@contextmanager
def _driver(folder: Path, address: str, program: tuple[str, ...] = ON_CPU, *words: str) -> Iterator[Driver]:
    driver = Driver(folder, address, program, *words)
    try:
        yield driver
    finally:
        driver.process.kill()
        driver.process.wait()
        sys.stdout.write(driver.text)  # which pytest shows where the test fails


@pytest.fixture
def gpus(standin: StandIn) -> StandIn:
    """The two GPUs of the node."""
    standin.make(1)
    standin.state.devices = 2
    for number in range(2):
        standin.state.device[number].busy = 1
    return standin


@pytest.mark.slow
def test_two_jobs_measure_at_the_same_time_each_on_its_gpu(
    gpus: StandIn, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    with _driver(tmp_path, "slurm://gpu?devices=2&gres=gpu:1", ON_GPU) as driver:
        wait_for(lambda: gpus.pinned(0) == gpus.pinned(1) == HELD)
        run = driver.finish()
    devices: dict[str, set[str]] = {}
    for record in run.records():
        assert (record.status, record.facts["pinned"]) == ("ok", "SM base, memory 2619 MHz")
        devices.setdefault(record.cell.case_id, set()).add(record.facts["device_uuid"])
    assert sorted(map(sorted, devices.values())) == [[UUID.format(0)], [UUID.format(1)]]
    assert {block.device for block in run.journal().blocks.values()} == {UUID.format(0), UUID.format(1)}
    assert (gpus.pinned(0), gpus.pinned(1), gpus.open_in()) == ({}, {}, [])
    assert "locks the clocks of Stand-in Hopper" in driver.text
    assert not list(driver.reports.glob("slurm-*"))  # the output of jobs


class Attempt:
    """A job that has locked the clocks of a GPU."""

    def __init__(self, gpus: StandIn, cluster: Cluster) -> None:
        """Wait for it."""
        self.gpus, self.cluster = gpus, cluster
        self.gpu = wait_for(lambda: [number for number in range(2) if gpus.pinned(number) == HELD])[0]
        (self.job,) = cluster.jobs("RUNNING")
        self.guardian = self.entry().guardian

    def entry(self) -> ClockEntry:
        """Return what the guardian has written down."""
        entry = journal.ledger(journal.folder(os.environ, os.geteuid()), UUID.format(self.gpu)).read()
        assert entry is not None
        return entry

    def restored(self) -> bool:
        """Return whether the clocks are as they were."""
        return not self.gpus.pinned(self.gpu)

    def kill(self) -> None:
        """Have Slurm kill the job, and its guardian with it before the guardian can restore anything."""
        guardian = [self.guardian, *children(self.guardian)]
        for pid in guardian:
            os.kill(pid, signal.SIGSTOP)
        self.cluster.run("scancel", "--signal=KILL", "--batch", self.job)
        if self.cluster.proctrack == "linuxproc":  # which loses processes whose parent has died
            wait_for(lambda: self.job not in self.cluster.jobs("RUNNING"))
            for pid in guardian:
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(map(alive, guardian)))


@pytest.mark.slow
def test_the_clocks_come_back_however_a_job_ends(gpus: StandIn, slurm_cluster: Cluster, tmp_path: Path) -> None:
    names = ("LD_LIBRARY_PATH", "NVML_STANDIN", "XDG_STATE_HOME", "PYTHONPATH")
    variables = [f"export {name}='{os.environ[name]}'" for name in names]
    with _driver(tmp_path, "slurm://gpu?devices=1&gres=gpu:1", ON_GPU) as driver:
        attempt = Attempt(gpus, slurm_cluster)
        with slurm_cluster.no_further_jobs():
            slurm_cluster.run("scancel", attempt.job)
            wait_for(attempt.restored)  # by the job

        attempt = Attempt(gpus, slurm_cluster)
        with slurm_cluster.no_further_jobs():
            attempt.kill()
            assert attempt.entry().held
            assert gpus.pinned(attempt.gpu) == HELD
        wait_for(attempt.restored)  # by a further job

        attempt = Attempt(gpus, slurm_cluster)
        slurm_cluster.run("scontrol", "update", f"nodename={NODE}", "state=down", "reason=test")
        wait_for(attempt.restored)  # by the job: the node takes no other
        slurm_cluster.resume()

        wait_for(driver.has_blocks)
        slurm_cluster.epilog(*variables, f"exec {sys.executable} -P -m runner clocks reset")
        attempt = Attempt(gpus, slurm_cluster)
        with slurm_cluster.no_further_jobs():
            attempt.kill()
            wait_for(attempt.restored)  # by the epilog
        slurm_cluster.epilog()
        run = driver.finish()
    assert sum(lease.number for lease in run.journal().leases.values()) == len(run.journal().blocks) + 4
    assert (gpus.pinned(0), gpus.pinned(1)) == ({}, {})
    assert driver.text.count(f"of Slurm restores the clocks on {NODE}") == 4
    for state in ("CANCELLED", "FAILED", "NODE_FAIL"):
        assert f"of Slurm on {NODE} ended: {state}; its output is in {driver.reports}/slurm-" in driver.text
    assert len(list(driver.reports.glob("slurm-*/*.log"))) == len(list(driver.reports.glob("slurm-*/*"))) == 4


def _hold(cluster: Cluster, driver: Driver) -> None:
    """Stop the processes of the job that measures a block, so that it cannot end before its node is given up."""
    wait_for(lambda: runs(driver.reports) and driver.run.journal().leases)
    (task,) = wait_for(lambda: _unanswered(driver))
    (job,) = wait_for(lambda: cluster.jobs("RUNNING", job_name(task)))
    wait_for(lambda: any(b"worker" in _arguments(pid) for pid in cluster.processes(job)))  # no others start before it
    for pid in cluster.processes(job):
        os.kill(pid, signal.SIGSTOP)


def _unanswered(driver: Driver) -> list[Path]:
    return [path for path in driver.reports.glob("slurm-*/*.task") if not path.with_suffix(".reply").exists()]


def _arguments(pid: int) -> list[bytes]:
    with suppress(OSError):  # the process has just ended
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return []


@pytest.mark.slow
def test_daemons_that_die_cost_at_most_a_block(slurm_cluster: Cluster, tmp_path: Path) -> None:
    with _driver(tmp_path, "slurm://gpu?devices=1") as driver:
        wait_for(lambda: slurm_cluster.jobs("RUNNING"))
        slurm_cluster.stop("slurmctld")
        wait_for(lambda: "Slurm does not answer (" in driver.text)
        slurm_cluster.start("slurmctld")
        wait_for(lambda: "Slurm answers again" in driver.text)
        _hold(slurm_cluster, driver)
        slurm_cluster.stop("slurmd", signal.SIGKILL)
        wait_for(lambda: f"of Slurm on {NODE} ended: NODE_FAIL" in driver.text, 240)  # slurmctld is in no hurry
        slurm_cluster.start("slurmd")
        run = driver.finish()
    assert sum(lease.number for lease in run.journal().leases.values()) == len(run.journal().blocks) + 1


def test_the_jobs_of_a_driver_that_is_interrupted_end_and_release_the_clocks(
    gpus: StandIn, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    with _driver(tmp_path, "slurm://gpu?devices=2&gres=gpu:1", ON_GPU) as driver:
        wait_for(lambda: gpus.pinned(0) == gpus.pinned(1) == HELD)
        driver.process.send_signal(signal.SIGTERM)
        wait_for(lambda: not gpus.pinned(0) and not gpus.pinned(1))
        assert driver.process.wait(120) == 130
    wait_for(lambda: not slurm_cluster.jobs("RUNNING,COMPLETING"))
    assert "continues it" in driver.text


@pytest.mark.slow
def test_what_jobs_of_a_killed_driver_have_measured_counts_and_their_others_end(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    with _driver(tmp_path, "slurm://gpu?devices=2", ON_CPU, "*/forward/*", "--seed", "7") as driver:
        wait_for(lambda: runs(driver.reports) and len(driver.run.journal().leases) == 2)
        task, other_task = wait_for(lambda: len(tasks := [*driver.reports.glob("slurm-*/*.task")]) == 2 and tasks)
        wait_for(lambda: all(slurm_cluster.jobs("all", job_name(each)) for each in (task, other_task)))
        driver.process.kill()
        driver.process.wait()
        (stopped,) = wait_for(lambda: slurm_cluster.jobs("RUNNING", job_name(task)))
        for pid in wait_for(lambda: slurm_cluster.processes(stopped)):
            os.kill(pid, signal.SIGSTOP)
        wait_for(other_task.with_suffix(".reply").exists)
        driver.start("--resume", str(driver.run.path))
        wait_for(lambda: not slurm_cluster.jobs("RUNNING", job_name(task)))
        run = driver.finish()
    assert sorted(lease.number for lease in run.journal().leases.values()) == [1, 2]
    assert driver.text.count("measured before, and added to the run now") == 1
    assert {record.cell.phase for record in run.records()} == {"forward"}
    assert not list(driver.reports.glob("slurm-*"))


@pytest.fixture
def messages() -> list[str]:
    """What the executor said."""
    return []


@pytest.fixture
def executor(
    slurm_cluster: Cluster, tmp_path: Path, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[SlurmExecutor]:
    """An executor whose jobs cannot start their program."""
    monkeypatch.setattr(slurm, "PROGRAM", ("/nowhere/python",))
    monkeypatch.setattr(slurm, "SETTLE_SECONDS", 0.5)
    monkeypatch.setattr(slurm, "WAIT_SECONDS", 1.0)
    made = SlurmExecutor("gpu?gres=gpu:1&device=cpu", tmp_path, messages.append)
    yield made
    made.close()


def _completion(executor: SlurmExecutor) -> Completion:
    completions: list[Completion] = wait_for(lambda: [*executor.completed(1.0)])
    return completions[0]


def test_a_job_that_fails_names_its_output(executor: SlurmExecutor, tmp_path: Path) -> None:
    executor.submit("slurm-1", b"a task")
    completion = _completion(executor)
    assert (completion.key, completion.result, completion.lost) == ("slurm-1", None, False)
    executor.close()
    (log,) = tmp_path.glob("slurm-*/*")
    assert completion.reason.endswith(f"of Slurm on {NODE} ended: FAILED; its output is in {log}")
    assert "/nowhere/python" in log.read_text()


def test_a_job_that_cannot_start_says_why(executor: SlurmExecutor, slurm_cluster: Cluster, messages: list[str]) -> None:
    slurm_cluster.run("scontrol", "update", f"nodename={NODE}", "state=drain", "reason=test")
    try:
        executor.submit("slurm-1", b"a task")
        wait_for(lambda: [*executor.completed(1.0), *messages])
        slurm_cluster.run("scontrol", "hold", executor.jobs["slurm-1"].number)
        wait_for(lambda: [*executor.completed(1.0)] or HELD_JOB in messages[-1])
        slurm_cluster.run("scancel", executor.jobs["slurm-1"].number)
        completion = _completion(executor)
    finally:
        slurm_cluster.resume()
    assert "of Slurm waits: " in messages[0]
    assert HELD_JOB in messages[-1]
    assert (completion.lost, completion.reason.endswith("ended: CANCELLED")) == (True, True)


@pytest.mark.parametrize(
    ("address", "message", "hint"),
    [
        ("nowhere", "Slurm refuses the job: Invalid partition name specified", "`sinfo --summarize`"),
        ("gpu?gres=fpga:1", "Slurm refuses the job: Invalid generic resource (gres) specification", "%G"),
        (
            "gpu?gres=gpu:3",
            "Slurm refuses the job: Requested node configuration is not available",
            "no node has as much",
        ),
        ("gpu?constraint=a100", "Slurm refuses the job: Invalid feature specification", "constraint="),
    ],
)
def test_what_slurm_refuses_has_a_hint(
    address: str, message: str, hint: str, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    executor = SlurmExecutor(address, tmp_path)
    with pytest.raises(UsageError) as caught:
        executor.submit("slurm-1", b"a task")
    assert caught.value.problems[0].message == message
    assert hint in str(caught.value)
    executor.close()
    assert not list(tmp_path.iterdir())
