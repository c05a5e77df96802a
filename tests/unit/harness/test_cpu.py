"""The processors that a step runs on: which they are, where they are told apart, and what is seen of them."""

import os
from pathlib import Path

import pytest

from runner.core import machine
from runner.harness import cpu as cores
from runner.harness.cpu import CpuMonitor, pin


def topology(folder: Path, *places: tuple[int, int]) -> Path:
    """Write down the package and the core of each logical CPU."""
    for cpu, (package, core) in enumerate(places):
        where = folder / f"cpu{cpu}" / "topology"
        where.mkdir(parents=True)
        (where / "physical_package_id").write_text(f"{package}\n")
        (where / "core_id").write_text(f"{core}\n")
    return folder


@pytest.mark.parametrize(
    ("places", "threads", "expected"),
    [
        ([(0, 0), (0, 1)], 2, (0, 1)),
        ([(0, 0), (0, 1)], 1, (1,)),  # CPU 0 answers interrupts
        ([(0, 0), (0, 1)], 3, ()),
        ([(0, 0), (0, 0), (0, 1), (0, 1), (0, 2), (0, 2)], 2, (2, 4)),  # hyper-threads side by side
        ([(0, 0), (0, 1), (0, 0), (0, 1)], 2, (0, 1)),  # and behind each other
        ([(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)], 2, (2, 4)),  # of one package
        ([(0, 0), (1, 0), (0, 1), (1, 1)], 3, (0, 1, 2)),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], 2, (2, 3)),  # the other package has enough without CPU 0's core
    ],
)
def test_each_thread_has_a_core_of_its_own(
    places: list[tuple[int, int]],
    threads: int,
    expected: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "TOPOLOGY", topology(tmp_path, *places))
    assert machine.apart(threads, range(len(places))) == expected


def test_where_the_kernel_does_not_tell_nothing_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "TOPOLOGY", tmp_path)
    assert machine.apart(1, {0, 1}) == ()


def test_a_process_that_may_not_stay_somewhere_goes_on() -> None:
    before = sorted(os.sched_getaffinity(0))
    assert pin([]) == pin([4000]) == before


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a kernel's files about CPUs 1 and 3 are to lie, which this process may use; there are none yet."""
    monkeypatch.setattr(cores, "CLOCK", str(tmp_path / "clock-{}"))
    monkeypatch.setattr(cores, "HOT", str(tmp_path / "hot-{}"))
    monkeypatch.setattr(cores, "STAT", str(tmp_path / "stat"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3})
    return tmp_path


def stat(folder: Path, stolen: int, spent: int) -> None:
    """Write what CPUs 1 and 3 have spent, with much that is none of theirs beside it."""
    lines = ["cpu  9 9 9 9 9 9 9 900 0 0", "cpu0 9 9 9 9 9 9 9 900 0 0"]
    lines += [f"cpu{cpu} {spent} 0 0 0 0 0 0 {stolen} 0 0" for cpu in (1, 3)]
    (folder / "stat").write_text("\n".join([*lines, "cpu13 9 9 9 9 9 9 9 900 0 0", "intr 1 2 3", ""]))


def test_what_the_kernel_tells_of_just_these_processors_is_seen(files: Path) -> None:
    stat(files, 10, 100)
    for cpu in (1, 3):
        (files / f"clock-{cpu}").write_text("3000000\n")
        (files / f"hot-{cpu}").write_text("5\n")
    seen, waited = CpuMonitor(), list[int]()
    seen.before_turns(lambda: waited.append(1))()
    (files / "clock-3").write_text("2400000\n")
    (files / "clock-1").write_text("2000000\n")
    (files / "hot-3").write_text("7\n")
    stat(files, 20, 190)
    found = seen.facts()
    assert found["cpus"] == [1, 3]
    assert found["clock_mhz"] == [2400.0, 3000.0, 3000.0]
    assert (found["throttled"], found["held_back"]) == (2, ["heat"])
    assert found["stolen"] == pytest.approx(0.1)
    assert waited == [1]
    assert found["os_threads"] >= 1
    assert found["preempted"] >= 0
    assert found["load"] >= 0


@pytest.mark.usefixtures("files")
def test_what_the_kernel_does_not_tell_is_left_out() -> None:
    seen = CpuMonitor()
    assert seen.before_turns(None) is None
    assert set(seen.facts()) == {"cpus", "load", "os_threads", "preempted"}
