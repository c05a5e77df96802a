"""A dozen products and convolutions in five precisions: what the plan says, the check, time and share of peak."""

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.first_day.environments import Bench, planned
from benchmarks.first_day.rows import Row
from benchmarks.first_day.settings import Settings
from runner.catalog.cases import product_flops
from runner.catalog.hardware.peaks import PRECISIONS, peak
from runner.core import units
from runner.core.model import PlannedCell
from runner.measure.session import Session

SUBJECT = "five precisions"
SECONDS = 0.15
CASES = (
    "deepbench-gemm/train-001-*",
    "deepbench-gemm/train-004-*",
    "deepbench-gemm/train-005-*",
    "deepbench-gemm/train-030-*",
    "deepbench-gemm/train-044-*",
    "deepbench-gemm/train-050-*",
    "deepbench-gemm/server-001-*",
    "deepbench-gemm/server-013-*",
    "deepbench-conv/train-038-*",
    "deepbench-conv/server-012-*",
    "deepbench-conv/server-079-*",
    "deepbench-conv/server-105-*",
)
SMALL = ("deepbench-gemm/train-001-*",)
NETWORKS = ("rnn-step/lstm-b32-h128/train", "lm-lstm/lm-small/train")


def rows(settings: Settings) -> Iterator[Row]:
    """Yield a row for each case and precision, then one for each precision of the networks."""
    cases = SMALL if settings.small or settings.standin else CASES
    environment = planned(settings, settings.options(workload=["deepbench-gemm"])).newest("torch").environment
    selectors = [f"{environment}/*/{case}/forward/*" for case in cases]
    bench = planned(settings, settings.options(selectors=selectors, precision=list(PRECISIONS)))
    spec = bench.newest("torch")
    with bench.held() as pin, bench.session(spec) as session:
        yield Row(
            "clocks during the precisions", "read", str(pin) or pin.why or pin.how, {"how": pin.how, "sm": pin.sm}
        )
        for cell in bench.prepared.plan.cells:
            yield _row(bench, session, cell)
    yield from _networks(settings, environment)


def _row(bench: Bench, session: Session, planned_cell: PlannedCell) -> Row:
    cell, skip = planned_cell.cell, planned_cell.skip
    name = f"{cell.case_id} in {cell.precision}"
    values: dict[str, Any] = {"case": cell.case_id, "precision": cell.precision, "implementation": cell.implementation}
    if skip is not None:
        return Row(
            name, "not tested", f"{skip.code}: {skip.reason}", {**values, "skip": skip.code, "reason": skip.reason}
        )
    spec = dict(bench.block(cell).spec)
    reply = bench.ask(session, cell, spec, seconds=SECONDS)
    if reply["status"] != "ok":
        values |= {"class": reply["class"]}
        return Row(name, "did not hold", f"{reply['class']}: {reply['reason']}", values)
    seconds = statistics.median(reply["seconds"])
    rate = product_flops(spec, cell.phase) / seconds
    board = peak(bench.gpu.name) if bench.gpu else None
    share = rate / board.operations[cell.precision] if board and cell.precision in board.operations else None
    values |= {"seconds": seconds, "rate": rate, "share": share, "error": reply.get("forward_error")}
    values |= {name: reply[name] for name in ("device_seconds", "dispatch_seconds", "batch") if name in reply}
    detail = f"{units.step_time(seconds)}, {units.rate(rate, 'OP' if cell.precision == 'int8' else 'FLOP')}"
    detail += f", {100 * share:.2g} % of peak" if share else ""
    return Row(name, "held", f"{detail}, off by {reply.get('forward_error', 0):.1e}", values)


def _networks(settings: Settings, environment: str) -> Iterator[Row]:
    """Yield in which precisions networks are planned: nothing is measured."""
    selectors = [f"{environment}/*/{network}/*" for network in NETWORKS]
    cells = planned(settings, settings.options(selectors=selectors, precision=list(PRECISIONS))).prepared.plan.cells
    running = dict.fromkeys(PRECISIONS, 0)
    for each in cells:
        running[each.cell.precision] += each.skip is None
    detail = ", ".join(f"{precision}: {count} cells" for precision, count in running.items())
    yield Row("networks by precision", "read", f"planned in {environment}: {detail}", {"running": running})
