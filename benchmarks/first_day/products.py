"""The twenty products from 5 us to 5 ms, and what five clocks say of them; pure."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.first_day.rows import Row, State
from runner.core import units

SHORTEST, LONGEST = 5e-6, 5e-3  # seconds
COUNT = 20
SHARE = 0.75  # of the peak, which large products reach
UNKNOWN_PEAK = 1e13  # operations per second in fp32, of a GPU that is not in peaks.csv
STEP = 32  # sizes are multiples: no product pays for a ragged edge
SAME = 0.05  # by which two clocks may differ that count the same
UNSTEADY = 0.2  # spread above which something else computes, and the clocks cannot be compared
HOST = 1.05  # times the graph's time above which calls wait for their dispatch
OURS, BLOCK, GRAPH, SINGLE = "ours", "400 calls, one wait", "CUDA graph", "one call, one wait"
SHOWN = (OURS, BLOCK, GRAPH, "torch.utils.benchmark", "do_bench", SINGLE)


def sizes(peak: float | None, count: int = COUNT, shortest: float = SHORTEST, longest: float = LONGEST) -> list[int]:
    """Return the sizes n of square products that take ``shortest`` to ``longest`` seconds, in equal ratios.

    A product has 2 n^3 operations, and runs at SHARE of ``peak`` operations per second; None is an unknown peak.

    >>> sizes(66.9e12)[0], sizes(66.9e12)[-1]
    (512, 5024)
    """
    rate = SHARE * (peak or UNKNOWN_PEAK)
    ratio = (longest / shortest) ** (1 / max(count - 1, 1))
    edges = ((shortest * ratio**number * rate / 2) ** (1 / 3) for number in range(count))
    return sorted({max(STEP, STEP * round(edge / STEP)) for edge in edges})


def case(size: int) -> dict[str, Any]:
    """Return a square product as a case of ``deepbench-gemm``, the way the harness gets one."""
    return {
        "workload": "deepbench-gemm",
        "family": "kernel",
        "phases": ["forward"],
        "name": f"first-day-{size}",
        "application": "",
        "m": size,
        "n": size,
        "k": size,
        "a_transposed": False,
        "b_transposed": False,
        "seed": 0,
    }


def spread(times: Sequence[float]) -> float:
    """Return the distance of the slowest from the fastest turn, as a share of their median; 0 for a single turn."""
    return (max(times) - min(times)) / statistics.median(times)


def row(size: int, clocks: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any]) -> Row:
    """Return the row of a product.

    Ours is right where it agrees with the graph; where the host cannot start calls fast enough to keep the device busy,
    it has to agree with a block of calls, for both then measure the host. Without a graph nothing is judged.

    Args:
        size: of the product.
        clocks: name -> ``times``, the medians of its turns in seconds, or ``reason``, why it has none.
        facts: of our replies: ``batch``, and ``device_seconds`` and such where the harness has them.
    """
    medians = {name: statistics.median(each["times"]) for name, each in clocks.items() if each.get("times")}
    values = {
        "size": size,
        "seconds": medians,
        "spread": {name: spread(clocks[name]["times"]) for name in medians},
        "reasons": {name: each["reason"] for name, each in clocks.items() if "reason" in each},
        "notes": {name: each["note"] for name, each in clocks.items() if each.get("note")},
        **facts,
    }
    name = f"product {size} x {size} x {size}"
    if OURS not in medians:
        return Row(name, "did not hold", f"ours: {values['reasons'].get(OURS, 'nothing')}", values)
    compared, host_bound = _compared(medians)
    if compared is None:
        return Row(name, "not tested", "no other clock measured it", values)
    ratio = medians[OURS] / medians[compared]
    values |= {"host_bound": host_bound, "compared": compared, "ratio": ratio}
    shown = " and ".join((units.step_time(medians[OURS]), f"{compared} {units.step_time(medians[compared])}"))
    detail = f"ours {shown}, ratio {ratio:.3f}{', host-bound' if host_bound else ''}"
    if GRAPH not in medians:  # a CPU: what others compute meanwhile differs from clock to clock
        return Row(name, "read", detail, values)
    unsteady = max(values["spread"][OURS], values["spread"][compared])
    state: State = "held" if abs(ratio - 1) <= SAME else "did not hold"
    if unsteady > UNSTEADY and state != "held":
        return Row(name, "not tested", f"turns of one clock differ by {100 * unsteady:.0f} %", values)
    return Row(name, state, detail, values)


def _compared(medians: Mapping[str, float]) -> tuple[str | None, bool]:
    """Return the clock that ours has to agree with, and whether calls wait for their dispatch."""
    blocks = [name for name in (BLOCK, "torch.utils.benchmark") if name in medians]
    if GRAPH not in medians:
        return (blocks[0] if blocks else None), False
    host_bound = bool(blocks) and medians[blocks[0]] > HOST * medians[GRAPH]
    return (blocks[0] if host_bound else GRAPH), host_bound
