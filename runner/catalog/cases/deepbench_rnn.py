"""deepbench-rnn: the recurrent layers of DeepBench's lists: the forward pass, and for training all passes.

One layer in one direction, with as many inputs as hidden units. ``deepbench_rnn.csv`` has the newest
``rnn_problems.h`` of baidu-research/DeepBench. ``vanilla`` is a plain RNN with max(0, x) instead of tanh, the cell
``relu``. The GRU is that of cuDNN, with tanh, as in the original's code; its text describes another one.

Departures: the layer includes the product with the inputs, because the layers of frameworks cannot leave it out (the
original does, with CUDNN_SKIP_INPUT). The forward and both backward passes are one phase, ``gradient``, because no
framework separates them; they compute the gradients of the weights for a squared error. There is a bias. Numbers are
uniform in [-1, 1), weights in +-1/sqrt(H) for H hidden units.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runner.catalog.cases.recurrent import case
from runner.harness.cases.recurrent import GATES

WORKLOAD = "deepbench-rnn"
CSV_FILE = Path(__file__).with_suffix(".csv")
CELLS = {"vanilla": "relu", "lstm": "lstm", "gru": "gru"}
PUBLISHED_IMPLEMENTATIONS = {"relu": ("nn-rnn",), "lstm": ("nn-lstm", "cudnn-lstm"), "gru": ("nn-gru",)}


def _cases() -> Iterator[Mapping[str, Any]]:
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            hidden, batch, steps, index = (int(row[name]) for name in ("hidden", "batch", "steps", "index"))
            yield case(
                workload=WORKLOAD,
                phases=("forward", "gradient") if row["mode"] == "train" else ("forward",),
                name=f"{row['mode']}-{index:03}-{row['type']}-h{hidden}-b{batch}-t{steps}",
                application=row["application"],
                cell=CELLS[row["type"]],
                steps=steps,
                batch=batch,
                inputs=hidden,
                hidden=hidden,
                loss="mse-all",
                optimizer="sgd",
                rate=0.01,
            )


CASES = tuple(_cases())
PUBLISHED = {case["name"]: PUBLISHED_IMPLEMENTATIONS[case["cell"]] for case in CASES}
ORIGINAL_PHASES = ("forward", "gradient")


def recurrent_flops(case: Mapping[str, Any]) -> int:
    """Return the operations that DeepBench counts in a forward pass, and in each backward pass: 2 G T B H^2.

    G gates, T steps, batch B, H hidden units; the product with the inputs is not included. A plain RNN has T B H more
    (``rnn_bench`` of DeepBench).
    """
    frames, hidden = case["steps"] * case["batch"], case["hidden"]
    pointwise = frames * hidden if case["cell"] == "relu" else 0
    return int(2 * GATES[case["cell"]] * frames * hidden**2 + pointwise)


FIELD = "General"  # of cases without an application
UNIT = "µs"  # of the times that DeepBench prints
