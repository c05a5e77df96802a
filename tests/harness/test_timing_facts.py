"""How a step was timed goes through the real protocol, and into the record."""

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
HOW = ("batch", "clock_seconds", "warmup_seconds", "steady")
CELL = Cell(environment="numpy", implementation="sound", workload="rnn-step", case="tiny", phase="train")
READY = Provisioned(environment="numpy", framework="numpy", handle="", digest="d", seconds=0.0, cached=True)


@pytest.mark.parametrize("phase", ["forward", "gradient", "train"])
def test_a_record_says_how_its_step_was_timed(phase: str, ask: Ask) -> None:
    reply = ask("sound", phase=phase)
    record, _ = collect(Outcome(cell=CELL, round=1, reply=reply, facts={}, ready=READY), "run", {})
    facts = {name: record.facts[name] for name in HOW}
    assert isinstance(facts["batch"], int)
    assert facts["batch"] >= 1
    assert facts["clock_seconds"] > 0
    assert facts["warmup_seconds"] >= sum(record.warmup[:5])
    assert isinstance(facts["steady"], bool)


def test_a_record_says_what_was_seen_of_its_processors(ask: Ask, open_session: Open, python: str) -> None:
    (first, *_) = sorted(os.sched_getaffinity(0))
    session = open_session(python, cpus=[first])
    for reply in (ask("sound", session), ask("sound", session, turns=False, phase="forward")):
        assert reply["cpus"] == [first]
        record, _ = collect(Outcome(cell=CELL, round=1, reply=reply, facts={}, ready=READY), "run", {})
        assert {"cpus", "load", "os_threads", "preempted"} <= set(record.facts)
    assert ask("sound")["cpus"] == sorted(os.sched_getaffinity(0))
    assert "ended" not in reply
    assert "dispatch_seconds" not in reply


def test_a_record_says_what_host_and_device_each_spend(ask: Ask) -> None:
    reply = ask("on-a-device", device="cuda")
    assert reply["status"] == "ok", reply
    assert reply["dispatch_seconds"] < min(reply["seconds"])
    assert (reply["device_seconds"], reply["peak_bytes"]) == (0.0015, 4096)
    assert 0 < time.monotonic() - reply["ended"] < 20
    reply = ask("sound", device="cuda")  # it shows no events
    assert not set(reply) & {"dispatch_seconds", "device_seconds", "peak_bytes", "cpus"}
    reply = ask("breaks-its-clock", device="cuda")
    assert reply["status"] == "ok"
    assert "no clock" in reply["log"]
    assert "device_seconds" not in reply


@pytest.mark.parametrize(("place", "peak"), [("/gpu:0", 4096), ("/cpu:0", None)])
def test_tensorflow_tells_its_peak_since_there_is_one_to_tell(
    place: str, peak: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"GPU:0": {"current": 1024, "peak": 4096}}
    new, old = SimpleNamespace(get_memory_info=told.__getitem__), SimpleNamespace()
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=SimpleNamespace(experimental=new)))
    assert device.peak_bytes(place) == peak
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=SimpleNamespace(experimental=old)))
    assert device.peak_bytes(place) is None


def test_what_compiling_took_is_one_sample_without_a_batch(ask: Ask) -> None:
    reply = ask("sound", phase="compile")
    assert len(reply["seconds"]) == 1
    assert not set(HOW) & set(reply)
