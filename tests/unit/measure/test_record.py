"""Every outcome becomes a record, and only valid times are kept."""

from typing import Any

import pytest

from runner.core.model import FAILURE_CLASSES, Cell, Outcome, Provisioned, Record
from runner.measure.record import collect

CELL = Cell(environment="torch-1.0", implementation="nn-lstm", workload="rnn-step", case="tiny", phase="train")
READY = Provisioned(
    environment="torch-1.0", framework="torch", handle="/bin/x", digest="sha256:1", seconds=3.0, cached=True
)
GOOD = {
    "status": "ok",
    "id": 7,
    "seconds": [0.5, 0.25],
    "warmup": [1.0],
    "compile_seconds": 2.0,
    "loss": [3.0, 2.0, 1.0],
    "reference_loss": [3.0, 2.0, 1.5],
    "loss_error": 0.3,
    "gradient_errors": {"a": 0.1, "b": 0.2},
    "digest": "d1",
    "child_seconds": 9.0,
    "round_seconds": 9.5,
}


def collected(reply: dict[str, Any]) -> tuple[Record, str]:
    outcome = Outcome(
        cell=CELL,
        round=2,
        reply=reply,
        facts={"version": "1.0.0", "server": "torch-1.0#1", "device": "TPU"},
        ready=READY,
    )
    return collect(outcome, "run-1", {"threads": 4, "device": "cpu"})


def test_a_good_reply_becomes_a_good_record() -> None:
    record, log = collected(GOOD)
    assert log == ""
    assert record == Record(
        cell=CELL,
        run="run-1",
        round=2,
        attempt=1,
        status="ok",
        failure=None,
        reason=None,
        seconds=(0.5, 0.25),
        warmup=(1.0,),
        compile_seconds=2.0,
        loss=(3.0, 2.0, 1.0),
        reference_loss=(3.0, 2.0, 1.5),
        facts={
            "threads": 4,
            "device": "cpu",
            "device_reported": "TPU",  # the value of the run stays; what the server reports gets another name
            "version": "1.0.0",
            "server": "torch-1.0#1",
            "loss_error": 0.3,
            "gradient_errors": {"a": 0.1, "b": 0.2},
            "data_digest": "d1",
            "child_seconds": 9.0,
            "round_seconds": 9.5,
            "digest": "sha256:1",
            "release": "1.0.0",
            "gradient_error": 0.2,
        },
    )


@pytest.mark.parametrize("seconds", [None, [], [0.0], [0.5, -0.1]])
def test_a_good_reply_without_a_time_becomes_a_crash(seconds: Any) -> None:
    record, _ = collected({**GOOD, "seconds": seconds})
    assert (record.status, record.failure) == ("failed", "crash")
    assert record.reason == "the harness answered without a time"
    assert record.seconds == ()


def test_a_server_replaces_no_fact_of_the_runner_or_of_the_measurement() -> None:
    facts = {"version": "1.0.0", "device_name": "H200", "throttled": "always", "others_busy": 0.0, "blas": "MKL"}
    outcome = Outcome(cell=CELL, round=1, reply={**GOOD, "throttled": 1}, facts=facts, ready=READY)
    recorded = collect(outcome, "run-1", {"device": "cpu", "clocks": None})[0].facts
    assert (recorded["throttled"], recorded["throttled_reported"]) == (1, "always")
    assert (recorded["device_name_reported"], recorded["others_busy_reported"]) == ("H200", 0.0)
    assert not {"device_name", "others_busy", "blas_reported"} & set(recorded)
    gpu = {"device": "NVIDIA H200", "throttled": 0, "clock_mhz": [1, 2, 3]}
    recorded = collect(outcome, "run-1", gpu)[0].facts
    assert recorded["throttled"] == 0


def test_reasons_and_logs_are_printable() -> None:
    reply = {"status": "failed", "class": "crash", "reason": "\x1b[2J" + "x" * 1000, "log": "one\n\x1b]0;title\x07"}
    record, log = collected(reply)
    assert record.reason
    assert record.reason.startswith("\\x1b[2Jxxx")
    assert len(record.reason) == 500
    assert log == "one\n\\x1b]0;title\\x07"


@pytest.mark.parametrize("failure", FAILURE_CLASSES)
def test_a_known_failure_class_is_kept_with_its_reason(failure: str) -> None:
    record, log = collected({"status": "failed", "class": failure, "reason": "why", "log": "last words"})
    assert (record.status, record.failure, record.reason) == ("failed", failure, "why")
    assert log == "last words"
    assert record.facts["digest"] == "sha256:1"
    assert record.facts["gradient_error"] is None


def test_a_wrong_result_keeps_both_losses_and_no_time() -> None:
    reply = {**GOOD, "status": "failed", "class": "wrong-result", "reason": "losses are off"}
    record, _ = collected(reply)
    assert record.failure == "wrong-result"
    assert (record.loss, record.reference_loss) == ((3.0, 2.0, 1.0), (3.0, 2.0, 1.5))
    assert record.seconds == ()
    assert record.facts["loss_error"] == 0.3


def test_a_none_among_losses_is_kept() -> None:
    reply = {**GOOD, "status": "failed", "class": "nan", "reason": "a loss is not finite", "loss": [3.0, None, None]}
    record, _ = collected({**reply, "gradient_errors": {"a": None, "b": 0.5}, "loss_error": None})
    assert record.loss == (3.0, None, None)
    assert record.facts["gradient_error"] == 0.5
    assert record.facts["loss_error"] is None
