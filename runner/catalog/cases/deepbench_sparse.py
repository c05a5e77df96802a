"""deepbench-sparse: the sparse products of DeepBench's lists, and for comparison the dense products of the matrices.

Y (m, n) = S (m, k) B (k, n), where 90 % or 95 % of the numbers of S are zero, at random positions.
``deepbench_sparse.csv`` has the newest ``sparse_gemm_problems.h`` of baidu-research/DeepBench; if a spreadsheet has
another m, that of the header counts and the column ``note`` says so.

Departures: non-zero numbers are uniform in [-1, 1); the original keeps the numbers above the sparsity, so that all are
between 0.9 and 1. B is row-major, as in frameworks; the original's is column-major.
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
"""The implementation of the dense product, which multiplies the zeros as well."""

CASES = tuple(_cases())
PUBLISHED: Mapping[str, tuple[str, ...]] = {case["name"]: ("sparse-csr", DENSE) for case in CASES}
ORIGINAL_PHASES: tuple[str, ...] = ("forward",)


def product_flops(case: Mapping[str, Any], phase: str) -> int:
    """Return 2 m n k (1 - sparsity): the operations on non-zero numbers.

    The original's tables multiply by the sparsity instead, which counts the zeros. The dense product has the costs
    ``forward_flops`` and ``dense_bytes``.
    """
    del phase
    flops: int = round(2 * case["m"] * case["n"] * case["k"] * (1 - case["sparsity"]))
    return flops


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return the operations of the dense product, 2 m n k, which the sparse one does not exceed."""
    return int(2 * case["m"] * case["n"] * case["k"])


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that the sparse product moves at least: non-zero numbers of S and their columns, B and Y."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(round(8 * m * k * (1 - case["sparsity"])) + 4 * (k * n + m * n))


def dense_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that the dense product moves at least: S, B and Y once, 4 per number."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(4 * (m * k + k * n + m * n))


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return an estimate of the bytes of memory that a process needs, with copies of S and Y."""
    m, n, k = case["m"], case["n"], case["k"]
    return int(4 * (4 * m * k + 2 * k * n + 4 * m * n))


FIELD = "General"  # of cases without an application
UNIT = "µs"  # of the times that DeepBench prints
