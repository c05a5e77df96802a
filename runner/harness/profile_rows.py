"""The rows of a profiler's table, and what makes them from single events."""


class NoProfile(Exception):
    """There is no profile here; the message is a sentence for the report."""


class Row(object):
    """What the calls of one operator took together.

    Attributes:
        name: of the operator, as the profiler has it.
        calls: how often it was called.
        host: seconds on the host, without those of the operators that it calls.
        device: seconds of its work on the device, likewise; 0 without a device.
        total: seconds on the host, with those of the operators that it calls.
    """

    def __init__(self, name: "str", calls: "float", host: "float", device: "float" = 0.0, total: "float" = 0.0):
        """Take what the attributes say."""
        self.name = name
        self.calls = calls
        self.host = max(host, 0.0)
        self.device = max(device, 0.0)
        self.total = max(total, self.host)


def nested(events: "list") -> "list":
    """Return a row for each name of events, whose self seconds leave out the events within them.

    Args:
        events: (lane, name, start, end), in any unit, which the rows then have; an event of a lane that starts within
            another one of it, and ends no later, is within it. A lane is a thread.
    """
    rows, stacks = {}, {}
    for lane, name, start, end in sorted(events, key=lambda event: (event[2], -event[3])):
        stack = stacks.setdefault(lane, [])
        while stack and stack[-1][1] <= start:
            stack.pop()
        row = rows.setdefault(name, Row(name, 0, 0.0))
        row.calls += 1
        row.host += end - start
        if not any(outer is row for outer, _ in stack):
            row.total += end - start
        if stack:
            stack[-1][0].host -= end - start
        stack.append((row, end))
    for row in rows.values():
        row.host = max(row.host, 0.0)
    return list(rows.values())
