"""deepbench-allreduce: the sum of as many arrays as there are processes, left in each: seven sizes on 2 to 32 of them.

``deepbench_allreduce.csv`` holds ``all_reduce_problems.h`` of baidu-research/DeepBench, its newest, with the numbers of
chips of its spreadsheet; a case of the original runs on one chip for each process. Each process here has one thread of
a CPU, or a GPU.

Departures: each array is drawn by itself and uniform in [-1, 1). The original writes the sum elsewhere; PyTorch puts it
in the array's place, so that the next sum is of sums: the first numbers are put back before every sixteenth.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WORKLOAD = "deepbench-allreduce"
CSV_FILE = Path(__file__).with_suffix(".csv")
COPIES = 3  # of each process: its numbers, what is summed, and what is received


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
    """Return 0: nothing is multiplied."""
    del case, phase
    return 0


def aggregate_bytes(case: Mapping[str, Any]) -> int:
    """Return 4 bytes a number, of all processes: what the bandwidths of DeepBench's tables are of."""
    return int(4 * case["floats"] * case["chips"])


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return the additions, counted as eight operations each, for an estimate: they wait for memory."""
    return int(8 * case["floats"] * case["chips"])


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that each array must move at least: it is read and written once."""
    return 2 * aggregate_bytes(case)


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return about how many bytes of memory all processes hold at once."""
    return COPIES * aggregate_bytes(case)


FIELD = "General"  # of a case without an application
UNIT = "µs"  # as DeepBench prints times
