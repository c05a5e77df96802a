"""The tables of TensorFlow, JAX and Theano from what their profilers give, without any of them."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from runner.harness import xplane
from runner.harness.adapters.jax import profile as jax_profile
from runner.harness.adapters.tensorflow import profile as tf_profile
from runner.harness.adapters.theano import profile as theano_profile
from runner.harness.profile_rows import NoProfile


def varint(value: int) -> bytes:
    """Return an integer in base 128."""
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def field(number: int, value: int | bytes | str) -> bytes:
    """Return a field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def plane(title: str, threads: dict[str, list[tuple[str, int, int]]]) -> bytes:
    """Return an XPlane of threads with (name, start, duration) of their events in nanoseconds."""
    names = sorted({name for events in threads.values() for name, _, _ in events})
    message = field(2, title) + bytes([9 << 3 | 1]) + bytes(8)  # and eight bytes of a field that nothing reads
    for thread, (name, events) in enumerate(threads.items()):
        line = field(1, thread) + field(2, name) + field(3, 1_795_546_559_813_885_000)
        for event, start, duration in events:
            line += field(4, field(1, names.index(event) + 1) + field(2, start * 1000) + field(3, duration * 1000))
        message += field(3, line)
    for number, name in enumerate(names, 1):
        message += field(4, field(1, number) + field(2, field(1, number) + field(2, name)))
    return field(1, message)


def trace(folder: Path, *planes: bytes) -> list[Any]:
    """Return the events of a trace that is written as a profiler does."""
    path = folder / "plugins" / "profile" / "2026" / "host.xplane.pb"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(planes))
    return xplane.events(str(folder))


def table(rows: list[Any]) -> dict[str, tuple[float, int, int]]:
    """Return name -> calls, and nanoseconds on the host and on the device."""
    return {row.name: (row.calls, round(row.host * 1e9), round(row.device * 1e9)) for row in rows}


HOST = plane(
    "/host:CPU",
    {
        "python": [("PjitFunction(step)", 0, 900), ("Execute", 10, 880)],
        "tf_XLAEigen/1": [("while.5", 0, 500), ("dot.15", 100, 200), ("dot.3", 350, 100), ("end: dot.3", 450, 0)],
    },
)


def test_a_trace_of_xla_has_the_operators_of_its_executor(tmp_path: Path) -> None:
    rows = xplane.rows(trace(tmp_path, HOST), jax_profile.operator, jax_profile.EXECUTOR)
    assert table(rows) == {"while": (1, 200, 0), "dot": (2, 300, 0)}
    assert next(row.total for row in rows if row.name == "while") == pytest.approx(500e-9)


def test_a_trace_of_a_gpu_has_its_operators_or_its_kernels_once(tmp_path: Path) -> None:
    streams = {"Stream #1": [("sgemm", 0, 700)], "XLA Ops": [("dot.1", 0, 600)], "XLA Modules": [("step", 0, 900)]}
    rows = xplane.rows(trace(tmp_path / "a", HOST, plane("/device:GPU:0", streams)), jax_profile.operator, "tf_XLA")
    assert table(rows) == {"while": (1, 200, 0), "dot": (2, 300, 600)}
    del streams["XLA Ops"]
    rows = xplane.rows(trace(tmp_path / "b", HOST, plane("/device:GPU:0", streams)), jax_profile.operator, "tf_XLA")
    assert table(rows)["sgemm"] == (1, 0, 700)
    assert "step" not in table(rows)


def test_a_trace_without_a_file_is_empty_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    assert xplane.events(str(tmp_path)) == []
    with pytest.raises(ValueError, match="damaged"):
        trace(tmp_path / "cut", HOST[:-3])
    with pytest.raises(ValueError, match="damaged"):
        trace(tmp_path / "endless", b"\xff" * 20)


def test_a_trace_of_tensorflow_has_the_types_of_its_operators(tmp_path: Path) -> None:
    events = [
        ("EagerExecute: __inference_train_480", 0, 900),
        ("lstm/MatMul:MatMul", 0, 300),
        ("MatMul_1:MatMul", 400, 100),
        ("ExecutorState::Process", 0, 800),
        ("Mul:Mul", 500, 5),
    ]
    rows = xplane.rows(trace(tmp_path, plane("/host:CPU", {"tf_main": events})), tf_profile.operator_type, "")
    assert table(rows) == {"MatMul": (2, 400, 0), "Mul": (1, 5, 0)}


def device(name: str, *nodes: tuple[str, int, int]) -> SimpleNamespace:
    """Return the statistics of a device with (label, start, end) of its nodes in microseconds."""
    stats = [
        SimpleNamespace(timeline_label=label, op_start_rel_micros=start, op_end_rel_micros=end)
        for label, start, end in nodes
    ]
    return SimpleNamespace(device=name, node_stats=stats)


def test_statistics_of_sessions_are_counted_by_type_and_those_of_a_stream_once() -> None:
    kernels = ("MatMul = MatMul(a, b)", 0, 50), ("MEMCPYDtoD", 0, 2)
    devices = [
        device("/job:localhost/device:GPU:0", ("MatMul = MatMul(a, b)", 1, 4), ("MatMul_1 = MatMul(c, d)", 0, 5)),
        device("/device:GPU:0/stream:all", *kernels),
        device("/device:GPU:0/stream:13", *kernels),
        device("/host:CPU", ("id=3,device=/device:CPU:0", 0, 9)),
    ]
    assert table(tf_profile.rows_of(devices)) == {"MatMul": (2, 8000, 50_000), "Memcpy": (0, 0, 2000)}


class Node:
    """A node of a graph, with an operation of a class."""

    def __init__(self, kind: str, **attributes: str) -> None:
        """Make an operation with some attributes."""
        self.op = type(kind, (), attributes)()


class ScanProfileStats(SimpleNamespace):
    """The profile of what a Scan computes."""


def test_theano_counts_what_a_run_adds_and_what_is_within_a_scan_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scan, product, tanh = Node("Scan"), Node("Gemm"), Node("Elemwise", scalar_op="Composite{tanh(i0)}")
    outer = SimpleNamespace(apply_time={scan: 1.0, tanh: 1.0}, apply_callcount={scan: 1, tanh: 1})
    inner = ScanProfileStats(apply_time={product: 0.5}, apply_callcount={product: 30})
    profiling, compiled = ModuleType("theano.compile.profiling"), ModuleType("theano.compile")
    profiling.__dict__["_atexit_print_list"] = [outer, inner]
    compiled.__dict__["profiling"] = profiling
    monkeypatch.setitem(sys.modules, "theano", ModuleType("theano"))
    monkeypatch.setitem(sys.modules, "theano.compile", compiled)

    def run() -> None:
        outer.apply_time[scan] += 2.0
        outer.apply_callcount[scan] += 2
        inner.apply_time[product] += 1.5
        inner.apply_callcount[product] += 60

    name, rows = theano_profile.table(run, "cpu")
    assert name == "theano.config.profile"
    assert table(rows) == {"Scan": (2, 500_000_000, 0), "Gemm": (60, 1_500_000_000, 0)}
    assert theano_profile.operation(tanh) == "Elemwise{Composite}"
    with pytest.raises(NoProfile, match="CPU alone"):
        theano_profile.table(run, "cuda")
