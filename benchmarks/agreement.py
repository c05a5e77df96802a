"""Do our medians agree with those of torch.utils.benchmark and of pyperf? The same functions, in turns.

``python benchmarks/agreement.py --python PATH`` takes some minutes. PATH is an interpreter that has torch and pyperf:
``pip install torch==2.13.0 pyperf`` in a virtual environment of Python 3.11 makes one. It needs nothing else.
All sides compute on one thread, and the machine should be idle. The peers' medians are of means, over blocks of as many
calls as fill some milliseconds; ours is of single calls. Where some calls are disturbed, a mean is above a median: so
ours is shown in blocks of as many calls, too, which says whether both measure the same. torch.utils.benchmark takes its
turns in one process with ours; pyperf starts processes of its own, so there each turn of ours is a fresh process, too.
"""

import argparse
import itertools
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from runner.catalog.cases import CASES
from runner.harness import cases, script_stack, timing
from runner.harness.adapters import torch as torch_
from runner.harness.adapters.torch import kernels

TURNS, SECONDS = 12, 0.5  # how many, and the budget of one
SHORTER = (
    8  # in one process: so many more turns, so much shorter, for what disturbs a second is in both sides of a pair
)
TARGET, LOOKING = 0.02, 0.01
BLOCKS = "blocked_autorange, in blocks"
OF_TORCH = (BLOCKS, "blocked_autorange", "adaptive_autorange")
PEERS = (*OF_TORCH, "pyperf")
NAMES = ("LSTM forward", "matmul 256x256", "add 8 numbers")
OPERATIONS = (  # of DeepBench, forward
    "deepbench-gemm/train-001-1760x16x1760-nn",
    "deepbench-gemm/train-021-1760x16x1760-tn",
    "deepbench-gemm/train-004-1760x128x1760-nn",
    "deepbench-conv/server-105-7x7x512-n2-k2048-1x1",
    "deepbench-conv/server-079-56x56x256-n1-k128-1x1",
    "deepbench-conv/server-012-54x54x64-n1-k64-3x3",
)

Pair = tuple[float, float]
Row = tuple[str, str, str, str, str, bool]


def function(name: str) -> Callable[[], object]:
    """Return what is measured: 2 ms, 0.5 ms, 1 us are usual, and 2 to 30 ms of an operation."""
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(mode=False)
    if name in OPERATIONS:
        return operation(name)
    network, steps = torch.nn.LSTM(128, 128), torch.randn(16, 32, 128)
    matrix, numbers = torch.randn(256, 256), torch.randn(8)
    calls = (lambda: network(steps), lambda: torch.mm(matrix, matrix), lambda: torch.add(numbers, numbers))
    return dict(zip(NAMES, calls, strict=True))[name]


def operation(name: str) -> Callable[[], object]:
    """Return an operation of DeepBench's as it is measured."""
    torch_.load(1)
    case = dict(CASES[name])
    made: Any = kernels.Matmul if "gemm" in name else kernels.Conv2d
    forward: Callable[[], object] = made(case, *cases.materialise(case), "cpu", "fp32").forward
    return forward


def nothing() -> None:
    """Wait for a CPU."""


def ours(call: Callable[[], object], seconds: float = SECONDS) -> float:
    """Return our median in seconds."""
    return float(timing.median(script_stack.run(timing.measure(call, nothing, time.perf_counter, seconds))["seconds"]))


def in_blocks(call: Callable[[], object], number: int, seconds: float) -> float:
    """Return our median of blocks of so many calls, which is what the harness does with short steps, in seconds."""
    samples: list[float] = []
    while len(samples) < 5 or number * sum(samples) < seconds:
        samples.append(script_stack.run(timing.sample(call, nothing, time.perf_counter, number))[0])
    return statistics.median(samples)


def looking() -> float:
    """Return what looking whether the median is precise costs, as a share of the samples: what ``count`` does not do.

    The worst there is: samples as short as a batch may be, of times that are never precise.
    """
    draw, shortest = random.Random(1), timing.reading(nothing, time.perf_counter)[0] / timing.CLOCK_SHARE
    ticks = list(itertools.accumulate(shortest * draw.uniform(0.1, 1.9) for _ in range(int(2 / shortest))))
    begin = time.process_time()
    times = script_stack.run(timing.until_precise(nothing, nothing, iter(ticks).__next__, 1.0, 1))
    between = time.process_time()
    script_stack.run(timing.count(nothing, nothing, iter(ticks).__next__, len(times)))
    return float((2 * between - begin - time.process_time()) / sum(times))


