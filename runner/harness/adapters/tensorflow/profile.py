"""TensorFlow's profilers: the traced steps of sessions in 1.x, tf.profiler.experimental in 2.x.

Operators are counted by their type, such as MatMul: their names in a graph differ between releases.
"""

import tempfile

from ... import xplane
from ...profile_rows import NoProfile, Row
from . import runtime

EXECUTOR = "tf_"  # the threads of TensorFlow's thread pools
ON_DEVICE = "/stream:"
MEMORY_COPIES = "Memcpy"
FUNCTIONS = ("__inference_", "__forward_", "__backward_")


def table(run: "object", device: "str") -> "tuple":
    """Return (the profiler's name, rows) of what ``run`` does.

    Raises:
        NoProfile: the release has no profiler, or its trace no operators.
    """
    return sessions(run) if runtime.is_v1() else traced(run)


def traced(run: "object") -> "tuple":
    """Return what ``table`` does, with the profiler of 2.x."""
    import tensorflow as tf

    profiler = getattr(tf.profiler, "experimental", None)
    if profiler is None:
        raise NoProfile("tf.profiler.experimental came with TensorFlow 2.2")
    folder = tempfile.mkdtemp(prefix="trace-")
    profiler.start(folder)
    try:
        run()
    finally:
        profiler.stop()
    return "tf.profiler.experimental", xplane.rows(xplane.events(folder), operator_type, "")


def operator_type(name: "str") -> "str":
    """Return the type of an operator in a trace; empty for what is none.

    >>> operator_type("while/lstm/MatMul:MatMul"), operator_type("ExecutorState::Process"), operator_type("f: __inference_f_2")
    ('MatMul', '', '')
    """
    name, separator, kind = name.rpartition(":")
    is_call = kind.strip().startswith(FUNCTIONS)  # its operators have rows, in whichever thread they run
    return "" if not separator or name.endswith(":") or is_call else kind


def sessions(run: "object") -> "tuple":
    """Return what ``table`` does, of the sessions of 1.x: each run of one returns the times of its operators."""
    import tensorflow as tf

    steps, original = [], tf.Session.run
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)

    def traced_run(session, fetches, feed_dict=None, *_, **__):
        steps.append(tf.RunMetadata())
        return original(session, fetches, feed_dict, options, steps[-1])

    tf.Session.run = traced_run
    try:
        run()
    finally:
        tf.Session.run = original
    return "tf.RunMetadata", rows_of([device for step in steps for device in step.step_stats.dev_stats])


def rows_of(devices: "list") -> "list":
    """Return rows from the statistics of devices; times of TensorFlow are in microseconds.

    The kernels of a GPU are in the statistics of its streams, whose labels have the operators' types too.
    """
    rows = {}
    for device in devices:
        of_stream = ON_DEVICE in device.device
        if of_stream and not device.device.endswith(ON_DEVICE + "all"):
            continue  # the same kernels, stream by stream
        for node in device.node_stats:
            kind = node_type(node.timeline_label)
            if not kind:
                continue
            seconds = (node.op_end_rel_micros - node.op_start_rel_micros) / 1e6
            row = rows.setdefault(kind, Row(kind, 0, 0.0))
            row.calls += int(not of_stream)
            row.device += seconds if of_stream else 0.0
            row.host += 0.0 if of_stream else seconds
            row.total = row.host
    return list(rows.values())


def node_type(label: "str") -> "str":
    """Return the type of an operator by its label, "name = Type(inputs)"; of a copy on a GPU MEMORY_COPIES; else empty.

    >>> node_type("gradients/MatMul_1 = MatMul(Tanh, Variable/read)"), node_type("id=3,device=/device:CPU:0")
    ('MatMul', '')
    """
    _, separator, call = label.partition(" = ")
    if separator:
        return call.partition("(")[0]
    return MEMORY_COPIES if label.startswith(MEMORY_COPIES.upper()) else ""
