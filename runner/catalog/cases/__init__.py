"""The cases of every workload with their sizes, and the cost of one step in arithmetic and memory traffic."""

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from runner.catalog.cases import deepbench_allreduce, recurrent

__all__ = [
    "CASES",
    "ORIGINAL_PHASES",
    "PHASES",
    "PUBLISHED",
    "WORKLOADS",
    "field",
    "forward_bytes",
    "forward_flops",
    "in_published_unit",
    "is_kernel",
    "is_network_of_user",
    "moved_bytes",
    "parameter_count",
    "product_flops",
    "training_bytes",
]

WORKLOADS = (
    "rnn-step",
    "rnn-sequence",
    "asr-lstm",
    "lm-lstm",
    "deepbench-rnn",
    "deepbench-gemm",
    "deepbench-conv",
    "deepbench-sparse",
    "deepbench-allreduce",
)
"""The workloads, in the order of reports. Each has a module of its name, with underscores.

A module has ``CASES``, ``PUBLISHED``, ``ORIGINAL_PHASES``, ``FIELD``, and ``UNIT`` or ``unit(case)``. The module of
a workload of single operations also has their costs; ``recurrent`` has the costs of networks.
"""

_MODULES: Mapping[str, ModuleType] = {
    workload: importlib.import_module(f"{__name__}.{workload.replace('-', '_')}") for workload in WORKLOADS
}
_KERNELS = {workload: module for workload, module in _MODULES.items() if hasattr(module, "product_flops")}
"""Workload of single operations -> its module, which has the costs."""

CASES: Mapping[str, Mapping[str, Any]] = {
    f"{case['workload']}/{case['name']}": case for module in _MODULES.values() for case in module.CASES
}
"""``workload/case`` -> the sizes, as they are sent to the harness; in the order of reports."""

PUBLISHED: Mapping[str, tuple[str, ...]] = {
    f"{workload}/{name}": slugs for workload, module in _MODULES.items() for name, slugs in module.PUBLISHED.items()
}
"""``workload/case`` of the published protocol -> the implementations that were measured, or the nearest to them."""

ORIGINAL_PHASES: Mapping[str, tuple[str, ...]] = {
    workload: ("compile", *module.ORIGINAL_PHASES) for workload, module in _MODULES.items()
}
"""Workload -> the phases that its original program timed; ``compile`` is always that of the aligned protocol."""

PHASES = ("compile", "compile-warm", "forward", "gradient", "train")
"""The phases of a case that does not list its own under ``phases``, as those of DeepBench do."""

ALLREDUCE = deepbench_allreduce.WORKLOAD
parameter_count = recurrent.parameter_count


def is_network_of_user(case_id: str) -> bool:
    """Return whether a case, ``workload/case``, is of a model file: its workload is none of the program's."""
    return case_id.partition("/")[0] not in WORKLOADS


def is_kernel(case: Mapping[str, Any]) -> bool:
    """Return True if a case is a single operation, without weights to train."""
    return case["workload"] in _KERNELS


def product_flops(case: Mapping[str, Any], phase: str) -> int:
    """Return the operations of the matrix products in one step of a phase, where a multiply-add counts as two.

    The module of the workload, or ``recurrent``, has the formula and its source.
    """
    return int(_costs(case).product_flops(case, phase))


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return an estimate of the operations in one forward pass: the products and everything between them."""
    return int(_costs(case).forward_flops(case))


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that one forward pass in single precision moves at least."""
    return int(_costs(case).forward_bytes(case))


def moved_bytes(case: Mapping[str, Any], precision: str) -> int | None:
    """Return the bytes that a single operation moves at least, in a precision; None for a network.

    Each operand and the result count once. For an all-reduce it is the amount that the bandwidths of DeepBench refer
    to: 4 bytes for each number and process in fp32.
    """
    if not is_kernel(case):
        return None
    if precision == "int8":  # only products and convolutions have this precision
        return int(_costs(case).int8_bytes(case))
    bytes_per_pass = deepbench_allreduce.aggregate_bytes(case) if case["workload"] == ALLREDUCE else forward_bytes(case)
    return bytes_per_pass // (2 if precision in ("fp16", "bf16") else 1)


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return an estimate of the bytes of memory that a process needs for a step, without the framework itself."""
    return int(_costs(case).training_bytes(case))


def _costs(case: Mapping[str, Any]) -> ModuleType:
    return _KERNELS.get(case["workload"], recurrent)


FIELDS = ("Speech", "Language", "Vision", "Recurrent layers", "General")
"""The fields of application, in the order of reports."""

APPLICATIONS: Mapping[str, tuple[str, ...]] = {
    "Speech": ("deepspeech", "deep speech", "speaker id", "kws"),
    "Language": ("language modelling", "character language modelling", "machine translation"),
    "Vision": ("vision", "resnet", "face recognition", "ocr"),
}
"""Field -> its applications in the two spreadsheets of DeepBench, in lower case."""

_FIELD_OF = {application: name for name, applications in APPLICATIONS.items() for application in applications}


def field(case: Mapping[str, Any]) -> str:
    """Return the field of a case, one of ``FIELDS``: that of its first application, or else that of its workload."""
    if "application" not in case:
        return str(_MODULES[case["workload"]].FIELD)
    return _FIELD_OF.get(case["application"].partition(",")[0].strip().lower(), "General")


_UNITS: Mapping[str, Callable[[Mapping[str, Any], float], float]] = {
    "µs": lambda _case, seconds: seconds * 1e6,
    "µs/example": lambda case, seconds: seconds * 1e6 / case["batch"],
    "ms/batch": lambda _case, seconds: seconds * 1e3,
    "words/s": lambda case, seconds: case["steps"] * case["batch"] / seconds,
}


def in_published_unit(case: Mapping[str, Any], seconds: float) -> tuple[float, str]:
    """Return (value, unit): the time of one step in the unit of the published figures of its workload.

    ``µs/example`` divides the step by its batch, whatever the number of time steps; ``words/s`` counts T B words in a
    step of T time steps and B samples.

    Args:
        case: the case.
        seconds: the time of a step, above 0.
    """
    module = _MODULES[case["workload"]]
    unit = str(module.unit(case) if hasattr(module, "unit") else module.UNIT)
    return _UNITS[unit](case, seconds), unit