def alternate(sides: list[Callable[[], float]], turns: int) -> list[Pair]:
    """Return what both sides say in each turn; the one that is first is second in the next."""
    turns_taken = [{side: sides[side]() for side in (turn % 2, 1 - turn % 2)} for turn in range(turns)]
    return [(turn[0], turn[1]) for turn in turns_taken]


def in_turns(name: str, peer: str, turns: int) -> list[Pair]:
    """Return (ours, theirs) of each turn, in seconds, by a method of torch's Timer."""
    from torch.utils.benchmark import Timer

    call = function(name)
    timer = Timer("call()", globals={"call": call})  # on one thread, as all here
    method = getattr(timer, peer.partition(",")[0])
    seconds = SECONDS / SHORTER
    last = method(min_run_time=seconds)

    def theirs() -> float:
        nonlocal last
        last = method(min_run_time=seconds)
        return float(last.median)

    def mine() -> float:  # the peer makes up its mind anew each time how many calls a block has
        return in_blocks(call, last.number_per_run, seconds) if peer == BLOCKS else ours(call, seconds)

    return alternate([mine, theirs], SHORTER * turns)


def inside(python: str, *words: str) -> str:
    """Return what this file prints when that interpreter runs it with ``words``."""
    return subprocess.run([python, __file__, *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def of_pyperf(python: str, name: str) -> float:
    """Return pyperf's median in seconds, of ten values in one process, each of a tenth of a second or more."""
    here = str(Path(__file__).parent)
    setup = f"import sys; sys.path.insert(0, {here!r}); import agreement; call = agreement.function({name!r})"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "found.json")
        command = [python, "-m", "pyperf", "timeit", "-q", "-p1", "-n10", "-o", str(path), "-s", setup, "call()"]
        subprocess.run(command, capture_output=True, check=True)
        runs = json.loads(path.read_text())["benchmarks"][0]["runs"]
    return float(statistics.median(value for run in runs for value in run.get("values", ())))


def pairs(python: str, name: str, peer: str, turns: int) -> list[Pair]:
    """Return (ours, the peer's) median of each turn, in seconds."""
    if peer != "pyperf":
        return [(a, b) for a, b in json.loads(inside(python, "--inside", name, peer, str(turns)))]
    sides = [lambda: float(inside(python, "--inside", name, "ours", "1")), lambda: of_pyperf(python, name)]
    return alternate(sides, turns)


def row(name: str, peer: str, pairs_of_times: list[Pair]) -> Row:
    """Return a line of the table: the median ratio of the turns, 6 or more, with its 95 % interval by order statistics.

    The target is met where all of the interval is within it. Source: Conover 1999, section 3.2.
    """
    ratios, count = sorted(mine / theirs for mine, theirs in pairs_of_times), len(pairs_of_times)
    chances = itertools.accumulate(math.comb(count, below) / 2**count for below in range(count))
    rank = sum(chance <= 0.025 for chance in chances) - 1
    low, high = ratios[rank], ratios[-1 - rank]
    mine, theirs = (f"{statistics.median(side) * 1e6:.2f} us" for side in zip(*pairs_of_times, strict=True))
    met = low >= 1 / (1 + TARGET) and high <= 1 + TARGET
    middle = statistics.median(ratios)
    return (f"{name}, {peer}", mine, theirs, f"{middle:.4f} [{low:.4f}, {high:.4f}]", f"{TARGET:.0%}", met)


def rows(python: str, turns: int = TURNS) -> list[Row]:
    """Return (figure, ours, the peer's, ratio with its 95 % interval, target, met) of every function and peer."""
    table = [row(name, peer, pairs(python, name, peer, turns)) for name in (*NAMES, *OPERATIONS) for peer in PEERS]
    share = looking()
    return [*table, ("looking, a share of the samples", f"{share:.2%}", "", "", f"{LOOKING:.0%}", share < LOOKING)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch and pyperf")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        name, peer, turns = arguments.inside
        print(ours(function(name)) if peer == "ours" else json.dumps(in_turns(name, peer, int(turns))))
        return
    print("figure | ours | peer | ratio | target | met")
    for line in rows(arguments.python, arguments.turns):
        print(" | ".join([*line[:-1], "met" if line[-1] else "MISSED"]))


if __name__ == "__main__":
    main()
