"""Turn the reply of a server into the record of a cell and round."""

import math
from collections.abc import Mapping
from typing import Any

from runner.catalog.gpu_errors import known_gpu_error
from runner.core.facts import HARNESS_FACTS
from runner.core.model import FAILURE_CLASSES, Outcome, Record

EXPLAINED = ("crash", "import", "engine", "device", "arch")  # the other classes explain themselves
ENVIRONMENT_FACTS = ("packages",)  # environments.json keeps them, once


def collect(outcome: Outcome, run: str, common: Mapping[str, Any]) -> tuple[Record, str]:
    """Return the record and the log of one outcome, of a good cell or a failed one.

    A good reply without a time, or with a time that is not a positive number, becomes a ``crash``.

    Args:
        outcome: the reply of the server.
        run: id of the run.
        common: the facts that all records of the run share.
    """
    reply = outcome.reply
    seconds = tuple(reply.get("seconds") or ())
    status, failure, reason = reply.get("status"), reply.get("class"), reply.get("reason")
    if status == "ok" and not (seconds and all(isinstance(s, float) and 0 < s < math.inf for s in seconds)):
        status, failure, reason = "failed", "crash", "the harness answered without a time"
    if status != "ok" and failure not in FAILURE_CLASSES:
        failure, reason = "crash", f"the harness answered {failure!r}: {reason}"
    if status != "ok" and common.get("device", "cpu") != "cpu":
        failure, reason = _explained(failure, str(reason), str(reply.get("log", "")))
    errors = reply.get("gradient_errors") or {}
    reported = {
        f"{name}_reported" if name in common else name: value
        for name, value in outcome.facts.items()
        if name not in ENVIRONMENT_FACTS
    }
    facts = {
        **reported,
        **common,
        **{name: reply[key] for name, key in HARNESS_FACTS.items() if key in reply},
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
        reason=None if status == "ok" else reason,
        seconds=seconds if status == "ok" else (),
        warmup=tuple(reply.get("warmup") or ()),
        compile_seconds=reply.get("compile_seconds"),
        loss=tuple(reply.get("loss") or ()),
        reference_loss=tuple(reply.get("reference_loss") or ()),
        facts=facts,
    )
    return record, str(reply.get("log", ""))


def _explained(failure: str | None, reason: str, log: str) -> tuple[str | None, str]:
    """Return class and reason of a failure on a GPU, explained if it is a known error."""
    gpu_error = known_gpu_error(reason) or (known_gpu_error(log) if failure == "crash" else None)
    if gpu_error is None or failure not in EXPLAINED:
        return failure, reason
    return gpu_error.failure, f"{gpu_error.sentence}: {gpu_error.fix} ({reason})"
