"""The canary: a product that no environment affects, timed in a new process to see the machine drift."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from runner.core.model.events import CANARY_SIZE

PRODUCTS = 15
WARM_UP = 5  # of the products


def canary(threads: int, cpus: Sequence[int] = ()) -> float:
    """Return the median seconds of a product of 512 x 512 numbers in single precision, in a new process.

    The process uses the interpreter and the NumPy of this program, so that only the machine can change.

    Args:
        threads: number of threads of the BLAS.
        cpus: the CPUs that it runs on; empty for any.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    command = [sys.executable, "-P", "-m", "runner.measure.canary", *map(str, cpus)]
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    times = sorted(json.loads(done.stdout)[WARM_UP:])
    return float(times[len(times) // 2])


def main(cpus: Sequence[str] = ()) -> None:
    """Time the products on some CPUs, or any, and print the seconds as a JSON list."""
    if cpus:
        os.sched_setaffinity(0, map(int, cpus))  # before BLAS counts them
    import numpy as np

    left, right = np.random.default_rng(0).random((2, CANARY_SIZE, CANARY_SIZE), dtype=np.float32)
    times = []
    for _ in range(PRODUCTS):
        begin = time.perf_counter()
        left @ right
        times.append(time.perf_counter() - begin)
    sys.stdout.write(json.dumps(times))


if __name__ == "__main__":
    main(sys.argv[1:])
