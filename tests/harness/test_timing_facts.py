"""The facts of timing travel through the real protocol into the record."""

import os
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from runner.core.model import Cell, Outcome, Provisioned
from runner.harness.adapters.tensorflow.v2 import device
from runner.measure.record import collect
from runner.measure.session import Session
from tests.harness.conftest import Ask

Open = Callable[..., Session]
TIMING_FACTS = ("batch", "clock_seconds", "warmup_seconds", "steady")
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
    assert facts["warmup_seconds"] >= sum(record.warmup[:5])
    assert isinstance(facts["steady"], bool)


def test_record_has_the_facts_of_its_cpus(ask: Ask, open_session: Open, python: str) -> None:
    (first, *_) = sorted(os.sched_getaffinity(0))
    session = open_session(python, cpus=[first])
    for reply in (ask("sound", session), ask("sound", session, turns=False, phase="forward")):
        assert reply["cpus"] == [first]
        record, _ = collect(Outcome(cell=CELL, round=1, reply=reply, facts={}, ready=READY), "run", {})
        assert {"cpus", "load", "os_threads", "preempted"} <= set(record.facts)
        assert 0 <= record.facts["others_busy"] <= (os.cpu_count() or 1) + 1  # a tick of 10 ms more or less
    assert ask("sound")["cpus"] == sorted(os.sched_getaffinity(0))
    assert "ended" not in reply
    assert "dispatch_seconds" not in reply


def test_reply_has_dispatch_and_device_seconds_where_the_framework_has_events(ask: Ask) -> None:
    reply = ask("on-a-device", device="cuda")
    assert reply["status"] == "ok", reply
    assert reply["dispatch_seconds"] < min(reply["seconds"])
    assert reply["others_busy"] >= 0
    assert (reply["device_seconds"], reply["peak_bytes"]) == (0.0015, 4096)
    assert 0 < time.monotonic() - reply["ended"] < 20
    reply = ask("sound", device="cuda")  # it has no events
    assert not set(reply) & {"dispatch_seconds", "device_seconds", "peak_bytes", "load"}
    assert reply["cpus"] == sorted(os.sched_getaffinity(0))
    reply = ask("breaks-its-clock", device="cuda")
    assert reply["status"] == "ok"
    assert "no clock" in reply["log"]
    assert "device_seconds" not in reply


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
