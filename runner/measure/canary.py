"""The canary: a product that no environment touches, timed in a fresh process to see the machine drift."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from runner.core.model.events import CANARY_SIZE

PRODUCTS = 15  # of which the first few warm up


WARM_UP = 5


def canary(threads: int, cpus: Sequence[int] = ()) -> float:
    """Return the median seconds of a product of 512 x 512 numbers in single precision, in a fresh process.

    The process is of this program's own interpreter and NumPy, so that what changes is the machine.

    Args:
        threads: of the BLAS.
        cpus: the processors it keeps to; empty for any.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    command = [sys.executable, "-P", "-m", "runner.measure.canary", *map(str, cpus)]
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    times = sorted(json.loads(done.stdout)[WARM_UP:])
    return float(times[len(times) // 2])


def main(cpus: Sequence[str] = ()) -> None:
    """Take the times of the products on some CPUs, or any, and give them as a JSON list on stdout."""
    if cpus:
        os.sched_setaffinity(0, map(int, cpus))  # before BLAS counts them
    import numpy as np

    one, other = np.random.default_rng(0).random((2, CANARY_SIZE, CANARY_SIZE), dtype=np.float32)
    times = []
    for _ in range(PRODUCTS):
        begin = time.perf_counter()
        one @ other
        times.append(time.perf_counter() - begin)
    sys.stdout.write(json.dumps(times))


if __name__ == "__main__":
    main(sys.argv[1:])
