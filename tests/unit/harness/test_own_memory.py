"""The peaks of the memory that a process has beyond what it began with."""

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PAGESIZE, mmap
from pathlib import Path

import pytest

from runner.harness import own_memory
from runner.harness.own_memory import BUILD, STEPS, OwnMemory

MIB = 1 << 20
NEAR = 2 * MIB  # of what a test's process does beside


def resident(size: int) -> mmap:
    """Return memory of a size, all of it resident; what malloc gives may have been so before."""
    memory = mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    for position in range(0, size, PAGESIZE):
        memory[position] = 1
    return memory


def test_the_peak_of_each_stage_counts_beyond_what_the_process_had() -> None:
    before = resident(16 * MIB)
    memory = OwnMemory()
    kept = resident(24 * MIB)
    memory.end(BUILD)
    for _ in range(3):
        resident(40 * MIB).close()
    memory.end(STEPS)
    peaks = memory.facts()
    assert peaks[BUILD] == pytest.approx(24 * MIB, abs=NEAR)
    assert peaks[STEPS] == pytest.approx((24 + 40) * MIB, abs=NEAR)
    assert len(before) + len(kept) == 40 * MIB


def test_what_was_before_a_stage_begins_does_not_count() -> None:
    memory = OwnMemory()
    resident(64 * MIB).close()
    memory.begin()
    memory.end(STEPS)
    assert memory.facts()[STEPS] < NEAR


@pytest.mark.parametrize("missing", ["STATUS", "CLEAR"])
def test_a_kernel_that_does_not_tell_gives_no_facts(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_memory, missing, str(tmp_path / "missing" / "file"))
    memory = OwnMemory()
    memory.begin()
    memory.end(STEPS)
    assert not memory.facts()


def test_an_old_kernel_tells_too_few_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmHWM:\t  100 kB\n", encoding="ascii")
    monkeypatch.setattr(own_memory, "STATUS", str(status))
    assert own_memory.resident() is None
