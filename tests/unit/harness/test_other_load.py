"""How busy other processes keep the CPUs: the arithmetic, with readings and a clock that the test sets."""

import os
import time
from pathlib import Path

import pytest

from runner.harness import other_load, procfs
from runner.harness.other_load import OtherLoad

TICKS = os.sysconf("SC_CLK_TCK")


class Machine:
    """A machine whose clock and counters move when the test says so."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin at time 0, with readings that cost nothing."""
        self.now, self.process, self.busy = 0.0, 0.0, 0.0
        self.reading_seconds = 0.0
        self.readings = 0
        self.stat = folder / "stat"
        self.write()
        monkeypatch.setattr(other_load, "STAT", str(self.stat))
        monkeypatch.setattr(other_load, "process_seconds", self.read_process)

    def write(self) -> None:
        """Write the counters as the kernel does."""
        user = round(self.busy * TICKS)
        self.stat.write_text(f"cpu  {user} 0 0 123456 77 0 0 999 0 0\ncpu0 9 9 9 9 9 9 9 900 0 0\n")

    def read_process(self, _: object) -> float:
        """Return the time of this process; it is half of a reading."""
        self.readings += 1
        self.now += self.reading_seconds
        return self.process

    def work(self, seconds: float, process: float, others: float) -> None:
        """Let time pass in which this process and others keep so many CPUs busy."""
        self.now += seconds
        self.process += process * seconds
        self.busy += (process + others) * seconds
        self.write()

    def observer(self) -> OtherLoad:
        """Return an observer of this machine."""
        return OtherLoad(lambda: self.now)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize(("process", "others"), [(1.0, 0.0), (2.0, 0.0), (1.0, 1.0), (0.66, 1.34), (0.0, 2.0)])
def test_others_are_all_that_is_busy_without_this_process(machine: Machine, process: float, others: float) -> None:
    observer = machine.observer()
    assert observer.during(None) is None
    machine.work(10.0, process, others)
    assert observer.facts() == {"others_busy": pytest.approx(others, abs=0.01)}


def test_only_the_time_of_turns_counts(machine: Machine) -> None:
    observer = machine.observer()

    def wait() -> None:
        machine.work(3.0, 0.0, 2.0)  # another cell has its turn: it is no other program

    turn = observer.during(wait)
    machine.work(5.0, 1.0, 2.0)  # the warm-up
    for _ in range(3):
        turn()
        machine.work(1.0, 1.0, 0.5)
    assert observer.facts() == {"others_busy": pytest.approx(0.5, abs=0.01)}
    assert (observer.elapsed, observer.observed) == (3.0, 3.0)


def test_less_than_nothing_is_nothing(machine: Machine) -> None:
    observer = machine.observer()
    observer.during(None)
    machine.work(1.0, 1.0, -0.02)  # the kernel's counters have a resolution of 10 ms
    assert observer.facts() == {"others_busy": 0.0}


def test_readings_that_take_long_are_rare(machine: Machine) -> None:
    machine.reading_seconds = 0.0005
    observer = machine.observer()
    turn = observer.during(lambda: None)
    for _ in range(1000):
        turn()
        machine.work(0.01, 1.0, 1.0)
    facts = observer.facts()
    assert facts == {"others_busy": pytest.approx(1.0, abs=0.1)}
    assert observer.elapsed == pytest.approx(10.0, rel=0.01)
    assert machine.readings * machine.reading_seconds <= 1.1 * other_load.READING_SHARE * observer.elapsed


def test_a_reading_here_takes_little_time() -> None:
    observer = OtherLoad()
    begin = time.thread_time()  # another process may have the CPU
    for _ in range(10):
        observer.counters()
    assert (time.thread_time() - begin) / 10 < 0.05
    observer.facts()


@pytest.mark.parametrize("content", [None, "", "cpu\n", "intr 1 2 3\n", "cpu  a b c d e f g h\n"])
def test_without_the_counters_there_is_no_fact(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "stat").write_text(content)
    monkeypatch.setattr(other_load, "STAT", str(tmp_path / "stat"))
    observer = OtherLoad()
    observer.during(None)
    assert observer.facts() == {}


def test_a_measurement_without_a_turn_has_no_fact(machine: Machine) -> None:
    observer = machine.observer()
    observer.during(lambda: None)
    assert observer.facts() == {}


def test_idle_and_stolen_time_is_not_busy(tmp_path: Path) -> None:
    path = tmp_path / "stat"
    path.write_text("cpu  100 20 3 5000 600 40 5 7000 80 90\ncpu0 1 1 1 1\n")
    with path.open("rb") as handle:
        assert other_load.busy_seconds(handle.fileno()) == (100 + 20 + 3 + 40 + 5) / TICKS


def test_processes_that_the_server_adopted_count_with_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    server, adopted, child = 70, 71, 72
    below = {server: [os.getpid(), adopted, child], os.getpid(): [child]}
    monkeypatch.setattr(procfs, "descendants", lambda pid: below[pid])
    assert OtherLoad().descendants == [child]
    assert OtherLoad(server=server).descendants == [adopted, child]
