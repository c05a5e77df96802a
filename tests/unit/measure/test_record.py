"""Every outcome becomes a record, and only valid times are kept."""

import math
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
        status="ok",
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


@pytest.mark.parametrize("seconds", [None, [], [0.0], [0.5, -0.1], [0.5, None], ["0.5"], [True]])
def test_a_good_reply_without_a_time_becomes_a_crash(seconds: Any) -> None:
    record, _ = collected({**GOOD, "seconds": seconds})
    assert (record.status, record.failure) == ("failed", "crash")
    assert record.reason == "the harness answered without a time"
    assert record.seconds == ()


@pytest.mark.parametrize("failure", FAILURE_CLASSES)
def test_a_known_failure_class_is_kept_with_its_reason(failure: str) -> None:
    record, log = collected({"status": "failed", "class": failure, "reason": "why", "log": "last words"})
    assert (record.status, record.failure, record.reason) == ("failed", failure, "why")
    assert log == "last words"
    assert record.facts["digest"] == "sha256:1"
    assert record.facts["gradient_error"] is None


@pytest.mark.parametrize(
    "reply",
    [{"status": "failed", "class": "tired", "reason": "why"}, {"status": "tired", "class": "tired", "reason": "why"}],
)
def test_an_unknown_failure_class_becomes_a_crash(reply: dict[str, Any]) -> None:
    record, _ = collected(reply)
    assert (record.failure, record.reason) == ("crash", "the harness answered 'tired': why")


def test_an_empty_reply_becomes_a_crash() -> None:
    record, log = collected({})
    assert (record.status, record.failure, record.reason, log) == (
        "failed",
        "crash",
        "the harness answered None: None",
        "",
    )


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


@pytest.mark.parametrize("seconds", [[math.inf], [math.nan]])
def test_a_time_that_is_not_finite_becomes_a_crash(seconds: list[float]) -> None:
    record, _ = collected({**GOOD, "seconds": seconds})
    assert record.status == "failed"
