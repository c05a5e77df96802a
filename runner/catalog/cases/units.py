"""A step's time in the unit in which its workload is published; all other units are chosen in runner/core/units.py."""

from collections.abc import Mapping
from typing import Any


def quoted(case: Mapping[str, Any], seconds: float) -> tuple[float, str]:
    """Return (value, unit) of one step of ``seconds``, above 0.

    ``µs/example`` for rnn-step and rnn-sequence: the step over its batch, whatever the number of time steps
    (glample/rnn-benchmarks, MaximumEntropy/cudnn_rnn_theano_benchmarks). ``words/s`` for language models: T B words a
    step (TensorFlow's PTB tutorial). ``µs`` for what is DeepBench's, as it prints them. ``ms/batch`` for the rest
    (Braun 2018; PyTorch's word_language_model).
    """
    if case["workload"].startswith("deepbench-"):
        return seconds * 1e6, "µs"
    if case["workload"] in ("rnn-step", "rnn-sequence"):
        return seconds * 1e6 / case["batch"], "µs/example"
    if case["vocabulary"]:
        return case["steps"] * case["batch"] / seconds, "words/s"
    return seconds * 1e3, "ms/batch"
