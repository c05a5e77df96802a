"""The cases of every workload with their sizes, and what one step of them costs in arithmetic and memory traffic."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from runner.catalog.cases import (
    asr_lstm,
    deepbench_allreduce,
    deepbench_conv,
    deepbench_gemm,
    deepbench_rnn,
    deepbench_sparse,
    lm_lstm,
    recurrent,
    rnn_sequence,
    rnn_step,
)

__all__ = [
    "CASES",
    "ORIGINAL_PHASES",
    "PHASES",
    "PUBLISHED",
    "forward_bytes",
    "forward_flops",
    "is_kernel",
    "moved_bytes",
    "parameters",
    "product_flops",
    "training_bytes",
]

_SINGLE = (deepbench_gemm, deepbench_conv, deepbench_sparse, deepbench_allreduce)
_MODULES = (rnn_step, rnn_sequence, asr_lstm, lm_lstm, deepbench_rnn, *_SINGLE)
_KERNELS: Mapping[str, ModuleType] = {module.WORKLOAD: module for module in _SINGLE}
"""Workloads of single operations, each with its costs; those of the others are ``recurrent``'s."""

CASES: Mapping[str, Mapping[str, Any]] = {
    f"{case['workload']}/{case['name']}": case for module in _MODULES for case in module.CASES
}
"""``workload/case`` -> the sizes, as they are sent to the harness; in the order in which they are shown."""

PUBLISHED: Mapping[str, tuple[str, ...]] = {
    f"{module.CASES[0]['workload']}/{name}": slugs for module in _MODULES for name, slugs in module.PUBLISHED.items()
}
"""``workload/case`` of the published protocol -> the implementations that were measured, or come nearest to it."""

ORIGINAL_PHASES: Mapping[str, tuple[str, ...]] = {
    module.CASES[0]["workload"]: ("compile", *module.ORIGINAL_PHASES) for module in _MODULES
}
"""workload -> the phases that its original program timed; compile times are of the aligned protocol."""

PHASES = ("compile", "compile-warm", "forward", "gradient", "train")
"""Phases of a network; a case of DeepBench has ``phases`` of its own."""

ALLREDUCE = deepbench_allreduce.WORKLOAD
parameters = recurrent.parameters


def is_kernel(case: Mapping[str, Any]) -> bool:
    """Say whether a case is a single operation, which nothing is trained in."""
    return case["workload"] in _KERNELS


def product_flops(case: Mapping[str, Any], phase: str) -> int:
    """Return the operations of the matrix products in one step of a phase; see the module of the workload."""
    return int(_costs(case).product_flops(case, phase))


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return about how many operations one forward pass takes, those between the products included."""
    return int(_costs(case).forward_flops(case))


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes of one forward pass that must move at least."""
    return int(_costs(case).forward_bytes(case))


def moved_bytes(case: Mapping[str, Any], precision: str) -> int | None:
    """Return the bytes that a single operation moves at least, in a precision; None for a network.

    Each factor and the result count once. Of a sum over processes it is what DeepBench's bandwidths are of: 4 bytes a
    number and process.
    """
    if not is_kernel(case):
        return None
    if precision == "int8":  # products and convolutions have it
        return int(_costs(case).whole_bytes(case))
    found = deepbench_allreduce.aggregate_bytes(case) if case["workload"] == ALLREDUCE else forward_bytes(case)
    return found // (2 if precision in ("fp16", "bf16") else 1)


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return about how many bytes of memory a step holds at once."""
    return int(_costs(case).training_bytes(case))


def _costs(case: Mapping[str, Any]) -> ModuleType:
    return _KERNELS.get(case["workload"], recurrent)
