"""One product by other clocks: those that users of PyTorch know, on the very program that the harness measures."""

import contextlib
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

from runner.harness import cases, script_stack, timing
from runner.harness.adapters import torch as torch_

CALLS = 400  # DeepBench's number: gemm_bench.cu starts so many products and waits once
CAPTURED = 20  # calls in a graph
BLOCK = 1.0  # seconds: longer blocks have fewer calls

Call = Callable[[], object]
Clock = Callable[[Call, Call, float], tuple[list[float], str]]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Measure a case of ``deepbench-gemm`` by each clock; return name -> its times, or why it has none.

    Args:
        request: ``case``, ``device``, ``precision``, ``threads``; ``turns``, how often, and ``seconds``, how long each.
    """
    torch_.load(request["threads"])
    from runner.harness.adapters.torch import compat, kernels

    case = request["case"]
    matmul: Any = kernels.Matmul
    program = matmul(case, *cases.materialise(case), request["device"], request["precision"])
    compat.torch.set_grad_enabled(mode=False)
    script_stack.run(timing.count(program.forward, program.synchronize, time.perf_counter, 3))
    clocks: dict[str, Clock] = {
        "one call, one wait": single,
        f"{CALLS} calls, one wait": block,
        "CUDA graph": graph,
        "torch.utils.benchmark": blocked_autorange,
        "do_bench": do_bench,
    }
    results: dict[str, Any] = {}
    for name, clock in clocks.items():
        if request["device"] == "cpu" and clock in {graph, do_bench}:
            results[name] = {"reason": "no CUDA device"}
            continue
        results[name] = _by(clock, program, request)
    return {"clocks": results, "versions": _versions(compat.torch)}


def _by(clock: Clock, program: Any, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    times: list[float] = []
    note = ""
    try:
        for _ in range(request["turns"]):
            taken, note = clock(program.forward, program.synchronize, request["seconds"])
            times.append(statistics.median(taken))
    except Exception as error:  # noqa: BLE001  a clock that fails must not cost the others
        return {"reason": f"{type(error).__name__}: {str(error)[:200]}"}
    return {"times": times, "note": note}


def single(call: Call, synchronize: Call, seconds: float) -> tuple[list[float], str]:
    """Wait after each call."""
    times: list[float] = []
    while len(times) < 20 or (sum(times) < seconds and len(times) < CALLS):
        times += script_stack.run(timing.count(call, synchronize, time.perf_counter, 1))
    return times, f"{len(times)} calls"


def block(call: Call, synchronize: Call, seconds: float) -> tuple[list[float], str]:
    """Start many calls and wait once, as DeepBench does."""
    first = script_stack.run(timing.count(call, synchronize, time.perf_counter, 1))[0]
    number = max(5, min(CALLS, int(max(seconds, BLOCK) / first)))
    synchronize()
    return [script_stack.run(timing.sample(call, synchronize, time.perf_counter, number))[0]], f"{number} calls"


def graph(call: Call, synchronize: Call, seconds: float) -> tuple[list[float], str]:
    """Replay a captured graph of CAPTURED calls: the host starts one graph for all of them."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # warm-up outside of the default stream, as PyTorch's documentation asks
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(CAPTURED):
            call()
    first = script_stack.run(timing.count(captured.replay, synchronize, time.perf_counter, 3))[-1]
    number = max(2, min(1000, int(seconds / first)))
    replays = (timing.sample(captured.replay, synchronize, time.perf_counter, number) for _ in range(3))
    times = [script_stack.run(steps)[0] / CAPTURED for steps in replays]
    return times, f"{CAPTURED} calls per graph, {number} replays"


def blocked_autorange(call: Call, _synchronize: Call, seconds: float) -> tuple[list[float], str]:
    """Measure with torch.utils.benchmark, which waits once for each block of calls."""
    from torch.utils.benchmark import Timer

    measured = Timer("call()", globals={"call": call}).blocked_autorange(min_run_time=seconds)
    return [float(measured.median)], f"{measured.number_per_run} calls per block"


def do_bench(call: Call, _synchronize: Call, seconds: float) -> tuple[list[float], str]:
    """Measure with Triton's do_bench, which writes over the L2 cache before each call and times by events."""
    testing = importlib.import_module("triton.testing")
    milliseconds = testing.do_bench(call, warmup=25, rep=int(1e3 * seconds), return_mode="median")
    return [float(milliseconds) / 1e3], "cold L2 cache, events"


def _versions(torch: Any) -> dict[str, str]:  # noqa: ANN401
    versions = {"torch": str(torch.__version__)}
    with contextlib.suppress(ImportError):
        versions["triton"] = str(importlib.import_module("triton").__version__)
    return versions
