"""The cases of every workload with their sizes, and what one step of them costs in arithmetic and memory traffic."""

from collections.abc import Mapping
from typing import Any

from runner.workloads import asr_lstm, lm_lstm, rnn_sequence, rnn_step
from runner.workloads.recurrent import forward_bytes, forward_flops, parameters, product_flops, training_bytes

__all__ = [
    "CASES",
    "ORIGINAL_PHASES",
    "PUBLISHED",
    "forward_bytes",
    "forward_flops",
    "parameters",
    "product_flops",
    "training_bytes",
]

_MODULES = (rnn_step, rnn_sequence, asr_lstm, lm_lstm)

CASES: Mapping[str, Mapping[str, Any]] = {
    f"{case['workload']}/{case['name']}": case for module in _MODULES for case in module.CASES
}
"""``workload/case`` -> the sizes, as they are sent to the harness; in the order in which they are shown."""

PUBLISHED: Mapping[str, tuple[str, ...]] = {
    f"{module.CASES[0]['workload']}/{name}": slugs for module in _MODULES for name, slugs in module.PUBLISHED.items()
}
"""``workload/case`` of the cases that a seed document gives figures for -> the implementations it measured."""

ORIGINAL_PHASES: Mapping[str, tuple[str, ...]] = {
    module.CASES[0]["workload"]: ("compile", *module.ORIGINAL_PHASES) for module in _MODULES
}
"""workload -> the phases that its original program timed; compile times are of the aligned protocol."""
