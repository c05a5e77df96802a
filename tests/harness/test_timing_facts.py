"""The facts of timing travel through the real protocol into the record."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from runner.backends import harness_archive
from runner.core.model import Cell, Outcome, Provisioned
from runner.harness.adapters.tensorflow.v2 import device
from runner.measure.record import collect
from runner.measure.session import Session
from tests.harness.conftest import Ask

Open = Callable[..., Session]
GPU_FACTS = {
    *("waited_after", "wait_seconds", "latency_seconds", "dispatch_seconds", "host_bound"),
    *("device_seconds", "device_time_method", "peak_bytes"),
}
TIMING_FACTS = ("batch", "clock_seconds", "warmup_seconds", "steady")
USAGE_FACTS = {
    *("minor_faults_per_call", "major_faults_per_call", "voluntary_switches_per_call", "involuntary_switches_per_call"),
    "peak_resident_bytes",
}
CELL = Cell(environment="numpy", implementation="sound", workload="rnn-step", case="tiny", phase="train")
READY = Provisioned(environment="numpy", framework="numpy", handle="", digest="d", seconds=0.0, cached=True)


@pytest.mark.parametrize("phase", ["forward", "gradient", "train"])
def test_record_has_the_facts_of_timing(phase: str, ask: Ask) -> None:
    reply = ask("sound", phase=phase)
    record, _ = collect(Outcome(cell=CELL, round=1, reply=reply, facts={}, ready=READY), "run", {})
    facts = {name: record.facts[name] for name in TIMING_FACTS}
    assert isinstance(facts["batch"], int)
    assert facts["batch"] >= 1
    assert facts["clock_seconds"] > 0
    assert facts["warmup_seconds"] >= sum(filter(None, record.warmup[:5]))
    assert isinstance(facts["steady"], bool)


def test_record_has_the_facts_of_its_cpus(ask: Ask, open_session: Open, python: str) -> None:
    (first, *_) = sorted(os.sched_getaffinity(0))
    session = open_session(python, cpus=[first])
    for reply in (ask("sound", session), ask("sound", session, turns=False, phase="forward")):
        assert reply["cpus"] == [first]
        record, _ = collect(Outcome(cell=CELL, round=1, reply=reply, facts={}, ready=READY), "run", {})
        assert {"cpus", "load", "os_threads", *USAGE_FACTS} <= set(record.facts)
        assert 0 <= record.facts["minor_faults_per_call"] < 1000
        assert record.facts["peak_resident_bytes"] > 1 << 20
        assert 0 <= record.facts["others_busy"] <= (os.cpu_count() or 1) + 1  # a tick of 10 ms more or less
    assert ask("sound")["cpus"] == sorted(os.sched_getaffinity(0))
    assert "ended" not in reply
    assert not GPU_FACTS & set(reply)


def test_reply_has_the_times_of_host_and_device_on_a_gpu(ask: Ask) -> None:
    reply = ask("on-a-device", device="cuda")
    assert reply["status"] == "ok", reply
    assert reply["dispatch_seconds"] < min(reply["seconds"])
    assert reply["dispatch_seconds"] < reply["latency_seconds"]
    assert reply["others_busy"] >= 0
    assert (reply["device_seconds"], reply["device_time_method"], reply["peak_bytes"]) == (0.0015, "stopwatch", 4096)
    assert (reply["waited_after"], reply["host_bound"]) == ("each sample", False)
    assert 0 < time.monotonic() - reply["ended"] < 20
    record, _ = collect(Outcome(cell=CELL, round=1, reply=reply, facts={}, ready=READY), "run", {})
    assert set(record.facts) >= GPU_FACTS | USAGE_FACTS


def test_a_framework_without_events_has_the_times_of_its_host(ask: Ask) -> None:
    reply = ask("sound", device="cuda")
    assert not set(reply) & {"device_seconds", "device_time_method", "peak_bytes"}
    assert reply["cpus"] == sorted(os.sched_getaffinity(0))
    assert 0 < reply["dispatch_seconds"] <= reply["latency_seconds"]
    assert "host_bound" in reply


def test_a_device_clock_that_fails_costs_nothing_else(ask: Ask) -> None:
    reply = ask("breaks-its-clock", device="cuda")
    assert reply["status"] == "ok"
    assert "no clock" in reply["log"]
    assert "device_seconds" not in reply
    assert reply["peak_bytes"] == 4096


def test_calls_that_wait_by_themselves_do_not_show_their_dispatch(ask: Ask) -> None:
    reply = ask("waits-itself", device="cuda")
    assert reply["status"] == "ok", reply
    assert reply["waited_after"] == "each call"
    assert not {"dispatch_seconds", "host_bound"} & set(reply)
    assert reply["latency_seconds"] >= 0.002


def test_request_sets_the_batch_on_a_gpu_alone(ask: Ask) -> None:
    assert ask("on-a-device", device="cuda", batch=2)["batch"] == 2
    assert ask("on-a-device", device="cuda", least_batch=8)["batch"] >= 4  # three samples fit into 0.05 s
    assert ask("sound", batch=64)["batch"] < 64


@pytest.mark.parametrize(
    ("name", "has_function", "waits"),
    [
        ("/gpu:0", True, ["sync_devices"]),
        ("/gpu:0", False, ["copy"]),  # before 2.12
        ("/cpu:0", True, []),
    ],
)
def test_tensorflow_waits_by_its_own_function_where_it_has_one(
    name: str,
    has_function: bool,  # noqa: FBT001
    waits: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    test = SimpleNamespace()
    if has_function:
        test.experimental = SimpleNamespace(sync_devices=lambda: seen.append("sync_devices"))
    scalar = SimpleNamespace(numpy=lambda: seen.append("copy"))
    config = SimpleNamespace(
        experimental=SimpleNamespace(set_memory_growth=lambda *_: None), list_physical_devices=lambda _: ["GPU"]
    )
    tensorflow = SimpleNamespace(
        config=config, device=lambda _: contextlib.nullcontext(), Variable=lambda *_, **__: scalar, test=test
    )
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    program = device.OnTf2Device()
    program.use_device("TensorFlow", {"device": "cuda" if name == "/gpu:0" else "cpu", "precision": "fp32"})
    program.synchronize()
    assert seen == waits


@pytest.mark.parametrize(("name", "peak"), [("/gpu:0", 4096), ("/cpu:0", None)])
def test_peak_bytes_of_tensorflow_needs_a_gpu_and_a_release_that_reports_it(
    name: str, peak: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_info = {"GPU:0": {"current": 1024, "peak": 4096}}
    new, old = SimpleNamespace(get_memory_info=memory_info.__getitem__), SimpleNamespace()
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=SimpleNamespace(experimental=new)))
    assert device.peak_bytes(name) == peak
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=SimpleNamespace(experimental=old)))
    assert device.peak_bytes(name) is None


def test_compile_phase_gives_one_sample_and_no_facts_of_timing(ask: Ask) -> None:
    reply = ask("sound", phase="compile")
    assert len(reply["seconds"]) == 1
    assert not {*TIMING_FACTS, "others_busy"} & set(reply)


TEMPORARIES = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy
from harness import sample_usage, script_stack, timing
if sys.argv[2] == "freed":
    block = numpy.ones(20 << 17)
    del block
x, usage = numpy.ones(3 << 17), sample_usage.SampleUsage()
steps = timing.measure(lambda: x * 2.0 + x, lambda: None, time.perf_counter, 0.1, starts=usage.begin)
times = script_stack.run(steps)
print(usage.facts(times)["minor_faults_per_call"])
"""
"""Temporaries of 3 MiB: NumPy asks for huge pages from 4 MiB on."""


