"""deepbench-conv: the convolutions of DeepBench's lists: the forward pass, and for training both backward passes.

``deepbench_conv.csv`` has the newest ``conv_problems.h`` of baidu-research/DeepBench, without its one line in a
comment, and the applications from the spreadsheets. There is no bias. For the first layer of a network there is no
pass to the inputs, as in the original's tables. A list may have a shape twice.

Departures: numbers are uniform in [-1, 1), as in ``deepbench_gemm``. The lists are for the layout NCHW; an
implementation that cannot compute in it uses NHWC and says so.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WORKLOAD = "deepbench-conv"
CSV_FILE = Path(__file__).with_suffix(".csv")
COPIES = 2  # the canonical arrays, and those of the framework
SIZES = ("w", "h", "c", "n", "k", "filter_w", "filter_h", "pad_w", "pad_h", "stride_w", "stride_h")


def _cases() -> Iterator[Mapping[str, Any]]:
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            sizes = {name: int(row[name]) for name in SIZES}
            back = ("backward-weights", "backward-inputs") if row["back_to_inputs"] == "1" else ("backward-weights",)
            shape = "{w}x{h}x{c}-n{n}-k{k}-{filter_w}x{filter_h}".format(**sizes)
            yield {
                "workload": WORKLOAD,
                "family": "kernel",
                "phases": ("forward", *(back if row["mode"] == "train" else ())),
                "name": f"{row['mode']}-{int(row['index']):03}-{shape}",
                "application": row["application"],
                **sizes,
                "seed": 0,
            }


CASES = tuple(_cases())
PUBLISHED: Mapping[str, tuple[str, ...]] = {case["name"]: ("conv2d",) for case in CASES}
ORIGINAL_PHASES: tuple[str, ...] = ("forward", "backward-weights", "backward-inputs")


def output_size(case: Mapping[str, Any]) -> tuple[int, int]:
    """Return (height, width) of the result: 1 + floor((size - filter + 2 padding) / stride)."""
    height, width = (
        1 + (case[size] - case[f"filter_{size}"] + 2 * case[f"pad_{size}"]) // case[f"stride_{size}"] for size in "hw"
    )
    return height, width


def product_flops(case: Mapping[str, Any], phase: str) -> int:
    """Return 2 P Q n k c r s for any of the three passes (``conv_bench`` of DeepBench).

    P and Q are the height and width of the result, n the batch, c and k the channels of inputs and result, r and s the
    height and width of the filter.
    """
    del phase
    height, width = output_size(case)
    return int(2 * height * width * case["n"] * case["k"] * case["c"] * case["filter_w"] * case["filter_h"])


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return the operations of the products: there is nothing else to compute."""
    return product_flops(case, "forward")


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that move at least in single precision: inputs, filters and result once, 4 per number."""
    height, width = output_size(case)
    inputs, filters = case["n"] * case["c"] * case["h"] * case["w"], case["filter_w"] * case["filter_h"]
    return int(4 * (inputs + filters * case["c"] * case["k"] + case["n"] * case["k"] * height * width))


def int8_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that move at least in int8: 1 per number of inputs and filters, 4 of the int32 result."""
    height, width = output_size(case)
    inputs, filters = case["n"] * case["c"] * case["h"] * case["w"], case["filter_w"] * case["filter_h"]
    return int(inputs + filters * case["c"] * case["k"] + 4 * case["n"] * case["k"] * height * width)


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return an estimate of the bytes of memory that a process needs, with the unrolled patches of the inputs."""
    height, width = output_size(case)
    patches = 4 * height * width * case["c"] * case["filter_w"] * case["filter_h"]
    return int(2 * COPIES * forward_bytes(case) + case["n"] * patches)


FIELD = "General"  # of cases without an application
UNIT = "µs"  # of the times that DeepBench prints
