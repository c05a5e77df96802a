"""What the kernel counts while samples are taken: per call, without the warm-up and without the turns of others."""

import mmap
import time
from pathlib import Path

import pytest

from runner.harness import sample_usage, script_stack, timing
from runner.harness.sample_usage import SampleUsage

COUNTED = [name for name, _ in sample_usage.COUNTERS]


class Kernel:
    """A kernel whose counters grow by what the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with counters above 0, as in a process that has imported a framework."""
        self.counts = [5000, 7, 11, 13]
        monkeypatch.setattr(sample_usage, "counters", lambda: [*self.counts])

    def count(self, *more: int) -> None:
        """Let the counters grow."""
        self.counts = [count + each for count, each in zip(self.counts, more, strict=True)]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


def test_counters_are_per_call_and_the_turns_of_others_do_not_count(kernel: Kernel) -> None:
    usage = SampleUsage()
    turn = usage.outside_turns(lambda: kernel.count(900, 90, 9, 9))
    kernel.count(1063, 1, 1, 1)  # the warm-up
    usage.begin()
    for _ in range(2):
        turn()
        kernel.count(400, 4, 2, 1)
    facts = usage.facts({"batch": 2, "seconds": [0.1] * 3, "leads": [0.1]})
    assert [facts[name] for name in COUNTED] == [100.0, 1.0, 0.5, 0.25]


def test_without_turns_what_follows_the_warm_up_counts(kernel: Kernel) -> None:
    usage = SampleUsage()
    assert usage.outside_turns(None) is None
    calls, starts = list[int](), list[int]()

    def call() -> None:
        calls.append(1)
        kernel.count(10 if starts else 1000, 0, 0, 0)

    def start() -> None:
        starts.append(1)
        usage.begin()

    times = script_stack.run(timing.measure(call, lambda: None, time.perf_counter, 0.02, starts=start))
    assert len(calls) > len(times["seconds"]) * times["batch"]
    assert usage.facts(times)["minor_faults_per_call"] == 10


def test_memory_that_is_mapped_in_each_call_is_counted_by_the_real_kernel() -> None:
    usage = SampleUsage()
    usage.begin()
    for _ in range(4):
        with mmap.mmap(-1, 1 << 20) as memory:
            for page in range(0, 1 << 20, mmap.PAGESIZE):
                memory[page] = 1
    facts = usage.facts({"batch": 1, "seconds": [0.1] * 4})
    assert facts["minor_faults_per_call"] >= 0.9 * (1 << 20) / mmap.PAGESIZE
    assert facts["peak_resident_bytes"] > 1 << 20


def test_huge_pages_are_not_known_where_the_kernel_does_not_show_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollup = tmp_path / "smaps_rollup"
    rollup.write_text("Rss:     20 kB\nAnonHugePages:      4096 kB\nShmemPmdMapped:        0 kB\n")
    monkeypatch.setattr(sample_usage, "MEMORY", str(rollup))
    assert sample_usage.huge_pages() == {"huge_page_bytes": 4 << 20}
    rollup.unlink()
    assert sample_usage.huge_pages() == {}
