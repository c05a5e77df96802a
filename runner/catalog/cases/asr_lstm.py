"""asr-lstm: the speech-like networks of Braun 2018 (arXiv 1806.01818; stefbraun/rnn_benchmarks, commit eb6358a).

Inputs: 123 filter-bank features. Network: one layer of 320 LSTM units, or four bidirectional layers of 320 units in
each direction; no bias in the output layer. Loss: cross entropy of 10 classes on the last step, or CTC of 59 classes
with 100 labels. Optimiser: Adam with rate 1e-3 and epsilon 1e-8.

Aligned choices: one bias, forget bias 1, the data are drawn once with the original's seed 11, CTC is a mean over the
batch with blank 0. ``2x64-ctc-small``, which takes seconds, has CTC over two bidirectional layers; it was never
published.
"""

from collections.abc import Mapping
from typing import Any

from runner.catalog.cases.recurrent import case


def _case(name: str, steps: int, batch: int, **settings: object) -> Mapping[str, Any]:
    common = {"inputs": 123, "hidden": 320, "classes": 10, "loss": "ce", "optimizer": "adam", "rate": 1e-3, "seed": 11}
    return case(workload="asr-lstm", name=name, steps=steps, batch=batch, **{**common, **settings})


CASES = (
    _case("1x320-ce-short", 100, 64),
    _case("1x320-ce-long", 1000, 32),
    _case("4x320-ce-long", 1000, 32, layers=4, bidirectional=True),
    _case("4x320-ctc-long", 1000, 32, layers=4, bidirectional=True, classes=59, labels=100, loss="ctc", ragged=True),
    _case(
        "2x64-ctc-small",
        60,
        8,
        layers=2,
        bidirectional=True,
        hidden=64,
        classes=59,
        labels=10,
        loss="ctc",
        ragged=True,
    ),
)
_MASKED = ("nn-lstm", "lstm-cell", "lstm-block-cell", "lasagne-lstm-layer")
_ONE_LAYER = ("lstm-cell-basic", "lstm-cell-fused", "lstm-block-fused-cell", "keras-lstm", "keras-cudnn-lstm")
PUBLISHED = {
    "1x320-ce-short": (*_MASKED, "cudnn-lstm", *_ONE_LAYER),
    "1x320-ce-long": (*_MASKED, "cudnn-lstm", *_ONE_LAYER),
    "4x320-ce-long": (*_MASKED, "cudnn-lstm"),
    "4x320-ctc-long": _MASKED,
}
ORIGINAL_PHASES = ("train",)
FIELD = "Speech"
UNIT = "ms/batch"  # of the times in Braun 2018
