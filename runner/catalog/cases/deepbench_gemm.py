"""deepbench-gemm: every matrix product of DeepBench's lists, training and inference on servers and devices.

C (m, n) = op(A) op(B), column-major. ``deepbench_gemm.csv`` holds ``gemm_problems.h`` of baidu-research/DeepBench, its
newest, with the application of its spreadsheets; where these print another number, the header's is taken and the note
says so. A shape may be in a list twice, so a case is named by its list and its place in it.

Departures: A and B are uniform in [-1, 1) and not in (0, 1], for numbers of one sign hide a wrong layout behind their
mean; C is written and not added to, which is what a framework's product does.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WORKLOAD = "deepbench-gemm"
CSV_FILE = Path(__file__).with_suffix(".csv")
COPIES = 2  # canonical arrays, and those of the framework


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
    """Return 2 m n k, a multiply and an add counted as two (``gemm_bench`` of DeepBench)."""
    del phase
    return int(2 * case["m"] * case["n"] * case["k"])


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return the same: there is nothing but the product."""
    return product_flops(case, "forward")


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that must move at least in single precision: A, B and C once."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(4 * (m * k + k * n + m * n))


def int8_bytes(case: Mapping[str, Any]) -> int:
    """Return the same in int8: A and B of one byte a number, and C of four, for its sums are int32."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(m * k + k * n + 4 * m * n)


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return about how many bytes of memory a process holds at once: the sums of the result are taken in float64."""
    return COPIES * forward_bytes(case) + int(8 * case["m"] * case["n"])


FIELD = "General"  # of a case without an application
UNIT = "µs"  # as DeepBench prints times
