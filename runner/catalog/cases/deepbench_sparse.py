"""deepbench-sparse: every sparse product of DeepBench's lists, and beside it the dense one of the same matrices.

Y (m, n) = S (m, k) B (k, n), where S has zeros at random places, nine in ten or nineteen in twenty.
``deepbench_sparse.csv`` holds ``sparse_gemm_problems.h`` of baidu-research/DeepBench, its newest; where its
spreadsheets print another m, the header's is taken and the note says so.

Departures: what is not zero is uniform in [-1, 1), where the original keeps the numbers above the sparsity, all between
0.9 and 1; B lies row by row, as frameworks hold it, where the original has it column by column.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WORKLOAD = "deepbench-sparse"
CSV_FILE = Path(__file__).with_suffix(".csv")


def _cases() -> Iterator[Mapping[str, Any]]:
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            m, n, k, index = (int(row[name]) for name in ("m", "n", "k", "index"))
            yield {
                "workload": WORKLOAD,
                "family": "kernel",
                "phases": ("forward",),
                "name": f"{row['mode']}-{index:03}-{m}x{n}x{k}-{float(row['sparsity']):.2f}",
                "application": row["application"],
                "m": m,
                "n": n,
                "k": k,
                "sparsity": float(row["sparsity"]),
                "seed": 0,
            }


DENSE = "sparse-dense"
"""The implementation that multiplies the zeros, too."""

CASES = tuple(_cases())
PUBLISHED: Mapping[str, tuple[str, ...]] = {case["name"]: ("sparse-csr", DENSE) for case in CASES}
ORIGINAL_PHASES: tuple[str, ...] = ("forward",)


def product_flops(case: Mapping[str, Any], phase: str) -> int:
    """Return 2 m n k (1 - sparsity): the operations on what is not zero.

    The original's tables multiply by the sparsity instead, which counts the zeros. Of the dense twin ``forward_flops``
    and ``dense_bytes`` count.
    """
    del phase
    flops: int = round(2 * case["m"] * case["n"] * case["k"] * (1 - case["sparsity"]))
    return flops


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return the operations of the dense product, 2 m n k: what either takes at most."""
    return int(2 * case["m"] * case["n"] * case["k"])


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that must move at least: each number of S that is not zero with its column, B and Y once."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(round(8 * m * k * (1 - case["sparsity"])) + 4 * (k * n + m * n))


def dense_bytes(case: Mapping[str, Any]) -> int:
    """Return the same of the dense product: S, B and Y once."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(4 * (m * k + k * n + m * n))


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return about how many bytes of memory a process holds at once: S as drawn and as held, and Y twice."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(4 * (4 * m * k + 2 * k * n + 4 * m * n))


FIELD = "General"  # of a case without an application
UNIT = "µs"  # as DeepBench prints times
