"""The CPUs that a step runs on: which are chosen, how a process is pinned, and what a monitor reports of them."""

import os
from pathlib import Path

import pytest

from runner.core import machine
from runner.harness import cpu as harness_cpu
from runner.harness.cpu import CpuMonitor, pin


def topology(folder: Path, *cores: tuple[int, int]) -> Path:
    """Write the package and the core of each logical CPU."""
    for cpu, (package, core) in enumerate(cores):
        path = folder / f"cpu{cpu}" / "topology"
        path.mkdir(parents=True)
        (path / "physical_package_id").write_text(f"{package}\n")
        (path / "core_id").write_text(f"{core}\n")
    return folder


@pytest.mark.parametrize(
    ("cores", "threads", "expected"),
    [
        ([(0, 0), (0, 1)], 2, (0, 1)),
        ([(0, 0), (0, 1)], 1, (1,)),  # CPU 0 answers interrupts
        ([(0, 0), (0, 1)], 3, ()),
        ([(0, 0), (0, 0), (0, 1), (0, 1), (0, 2), (0, 2)], 2, (2, 4)),  # hyper-threads side by side
        ([(0, 0), (0, 1), (0, 0), (0, 1)], 2, (0, 1)),  # listed one after the other
        ([(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)], 2, (2, 4)),  # of one package
        ([(0, 0), (1, 0), (0, 1), (1, 1)], 3, (0, 1, 2)),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], 2, (2, 3)),  # the other package has enough without CPU 0's core
    ],
)
def test_apart_gives_each_thread_its_own_core(
    cores: list[tuple[int, int]],
    threads: int,
    expected: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "TOPOLOGY", topology(tmp_path, *cores))
    assert machine.spread_over_cores(threads, range(len(cores))) == expected


def test_apart_without_a_topology_chooses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "TOPOLOGY", tmp_path)
    assert machine.spread_over_cores(1, {0, 1}) == ()


def test_pin_to_no_or_forbidden_cpus_changes_nothing() -> None:
    before = sorted(os.sched_getaffinity(0))
    assert pin([]) == pin([4000]) == before


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the kernel's files about CPUs 1 and 3, which this process may use; it is empty."""
    monkeypatch.setattr(harness_cpu, "CLOCK", str(tmp_path / "clock-{}"))
    monkeypatch.setattr(harness_cpu, "HOT", str(tmp_path / "hot-{}"))
    monkeypatch.setattr(harness_cpu, "STAT", str(tmp_path / "stat"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3})
    return tmp_path


def stat(folder: Path, stolen: int, user: int) -> None:
    """Write the times of CPUs 1 and 3 into lines like those of /proc/stat, among lines of other CPUs."""
    lines = ["cpu  9 9 9 9 9 9 9 900 0 0", "cpu0 9 9 9 9 9 9 9 900 0 0"]
    lines += [f"cpu{cpu} {user} 0 0 0 0 0 0 {stolen} 0 0" for cpu in (1, 3)]
    (folder / "stat").write_text("\n".join([*lines, "cpu13 9 9 9 9 9 9 9 900 0 0", "intr 1 2 3", ""]))


def test_monitor_reports_clocks_throttling_and_stolen_time_of_its_cpus(files: Path) -> None:
    stat(files, 10, 100)
    for cpu in (1, 3):
        (files / f"clock-{cpu}").write_text("3000000\n")
        (files / f"hot-{cpu}").write_text("5\n")
    monitor, waits = CpuMonitor(), list[int]()
    monitor.before_turns(lambda: waits.append(1))()
    (files / "clock-3").write_text("2400000\n")
    (files / "clock-1").write_text("2000000\n")
    (files / "hot-3").write_text("7\n")
    stat(files, 20, 190)
    facts = monitor.facts()
    assert facts["cpus"] == [1, 3]
    assert facts["clock_mhz"] == [2400.0, 3000.0, 3000.0]
    assert (facts["throttled"], facts["held_back"]) == (2, ["heat"])
    assert facts["stolen"] == pytest.approx(0.1)
    assert waits == [1]
    assert facts["os_threads"] >= 1
    assert facts["load"] >= 0


@pytest.mark.usefixtures("files")
def test_monitor_without_kernel_files_leaves_those_facts_out() -> None:
    monitor = CpuMonitor()
    assert monitor.before_turns(None) is None
    assert set(monitor.facts()) == {"cpus", "load", "os_threads"}
