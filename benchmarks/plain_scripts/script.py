"""A plain script, which knows nothing of the runner: ``python script.py CALLS CLASS KIND SECONDS`` prints a median.

It imports, builds and calls, and has no list but that of the times. It runs on Python 3.6.
"""

import importlib.util
import sys
import time

import numpy as np


def main(path, name, kind, seconds):
    spec = importlib.util.spec_from_file_location("calls", path)
    calls = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(calls)
    named = {"random": np.random.RandomState(0), "kind": kind}
    model_class = getattr(calls, name)
    if name == "TorchModel":
        import torch

        torch.set_num_threads(1)
        named["device"] = "cpu"
    model = model_class(**named)
    wait = (lambda result: result.block_until_ready()) if name == "JaxModel" and kind != "objects" else lambda _: None
    end = time.perf_counter() + seconds / 2
    while time.perf_counter() < end:
        wait(model.forward())
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        wait(model.forward())
        times.append(time.perf_counter() - begin)
    print(sorted(times)[len(times) // 2])


main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
