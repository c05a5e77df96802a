"""What other programs do, from two readings of a tree like the kernel's."""

import os
from pathlib import Path

import pytest

from runner.core import busy
from runner.core.busy import Busy, Reading, allowed, others, read, serious

TICKS = os.sysconf("SC_CLK_TCK")


def reading(at: float, seconds: float | None, this_process: float = 0.0, **ticks: float) -> Reading:
    """Return a reading; ``ticks`` are CPU seconds of processes, whose ids are their positions from 1."""
    processes = {pid: (name, round(cpu * TICKS)) for pid, (name, cpu) in enumerate(ticks.items(), 1)}
    return Reading(at, seconds, this_process, processes)


@pytest.mark.parametrize(("cpus", "expected"), [(1, 0.3), (2, 0.3), (3, 0.3), (4, 0.4), (16, 1.6), (64, 6.4)])
def test_a_tenth_of_the_cpus_may_be_busy_and_a_bit_on_any_machine(cpus: int, expected: float) -> None:
    assert allowed(cpus) == pytest.approx(expected)


@pytest.mark.parametrize(("cpus", "expected"), [(1, 0.5), (2, 0.5), (4, 0.8), (16, 3.2), (64, 12.8)])
def test_half_a_cpu_is_serious_and_a_fifth_of_many(cpus: int, expected: float) -> None:
    assert serious(cpus) == pytest.approx(expected)


def test_others_are_what_is_busy_without_this_process() -> None:
    first = reading(10.0, 100.0, 5.0, runner=5.0, make=1.0, bash=0.0, cc1=3.0, idle=7.0, top=0.0)
    second = reading(12.0, 103.5, 5.5, runner=5.5, make=1.2, bash=0.12, cc1=5.0, idle=7.0, top=0.3)
    result = others(first, second, ignored=1)
    assert result is not None
    assert result.cpus == pytest.approx(1.5)
    assert result.processes == (Busy("cc1", 4, 1.0), Busy("top", 6, 0.15), Busy("make", 2, 0.1))


def test_a_process_that_began_later_is_counted_and_not_named() -> None:
    result = others(reading(0.0, 0.0), reading(1.0, 1.0, cc1=1.0))
    assert result == (1.0, ())


def test_less_than_nothing_is_nothing() -> None:
    assert others(reading(0.0, 0.0), reading(1.0, 0.0, 0.01)) == (0.0, ())


@pytest.mark.parametrize(("first", "second"), [(None, 1.0), (1.0, None)])
def test_a_kernel_that_does_not_count_says_nothing(first: float | None, second: float | None) -> None:
    assert others(reading(0.0, first), reading(1.0, second)) is None


def test_two_readings_at_one_moment_say_nothing() -> None:
    assert others(reading(1.0, 1.0), reading(1.0, 2.0)) is None


def test_a_reading_of_the_kernels_files(tmp_path: Path) -> None:
    for pid, name in ((7, "a b) c"), (8, "x")):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/stat").write_text(
            f"{pid} ({name}) S 1 7 7 0 -1 4194560 9 0 0 0 30 12 0 0 20 0 1 0 1 0\n"
        )
    (tmp_path / "proc/9").mkdir()  # it ended meanwhile
    (tmp_path / "proc/stat").write_text("cpu  100 20 3 5000 600 40 5 7000 80 90\ncpu0 1 1 1 1\n")
    result = read(tmp_path)
    assert result.busy == (100 + 20 + 3 + 40 + 5) / TICKS
    assert result.ticks == {7: ("a b) c", 42), 8: ("x", 42)}
    assert result.this_process > 0


def test_a_machine_without_those_files(tmp_path: Path) -> None:
    result = read(tmp_path)
    assert (result.busy, result.ticks) == (None, {})


def test_this_machine_shows_what_it_does() -> None:
    first = busy.read()
    assert first.busy is not None
    assert first.ticks[os.getpid()][1] >= 0
    assert read().at >= first.at
