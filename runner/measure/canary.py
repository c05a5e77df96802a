"""The canary: a product that no environment affects, timed again and again to see the machine drift."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from runner.core.errors import Problem, RunnerError
from runner.core.model.events import CANARY_SIZE

PRODUCTS = 15
WARM_UP = 5  # of the products
CLOSE_SECONDS = 5.0


class CanaryProcess:
    """A process that multiplies two matrices of 512 x 512 numbers in single precision whenever it is asked.

    It uses the interpreter and the NumPy of this program, and it is one process for the whole run, so that only the
    machine can change. It starts with the first request, and sleeps between requests.
    """

    def __init__(self, threads: int, cpus: Sequence[int] = ()) -> None:
        """Start nothing yet.

        Args:
            threads: number of threads of the BLAS.
            cpus: the CPUs that the process runs on; empty for any.
        """
        self.threads = threads
        self.cpus = cpus
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self) -> float:
        """Return the median seconds of a product.

        Raises:
            RunnerError: the process has ended.
        """
        self.process = self.process or self._start()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            raise RunnerError(Problem(f"the canary process ended with exit code {self.process.wait(CLOSE_SECONDS)}"))
        times = sorted(json.loads(line)[WARM_UP:])
        return float(times[len(times) // 2])

    def _start(self) -> "subprocess.Popen[bytes]":
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, str(self.threads))}
        command = [sys.executable, "-P", "-m", "runner.measure.canary", *map(str, self.cpus)]
        # In a session of its own: Ctrl-C in a terminal interrupts the runner alone, which then ends the process.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )

    def __enter__(self) -> Self:
        """Return the canary; the end of the block ends its process."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


def main(cpus: Sequence[str] = ()) -> None:
    """For each line of stdin, time the products and print their seconds as a JSON list; the CPUs are any by default."""
    if cpus:
        os.sched_setaffinity(0, map(int, cpus))  # before BLAS counts them
    import numpy as np

    left, right = np.random.default_rng(0).random((2, CANARY_SIZE, CANARY_SIZE), dtype=np.float32)
    for _ in sys.stdin:
        times = []
        for _ in range(PRODUCTS):
            begin = time.perf_counter()
            left @ right
            times.append(time.perf_counter() - begin)
        print(json.dumps(times), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main(sys.argv[1:])
