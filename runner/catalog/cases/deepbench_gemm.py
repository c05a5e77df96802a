"""deepbench-gemm: the matrix products of DeepBench's lists: training, and inference on servers and devices.

C = op(A) op(B) of shape (m, n), column-major. ``deepbench_gemm.csv`` has the newest ``gemm_problems.h`` of
baidu-research/DeepBench, with the applications from its spreadsheets; if a spreadsheet has another number, that of the
header counts and the column ``note`` says so. A list may have a shape twice, so the name of a case has the list and the
index in it.

Departures: A and B are uniform in [-1, 1) instead of (0, 1], because the mean of numbers of one sign would hide a wrong
layout. C is overwritten, not added to, as a framework's product does.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WORKLOAD = "deepbench-gemm"
CSV_FILE = Path(__file__).with_suffix(".csv")
COPIES = 2  # the canonical arrays, and those of the framework


def _cases() -> Iterator[Mapping[str, Any]]:
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            m, n, k, index = (int(row[name]) for name in ("m", "n", "k", "index"))
            a, b = row["a_transposed"] == "1", row["b_transposed"] == "1"
            yield {
                "workload": WORKLOAD,
                "family": "kernel",
                "phases": ("forward",),
                "name": f"{row['mode']}-{index:03}-{m}x{n}x{k}-{'nt'[a]}{'nt'[b]}",
                "application": row["application"],
                "m": m,
                "n": n,
                "k": k,
                "a_transposed": a,
                "b_transposed": b,
                "seed": 0,
            }


CASES = tuple(_cases())
PUBLISHED: Mapping[str, tuple[str, ...]] = {case["name"]: ("matmul",) for case in CASES}
ORIGINAL_PHASES: tuple[str, ...] = ("forward",)


def product_flops(case: Mapping[str, Any], phase: str) -> int:
    """Return 2 m n k: a multiply-add counts as two (``gemm_bench`` of DeepBench)."""
    del phase
    return int(2 * case["m"] * case["n"] * case["k"])


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return the operations of the product: there is nothing else to compute."""
    return product_flops(case, "forward")


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that move at least in single precision: A, B and C once, 4 per number."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(4 * (m * k + k * n + m * n))


def int8_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that move at least in int8: 1 per number of A and B, 4 of the int32 result."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(m * k + k * n + 4 * m * n)


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return an estimate of the bytes of memory that a process needs; checksums of C are computed in float64."""
    return COPIES * forward_bytes(case) + int(8 * case["m"] * case["n"])


FIELD = "General"  # of cases without an application
UNIT = "µs"  # of the times that DeepBench prints
