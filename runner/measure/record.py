"""Turn the reply of a server, whose shape ``replies`` has checked, into the record of a cell and round."""

from collections.abc import Mapping
from typing import Any

from runner.catalog.gpu_errors import known_gpu_error
from runner.core.facts import FACTS, HARNESS_FACTS
from runner.core.model import Outcome, Record
from runner.core.text import REASON_LENGTH, printable
from runner.measure.session import POOL_FACTS

EXPLAINED = ("crash", "import", "engine", "device", "arch")  # the other classes explain themselves
ENVIRONMENT_FACTS = ("packages",)  # environments.json keeps them, once
RECORDED_FACTS = frozenset(fact.name for fact in FACTS if fact.recorder in ("harness", "runner")) - {*POOL_FACTS}
"""What a server may not report of its environment: a framework that calls itself an H200 is not measured on it."""


def collect(outcome: Outcome, run: str, common: Mapping[str, Any]) -> tuple[Record, str]:
    """Return the record and the log of one outcome, of a good cell or a failed one.

    A good reply without a time, or with a time that is not above 0, becomes a ``crash``.

    Args:
        outcome: the reply of the server.
        run: id of the run.
        common: the facts that all records of the run share. No fact of a server replaces one of them.
    """
    reply = outcome.reply
    seconds = tuple(reply.get("seconds") or ())
    status, failure, reason = reply["status"], reply.get("class"), str(reply.get("reason"))
    log = printable(str(reply.get("log", "")), multiline=True)
    if status == "ok" and not (seconds and min(seconds) > 0):
        status, failure, reason = "failed", "crash", "the harness answered without a time"
    if status != "ok" and common.get("device", "cpu") != "cpu":
        failure, reason = _explained(failure, reason, log)
    errors = reply.get("gradient_errors") or {}
    reported = {
        f"{name}_reported" if name in common or name in RECORDED_FACTS else name: value
        for name, value in outcome.facts.items()
        if name not in ENVIRONMENT_FACTS
    }
    facts = {
        **reported,
        **{name: reply[key] for name, key in HARNESS_FACTS.items() if key in reply},
        **common,
        "digest": outcome.ready.digest,
        "release": outcome.facts.get("version"),
        "gradient_error": max((e for e in errors.values() if e is not None), default=None),
    }
    record = Record(
        cell=outcome.cell,
        run=run,
        round=outcome.round,
        attempt=outcome.attempt,
        status="ok" if status == "ok" else "failed",
        failure=None if status == "ok" else failure,
        reason=None if status == "ok" else printable(reason, REASON_LENGTH),
        seconds=seconds if status == "ok" else (),
        warmup=tuple(reply.get("warmup") or ()),
        compile_seconds=reply.get("compile_seconds"),
        loss=tuple(reply.get("loss") or ()),
        reference_loss=tuple(reply.get("reference_loss") or ()),
        facts=facts,
    )
    return record, log


def _explained(failure: str | None, reason: str, log: str) -> tuple[str | None, str]:
    """Return class and reason of a failure on a GPU, explained if it is a known error."""
    gpu_error = known_gpu_error(reason) or (known_gpu_error(log) if failure == "crash" else None)
    if gpu_error is None or failure not in EXPLAINED:
        return failure, reason
    return gpu_error.failure, f"{gpu_error.sentence}: {gpu_error.fix} ({reason})"
