"""deepbench-allreduce: the sum of one array per process, which every process receives; 7 sizes on 2 to 32 processes.

``deepbench_allreduce.csv`` has the newest ``all_reduce_problems.h`` of baidu-research/DeepBench, with the numbers of
chips from its spreadsheet. The original gives each process a chip; here it has one CPU thread, or a GPU.

Departures: the arrays are drawn independently, uniform in [-1, 1). The original writes the sum to another array;
PyTorch overwrites the array, so that the next call sums sums, and the first numbers are restored before every sixteenth
call.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WORKLOAD = "deepbench-allreduce"
CSV_FILE = Path(__file__).with_suffix(".csv")
COPIES = 3  # arrays of a process: its numbers, the sum, and what it receives


def _cases() -> Iterator[Mapping[str, Any]]:
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            floats, chips, index = (int(row[name]) for name in ("floats", "chips", "index"))
            yield {
                "workload": WORKLOAD,
                "family": "kernel",
                "phases": ("forward",),
                "name": f"{row['mode']}-{index:03}-{floats}-c{chips}",
                "application": row["application"],
                "floats": floats,
                "chips": chips,
                "seed": 0,
            }


CASES = tuple(_cases())
PUBLISHED: Mapping[str, tuple[str, ...]] = {case["name"]: ("allreduce-gloo", "allreduce-nccl") for case in CASES}
ORIGINAL_PHASES: tuple[str, ...] = ("forward",)


def product_flops(case: Mapping[str, Any], phase: str) -> int:
    """Return 0: an all-reduce has no products."""
    del case, phase
    return 0


def aggregate_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes of the arrays of all processes, 4 per number: what DeepBench's bandwidths refer to."""
    return int(4 * case["floats"] * case["chips"])


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return eight operations for each number and process: an addition takes about as long, as it waits for memory."""
    return int(8 * case["floats"] * case["chips"])


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that all processes move at least: each array is read and written once."""
    return 2 * aggregate_bytes(case)


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return an estimate of the bytes of memory that all processes need together."""
    return COPIES * aggregate_bytes(case)


FIELD = "General"  # of cases without an application
UNIT = "µs"  # of the times that DeepBench prints
