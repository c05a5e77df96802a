"""Products from 5 us to 5 ms by five clocks: ours through the real measuring path, the others on the same program."""

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.first_day import products
from benchmarks.first_day.environments import Bench, Probe, planned
from benchmarks.first_day.rows import Row
from benchmarks.first_day.settings import Settings
from runner.catalog.hardware.peaks import peak
from runner.core.model import Cell
from runner.measure.session import Session

SUBJECT = "twenty products by five clocks"
KEPT = (
    *("batch", "steady", "latency_seconds", "device_seconds", "device_time_method", "dispatch_seconds"),
    *("waited_after", "clock_seconds", "child_seconds"),
)
TURNS, SECONDS = 2, 0.2
PROBE_TURNS, PROBE_SECONDS = 3, 0.15
ANSWER_SECONDS = 60.0
CPU_PEAK = 2e10  # operations per second of one core, about: sizes on a CPU are to be small, not exact
CPU_COUNT, CPU_LONGEST = 5, 5e-4


def rows(settings: Settings) -> Iterator[Row]:
    """Yield a row for each product."""
    bench = planned(settings, settings.options(workload=["deepbench-gemm"]))
    spec = bench.newest("torch")
    with bench.held() as pin, bench.session(spec) as session, bench.probe(spec) as probe:
        yield Row("clocks during the products", "read", str(pin) or pin.why or pin.how, {"how": pin.how})
        for size in _sizes(bench):
            yield _row(bench, session, probe, size)


def _sizes(bench: Bench) -> list[int]:
    if bench.gpu is None:
        return products.sizes(CPU_PEAK, CPU_COUNT, products.SHORTEST, CPU_LONGEST)
    board = peak(bench.gpu.name)
    return products.sizes(board.operations["fp32"] if board else None)


def _row(bench: Bench, session: Session, probe: Probe, size: int) -> Row:
    case, environment = products.case(size), session.name.partition("#")[0]
    cell = Cell(
        environment=environment, implementation="matmul", workload=case["workload"], case=case["name"], phase="forward"
    )
    answer = probe.ask(
        "clocks",
        ANSWER_SECONDS,
        case=case,
        device=bench.settings.device,
        precision="fp32",
        threads=bench.context.request.threads,
        turns=PROBE_TURNS,
        seconds=PROBE_SECONDS,
    )
    replies = [bench.ask(session, cell, case, seconds=SECONDS) for _ in range(TURNS)]
    clocks = {products.OURS: _ours(replies), **answer.get("clocks", {})}
    facts: dict[str, Any] = {name: replies[-1][name] for name in KEPT if name in replies[-1]}
    if "error" in answer:
        facts["probe_error"] = answer["error"]
    return products.row(size, clocks, {**facts, **answer.get("versions", {})})


def _ours(replies: list[dict[str, Any]]) -> dict[str, Any]:
    failed = [reply for reply in replies if reply["status"] != "ok"]
    if failed:
        return {"reason": f"{failed[0]['class']}: {failed[0]['reason']}"}
    return {"times": [statistics.median(reply["seconds"]) for reply in replies]}
