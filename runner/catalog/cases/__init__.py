"""The cases of every workload with their sizes, and what one step of them costs in arithmetic and memory traffic."""

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
"""The workloads, in the order in which they are shown. Each is the module of its name, with underscores.

A module has ``CASES``, ``PUBLISHED``, ``ORIGINAL_PHASES``, ``FIELD``, and ``UNIT`` or ``unit(case)``. A module of
single operations has their costs, too; the costs of networks are in ``recurrent``.
"""

_MODULES: Mapping[str, ModuleType] = {
    workload: importlib.import_module(f"{__name__}.{workload.replace('-', '_')}") for workload in WORKLOADS
}
_KERNELS = {workload: module for workload, module in _MODULES.items() if hasattr(module, "product_flops")}
"""Workloads of single operations: their modules have the costs."""

CASES: Mapping[str, Mapping[str, Any]] = {
    f"{case['workload']}/{case['name']}": case for module in _MODULES.values() for case in module.CASES
}
"""``workload/case`` -> the sizes, as they are sent to the harness; in the order in which they are shown."""

PUBLISHED: Mapping[str, tuple[str, ...]] = {
    f"{workload}/{name}": slugs for workload, module in _MODULES.items() for name, slugs in module.PUBLISHED.items()
}
"""``workload/case`` of the published protocol -> the implementations that were measured, or come nearest to it."""

ORIGINAL_PHASES: Mapping[str, tuple[str, ...]] = {
    workload: ("compile", *module.ORIGINAL_PHASES) for workload, module in _MODULES.items()
}
"""workload -> the phases that its original program timed; compile times are of the aligned protocol."""

PHASES = ("compile", "compile-warm", "forward", "gradient", "train")
"""Phases of a network; a case of DeepBench has ``phases`` of its own."""

ALLREDUCE = deepbench_allreduce.WORKLOAD
parameter_count = recurrent.parameter_count


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
        return int(_costs(case).int8_bytes(case))
    bytes_per_pass = deepbench_allreduce.aggregate_bytes(case) if case["workload"] == ALLREDUCE else forward_bytes(case)
    return bytes_per_pass // (2 if precision in ("fp16", "bf16") else 1)


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return about how many bytes of memory a step holds at once."""
    return int(_costs(case).training_bytes(case))


def _costs(case: Mapping[str, Any]) -> ModuleType:
    return _KERNELS.get(case["workload"], recurrent)


FIELDS = ("Speech", "Language", "Vision", "Recurrent layers", "General")
"""The fields of application, in the order in which reports show them."""

APPLICATIONS: Mapping[str, tuple[str, ...]] = {
    "Speech": ("deepspeech", "deep speech", "speaker id", "kws"),
    "Language": ("language modelling", "character language modelling", "machine translation"),
    "Vision": ("vision", "resnet", "face recognition", "ocr"),
}
"""Field -> the applications in DeepBench's two spreadsheets of kernels, in lower case."""

_FIELD_OF = {application: name for name, applications in APPLICATIONS.items() for application in applications}


def field(case: Mapping[str, Any]) -> str:
    """Return the field of a case, one of ``FIELDS``: its workload's, or that of its (first) application."""
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
    """Return (value, unit) of one step of ``seconds``, above 0, in the unit of its workload's published figures.

    ``µs/example`` is the step over its batch, whatever the number of time steps; ``words/s`` counts T B words a step.
    """
    module = _MODULES[case["workload"]]
    unit = str(module.unit(case) if hasattr(module, "unit") else module.UNIT)
    return _UNITS[unit](case, seconds), unit