@pytest.mark.parametrize(
    ("variables", "before", "lowest", "highest"),
    [
        ({"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}, "nothing", 700, 2000),
        ({}, "freed", 0, 50),  # glibc keeps blocks of up to 20 MiB from then on
    ],
)
def test_page_faults_of_real_temporaries_show_the_state_of_the_allocator(
    variables: dict[str, str], before: str, lowest: float, highest: float, python: str
) -> None:
    words = [python, "-c", TEMPORARIES, str(harness_archive.FOLDER.parent), before]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(words, env={**environment, **variables}, check=True, capture_output=True, text=True)
    assert lowest <= float(done.stdout) <= highest


CALLERS = 3
"""Of a call that is timed: a module, the function ``main``, and ``script_stack.run``."""


@pytest.mark.parametrize("process", ["fork", "plain"])
def test_timed_calls_are_near_the_start_of_the_stack(process: str, ask: Ask) -> None:
    """TensorFlow 2 and JAX record the caller's stack in each call."""
    reply = ask("counts-its-callers", process=process, phase="forward", already_verified=process == "plain")
    assert reply["status"] == "ok", reply
    callers = [int(line.split()[-1]) for line in reply["log"].splitlines() if line.startswith("callers: ")]
    assert min(callers) == CALLERS


@pytest.mark.parametrize("process", ["fork", "plain"])
def test_an_iterator_that_ends_fails_with_the_reason(process: str, ask: Ask) -> None:
    reply = ask("reads-an-iterator", process=process, phase="forward", already_verified=process == "plain")
    assert (reply["status"], reply["class"]) == ("failed", "crash"), reply
    assert "an iterator that the call reads has ended" in reply["reason"]
