"""The cases of every workload with their sizes, and what one step of them costs in arithmetic and memory traffic."""

from collections.abc import Mapping
from typing import Any

from runner.workloads import asr_lstm, rnn_step
from runner.workloads.recurrent import forward_bytes, forward_flops

__all__ = ["CASES", "forward_bytes", "forward_flops", "spec"]

CASES: Mapping[str, Mapping[str, Any]] = {
    f"{case['workload']}/{case['name']}": case for module in (rnn_step, asr_lstm) for case in module.CASES
}
"""``workload/case`` -> the sizes, as they are sent to the harness; in the order in which they are shown."""


def spec(case_id: str) -> Mapping[str, Any]:
    """Return the sizes of a case; raises KeyError for one that is not there."""
    return CASES[case_id]
