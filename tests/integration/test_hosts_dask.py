"""A run over several hosts with a real Dask: whoever is killed, stopped or cut off, each record counts once.

``RUNNER_KILLS=20 pytest tests/integration/test_hosts_dask.py -s -k killed`` kills at random twenty times.
"""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.hosts import task_process
from runner.hosts.certificates import make
from runner.store.run import runs
from tests.support import needs
from tests.support.dask_hosts import (
    CASES,
    IMPATIENT,
    Cluster,
    Network,
    check,
    cluster,
    listening,
    missing,
    no_folders_left,
    until,
)

KILLS = int(os.environ.get("RUNNER_KILLS", "0"))
SEED = 22
HOSTS = ("w1", "w2", "w3", "w4")
MORE_CASES = (*CASES, "gru-b128-h128", *(f"{network}-b32-h512" for network in ("lstm", "rnn", "gru")))


@pytest.fixture
def near(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler on loopback without workers."""
    with cluster(tmp_path) as made:
        yield made


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Cluster]:
    """As ``near``, with TLS."""
    make(tmp_path / "certificates")
    with cluster(tmp_path, certificates=tmp_path / "certificates") as made:
        yield made


@pytest.fixture
def far(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A Dask without processes, on hosts with a network between: ``head``, ``driver`` and HOSTS."""
    reason = missing()
    if reason:
        needs.missing(request.config, "networks", f"there are no network namespaces: {reason}")
    make(tmp_path / "certificates")
    network = Network(("head", "driver", *HOSTS))
    try:
        with cluster(tmp_path, certificates=tmp_path / "certificates", network=network, settings=IMPATIENT) as made:
            yield made
    finally:
        network.close()


def _report(counts: Counter[str]) -> None:
    print(", ".join(f"{number} {name}" for name, number in sorted(counts.items())))  # noqa: T201


class _Killed:
    """Runs whose processes are killed one after the other, and started again."""

    def __init__(self, dask: Cluster) -> None:
        """Start a scheduler, four workers and a driver."""
        self.dask, self.draw, self.counts = dask, random.Random(SEED), Counter[str]()
        self.scheduler = dask.scheduler()
        self.workers = dask.workers(*HOSTS)
        self.driver = self._new_driver()

    def _new_driver(self) -> "subprocess.Popen[bytes]":
        self.known, self.leases = len(runs(self.dask.folder / "reports")), 0
        return self.dask.driver()

    def _is_leasing(self) -> bool:
        """Return whether the run has handed out a block; of several kills, since the last one."""
        is_started = len(runs(self.dask.folder / "reports")) > self.known
        return is_started and len(self.dask.events("leased")) > self.leases

    def kill(self, victim: str) -> None:
        """Kill a process some time after the run has handed out a block."""
        if self.driver.poll() == 4:
            self._resume()
        until(lambda: self._is_leasing() or self.driver.poll() is not None, "a lease", seconds=120)
        time.sleep(self.draw.uniform(0.0, 1.5))
        if self.driver.poll() == 4:
            self.kill(victim)
            return
        if self.driver.poll() == 0:
            self._count()
            self.driver = self._new_driver()
            self.kill(victim)
            return
        self.leases = len(self.dask.events("leased")) if KILLS else 0
        self.counts[f"killed {victim}s"] += 1
        getattr(self, f"_kill_{victim}")()

    def _kill_worker(self) -> None:
        number = self.draw.randrange(len(self.workers))
        self.workers[number].kill()
        self.workers[number] = self.dask.worker(HOSTS[number])

    def _kill_driver(self) -> None:
        self.driver.kill()
        self.driver.wait()
        self._resume()

    def _kill_scheduler(self) -> None:
        self.scheduler.kill()
        if self.draw.random() < 0.5 or not KILLS:
            code = self.driver.wait(60)
            assert code in {0, 4}, self.dask.log(self.driver)
        self.scheduler = self.dask.scheduler()

    def _resume(self) -> None:
        self.driver = self.dask.driver("--resume")

    def finish(self) -> Counter[str]:
        """Let the last run end; return what happened in all of them."""
        for _ in range(5):
            if self.driver.wait(120) == 0:
                self._count()
                return self.counts
            assert self.driver.returncode == 4, self.dask.log(self.driver)
            self._resume()
        pytest.fail("the run does not end")

    def _count(self) -> None:
        self.counts += check(self.dask)


@pytest.mark.slow
def test_whoever_is_killed_each_record_counts_once(near: Cluster) -> None:
    state = _Killed(near)
    victims: tuple[str, ...] = ("worker", "worker", "driver", "scheduler")
    if KILLS:
        victims = tuple(state.draw.choices(("worker", "driver", "scheduler"), (2, 3, 1), k=KILLS))
    for victim in victims:
        state.kill(victim)
    _report(state.finish())
    for process, log in near.processes:
        if not log.name.startswith("scheduler"):
            assert "Traceback" not in log.read_text(), (process.args, log.read_text())
    no_folders_left(near)


@pytest.mark.slow
def test_late_and_repeated_replies_do_not_count_and_two_drivers_do_not_share_a_run(near: Cluster) -> None:
    near.settings = IMPATIENT
    near.scheduler()
    stopped, other = near.workers("w1", "w2")
    assert {host for process in (stopped, other) for host, _ in listening(process)} == {"127.0.0.1"}
    driver = near.driver(program="tests.support.repeated_replies")
    until(lambda: len(near.events("leased")) >= 2, "a block for each worker")
    stopped.send_signal(signal.SIGSTOP)
    driver.send_signal(signal.SIGSTOP)  # or the run might end before the second driver looks
    second = near.driver("--resume")
    assert "is in use by process" in near.finish(second, code=2)
    driver.send_signal(signal.SIGCONT)
    near.wait_for(driver, "has left")  # Dask has given it up
    stopped.send_signal(signal.SIGCONT)
    near.wait_for(stopped, "offers cpu", times=2)
    near.finish(driver)
    counts = check(near)
    _report(counts)
    assert counts["late"] > counts["blocks"]
    assert counts["lost"] >= 1
    for number in (signal.SIGTERM, signal.SIGINT):
        worker = stopped if number == signal.SIGTERM else other
        worker.send_signal(number)
        assert "interrupted" in near.finish(worker, code=130)
    no_folders_left(near)


def test_a_worker_ends_if_its_scheduler_does_not_come_back(near: Cluster) -> None:
    scheduler = near.scheduler()
    worker = near.worker("w1", program="tests.support.impatient_worker")
    near.wait_for(worker, "offers cpu")
    scheduler.kill()
    text = near.finish(worker, code=4)
    assert f"lost the Dask scheduler at 127.0.0.1:{near.port}: looks for it for 1 s" in text
    assert f"no Dask scheduler answers at 127.0.0.1:{near.port}" in text


def test_a_task_that_nobody_waits_for_is_ended() -> None:
    with pytest.raises(RuntimeError, match="nobody waits for the reply"):
        task_process.perform(b"{}", "cpu", lambda: False)
    assert not multiprocessing.active_children()
    reply = task_process.perform(b'{"token": "t"}', "cpu", lambda: True)  # in a new process
    assert b"differ in their version" in reply
    (process,) = multiprocessing.active_children()
    process.kill()
    process.join()
    reply = task_process.perform(b'{"token": "t"}', "cpu", lambda: True)
    assert b"differ in their version" in reply
    before = time.monotonic()
    task_process.end_all()
    assert not multiprocessing.active_children()
    assert time.monotonic() - before < task_process.END_SECONDS


@pytest.mark.slow
def test_a_worker_that_was_cut_off_comes_back_and_its_late_block_does_not_count(far: Cluster) -> None:
    assert far.network
    far.choose(MORE_CASES)
    scheduler = far.scheduler()
    first, *others = far.workers(*HOSTS)
    for process, host in zip((scheduler, first, *others), ("head", *HOSTS), strict=True):
        inside = ("ip", "netns", "exec", far.network.name(host))
        beyond = [address for address in listening(process, *inside) if address[0] != "127.0.0.1"]
        assert [address for address, _ in beyond] == [far.network.addresses[host]]
        assert _answer_without_certificate(*beyond[0], *inside) == "refused"
    driver = far.driver()
    until(lambda: len(far.events("leased")) >= len(HOSTS), "a block for each worker")
    far.network.cut("w1")
    far.wait_for(driver, "has left")
    until(lambda: _again(far), "the block of the worker, on another one")
    for worker in others:  # the rest is for the one that comes back
        worker.send_signal(signal.SIGTERM)
    far.network.join("w1")
    far.wait_for(first, "offers cpu", times=2)
    assert "lost the Dask scheduler" in far.log(first)
    far.finish(driver)
    counts = check(far)
    _report(counts)
    assert counts["lost"] >= 1
    for worker in others:
        far.finish(worker, code=130)
    scheduler.send_signal(signal.SIGINT)
    assert "has ended" in far.finish(first)
    no_folders_left(far)


def _again(dask: Cluster) -> bool:
    """Return whether a block that was handed out twice has been measured."""
    return any(event["lease"] != 1 for event in dask.events("block"))


def _answer_without_certificate(host: str, port: int, *inside: str) -> str:
    program = Path(__file__).parents[1] / "support" / "without_certificate.py"
    command = [*inside, sys.executable, str(program), host, str(port)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def test_who_has_no_certificate_or_another_one_is_refused(secured: Cluster) -> None:
    make(secured.folder / "others")
    secured.scheduler()
    assert _answer_without_certificate("127.0.0.1", secured.port) == "refused"
    secured.certificates = secured.folder / "others"
    for process in (secured.driver(), secured.worker("w1")):
        assert "do not accept each other's certificates" in secured.finish(process, code=4)
    outside = "dask://192.0.2.1:8786"  # TEST-NET-1 of RFC 5737: nobody has it
    driver = secured.start("driver", "runner", "run", "--matrix", str(secured.matrix), "--executor", outside)
    for process in (driver, secured.start("w1", "runner", "worker", outside)):
        assert "without TLS anyone on the network could run code here" in secured.finish(process, code=2)


@pytest.mark.slow
def test_a_driver_that_was_cut_off_goes_on_or_is_resumed(far: Cluster) -> None:
    assert far.network
    far.scheduler()
    far.workers("w1", "w2")
    driver = far.driver()
    until(lambda: len(far.events("leased")) >= 2, "a block for each worker")
    far.network.cut("driver")
    time.sleep(13.0)  # Dask takes the connection for dead after 11 s, and the driver looks for another for 10 s
    far.network.join("driver")
    far.finish(driver)
    _report(check(far))
