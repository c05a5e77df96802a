"""A plain script, which knows nothing of the runner: ``python script.py FILE CLASS CASE PHASE SECONDS`` prints a median.

It imports, builds and calls what the class of a model file is, and has no list but that of the times. It runs on
Python 3.6.
"""

import importlib.util
import inspect
import sys
import time

import numpy as np


def main(path, name, case, phase, seconds):
    spec = importlib.util.spec_from_file_location("calls", path)
    calls = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(calls)
    sizes = calls.CASES[case]
    if name == "TorchModel":
        import torch

        torch.set_num_threads(1)
    random = np.random.RandomState(0)
    offered = dict(sizes, random=random, device="cpu", precision="fp32")
    model_class = getattr(calls, name)
    parameters = inspect.signature(model_class).parameters
    if "weights" in parameters:
        taken = inspect.signature(calls.weights).parameters
        offered["weights"] = calls.weights(**{word: offered[word] for word in taken})
    call = getattr(model_class(**{word: offered[word] for word in parameters}), phase)
    end = time.perf_counter() + seconds / 2
    while time.perf_counter() < end:
        wait(call())
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        wait(call())
        times.append(time.perf_counter() - begin)
    print(sorted(times)[len(times) // 2])


def wait(result):
    """Wait for JAX, which returns before it has computed."""
    if hasattr(result, "block_until_ready"):
        result.block_until_ready()


main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5]))
