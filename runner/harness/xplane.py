"""Reads the traces of XLA's and TensorFlow's profiler, files in the protocol buffers of ``xplane.proto``.

Neither framework can make a table of them without further packages, and the classes for these messages have been in
several modules of TensorFlow, and in none of JAX. The numbers of the fields are fixed: see
https://github.com/openxla/xla/blob/main/third_party/tsl/tsl/profiler/protobuf/xplane.proto; the encoding is described
at https://protobuf.dev/programming-guides/encoding.
"""

import glob
import os

from .profile_rows import Row, nested

MOST_BYTES = 64 << 20
PLANES = 1  # of XSpace
NAME, LINES, EVENT_METADATA = 2, 3, 4  # of XPlane
LINE_ID, LINE_NAME, LINE_START, LINE_EVENTS = 1, 2, 3, 4  # of XLine; its start is in nanoseconds
EVENT_ID, EVENT_OFFSET, EVENT_DURATION = 1, 2, 3  # of XEvent; in picoseconds
KEY, VALUE = 1, 2  # of an entry of a map
PICOSECOND = 1e-12  # seconds

DEVICE_PLANE = "/device:GPU"
OPERATOR_LINES = ("XLA Ops", "TensorFlow Ops")  # of a device; other lines of it have the same time by other names
STREAM = "Stream"  # how the names of the lines of kernels begin


def events(folder: "str") -> "list":
    """Return (plane, thread, name, start, end) of each event in the newest trace below a folder; times in picoseconds.

    A plane is the host or a device, and a thread (id, name). Returns no events where there is no trace.

    Raises:
        ValueError: the trace is too large, or damaged.
    """
    paths = glob.glob(os.path.join(folder, "plugins", "profile", "*", "*.xplane.pb"))
    if not paths:
        return []
    path = max(paths, key=os.path.getmtime)
    if os.path.getsize(path) > MOST_BYTES:
        raise ValueError("the trace has more than {} MiB".format(MOST_BYTES >> 20))
    with open(path, "rb") as handle:
        return [event for plane in messages(handle.read(), PLANES) for event in events_of(plane)]


def events_of(plane: "bytes") -> "list":
    """Return the events of an XPlane, see ``events``."""
    title = text(plane, NAME)
    names = {}
    for entry in messages(plane, EVENT_METADATA):
        fields = dict(decoded(entry))
        names[fields.get(KEY, 0)] = text(fields.get(VALUE, b""), NAME)
    events_of_lines = []
    for line in messages(plane, LINES):
        fields = dict(decoded(line))
        thread = (fields.get(LINE_ID, 0), text(line, LINE_NAME))
        begin = fields.get(LINE_START, 0) * 1000  # since 1970: as a float of seconds it would be exact to 200 ns
        for event in messages(line, LINE_EVENTS):
            values = dict(decoded(event))
            start = begin + values.get(EVENT_OFFSET, 0)
            end = start + values.get(EVENT_DURATION, 0)
            events_of_lines.append((title, thread, names.get(values.get(EVENT_ID, 0), ""), start, end))
    return events_of_lines


def messages(data: "bytes", field: "int") -> "list":
    """Return the values of a field that may be repeated."""
    return [value for number, value in decoded(data) if number == field]


def text(data: "bytes", field: "int") -> "str":
    """Return the text of a field; empty without it."""
    values = messages(data, field)
    return values[-1].decode("utf-8", "replace") if values else ""


def decoded(data: "bytes") -> "object":
    """Yield (number, value) of each field of a message: an integer, or bytes; raises ValueError for a damaged one."""
    position, end = 0, len(data)
    while position < end:
        key, position = varint(data, position)
        kind = key & 7
        if kind == 0:
            value, position = varint(data, position)
        else:
            if kind == 2:
                length, position = varint(data, position)
            else:
                length = {1: 8, 5: 4}.get(kind, end + 1)
            value, position = data[position : position + length], position + length
        if position > end:
            raise ValueError("the trace is damaged")
        yield key >> 3, value


def varint(data: "bytes", position: "int") -> "tuple":
    """Return (an integer of base 128, the position after it); raises ValueError where the message ends in it."""
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ValueError("the trace is damaged")
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7


def rows(trace: "list", operator: "object", executor: "str") -> "list":
    """Return the rows of a trace: self times on the host of the operators in its threads, and times on a device.

    Args:
        trace: events, see ``events``.
        operator: takes the name of an event and returns that of its operator; empty for what is none.
        executor: how the names of the threads begin that execute operators. Where there is any, other threads are left
            out: they wait for these.
    """
    named = [(plane, thread, operator(name), start, end) for plane, thread, name, start, end in trace]
    on_host = [event for event in named if event[2] and not event[0].startswith(DEVICE_PLANE)]
    executed = [event for event in on_host if event[1][1].startswith(executor)]
    table = {}
    for row in nested([event[1:] for event in executed or on_host]):
        table[row.name] = Row(row.name, row.calls, row.host * PICOSECOND, 0.0, row.total * PICOSECOND)
    on_device = [event for event in named if event[2] and event[0].startswith(DEVICE_PLANE)]
    by_operator = [event for event in on_device if event[1][1] in OPERATOR_LINES]
    for _, _, name, start, end in by_operator or [e for e in on_device if e[1][1].startswith(STREAM)]:
        row = table.setdefault(name, Row(name, 0, 0.0))
        row.calls += int(row.host == 0)
        row.device += (end - start) * PICOSECOND
    return list(table.values())
