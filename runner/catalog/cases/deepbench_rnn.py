"""deepbench-rnn: every recurrent layer of DeepBench's lists: forward, and in training forward and back.

One layer in one direction, its inputs as wide as itself. ``deepbench_rnn.csv`` holds ``rnn_problems.h`` of
baidu-research/DeepBench, its newest; ``vanilla`` is a plain RNN with max(0, x) for its tanh, the cell ``relu``. A GRU
is cuDNN's, with tanh, as in the original's code; its text asks for another.

Departures: the product with the inputs is inside, for a framework's layer has no way round it (the original tells cuDNN
to skip it, CUDNN_SKIP_INPUT). Forward and both passes back are the phase ``gradient``, since no framework offers them
apart: what comes back is the slope of a squared error, and nothing is asked for but the weights' gradients. A bias is
there. Numbers are uniform in [-1, 1), weights in +-1/sqrt(H).
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
VENDOR = {"relu": ("nn-rnn",), "lstm": ("nn-lstm", "cudnn-lstm"), "gru": ("nn-gru",)}


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
PUBLISHED = {case["name"]: VENDOR[case["cell"]] for case in CASES}
ORIGINAL_PHASES = ("forward", "gradient")


def recurrent_flops(case: Mapping[str, Any]) -> int:
    """Return the operations that DeepBench counts in a forward pass, and in each pass back: 2 G T B H^2.

    A plain RNN has T B H more (``rnn_bench`` of DeepBench). The product with the inputs is not in it.
    """
    frames, hidden = case["steps"] * case["batch"], case["hidden"]
    pointwise = frames * hidden if case["cell"] == "relu" else 0
    return int(2 * GATES[case["cell"]] * frames * hidden**2 + pointwise)


FIELD = "General"  # of a case without an application
UNIT = "µs"  # as DeepBench prints times
