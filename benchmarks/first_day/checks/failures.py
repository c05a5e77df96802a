"""What a record says of a case that does not fit and of one that takes too long, and whether the server goes on."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from benchmarks.first_day import products
from benchmarks.first_day.environments import Bench, planned
from benchmarks.first_day.rows import Row, UntestableError
from benchmarks.first_day.settings import Settings
from runner.core.errors import GpuError
from runner.core.model import Cell, Spec
from runner.gpu import nvml
from runner.measure.session import Session

SUBJECT = "out of memory and time-out"
LARGE = 10240  # the size of a product whose three matrices take 1.3 GB in fp32
FREE = 1 << 30  # bytes that are left of the GPU's memory: less than a context and that product need
SMALL_MEMORY = 32 << 20  # bytes; no child of a CPU framework is smaller
SHORT = 0.5  # seconds: before any child has measured for 30
LONG = 30.0
ANSWER_SECONDS = 60.0


def rows(settings: Settings) -> Iterator[Row]:
    """Yield the class of each failure, and whether the same server measures the next cell."""
    workload = "rnn-step" if settings.standin else "deepbench-gemm"
    bench = planned(settings, settings.options(workload=[workload]))
    spec = bench.newest("torch", "numpy", "jax", "tensorflow")
    cell = bench.first_cell(spec, lambda each: each.precision == "fp32")
    case = dict(bench.block(cell).spec)
    with bench.held(), bench.session(spec) as session:
        yield _expected("time-out", "timeout", bench.ask(session, cell, case, seconds=LONG, timeout=SHORT))
        yield _expected("the cell after a time-out", "", bench.ask(session, cell, case))
        yield from _memory(bench, spec, session, (cell, case))


def _memory(bench: Bench, spec: Spec, session: Session, small: tuple[Cell, dict[str, Any]]) -> Iterator[Row]:
    """Yield what becomes of a case that does not fit, and of one that does afterwards."""
    cell, case = small
    name = "out of memory"
    if bench.gpu is None:
        yield _expected(name, "oom", bench.ask(session, cell, case, seconds=LONG, memory=SMALL_MEMORY))
    elif spec.framework != "torch":
        yield Row(name, "not tested", "the GPU's memory is filled by PyTorch, which is not here")
        return
    elif others := _others(bench):
        yield Row(name, "not tested", f"{others} processes of others compute on this GPU, and need its memory")
        return
    else:
        large = products.case(LARGE)
        big = Cell(
            environment=cell.environment,
            implementation="matmul",
            workload="deepbench-gemm",
            case=large["name"],
            phase="forward",
        )
        with ExitStack() as stack:
            probe = stack.enter_context(bench.probe(spec))
            filled = probe.ask("ballast", ANSWER_SECONDS, free=FREE)
            if "error" in filled:
                yield Row(name, "not tested", f"the GPU's memory could not be filled: {filled['error']}")
                return
            yield _expected(name, "oom", bench.ask(session, big, large), filled)
    yield _expected("the cell after it ran out of memory", "", bench.ask(session, cell, case))


def _expected(name: str, kind: str, reply: dict[str, Any], facts: dict[str, Any] | None = None) -> Row:
    """Return the row of a reply that has to fail with a class, or has to be good where that is empty."""
    seen = "" if reply["status"] == "ok" else str(reply["class"])
    detail = f"{seen}: {reply['reason']}" if seen else "measured"
    return Row(name, "held" if seen == kind else "did not hold", detail, {"class": seen, **(facts or {})})


def _others(bench: Bench) -> int:
    """Return how many processes compute on the GPU while only an idle server of ours is there."""
    assert bench.gpu is not None
    try:
        with nvml.opened() as driver:
            return len(driver.device(bench.gpu.uuid).processes() or ())
    except GpuError as error:
        raise UntestableError(error.problems[0].message) from error
