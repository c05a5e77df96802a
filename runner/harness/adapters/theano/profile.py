"""Theano's own profile: functions that are compiled while ``config.profile`` is set count the times of their operations.

Elementwise operations are named after what they compute, the others after their class: the rest of their names differs
between releases. Each operation within a Scan has a row, and the row of the Scan has the rest of its time.
"""

from ...profile_rows import NoProfile, Row

SCAN_PROFILE = "ScanProfileStats"


def prepare() -> "None":
    """Have the functions that are compiled from now on keep a profile."""
    import theano

    theano.config.profile = True


def table(run: "object", device: "str") -> "tuple":
    """Return (the profiler's name, rows) of what ``run`` does.

    Raises:
        NoProfile: on a GPU, where a call returns before the device has done its work.
    """
    if device != "cpu":
        raise NoProfile("Theano's profile has the times of a CPU alone")
    from theano.compile import profiling

    before = {id(profile): times(profile) for profile in profiling._atexit_print_list}
    run()
    rows, within_scans = {}, 0.0
    for profile in profiling._atexit_print_list:
        earlier = before.get(id(profile), {})
        for node, (calls, seconds) in times(profile).items():
            calls_before, seconds_before = earlier.get(node, (0, 0.0))
            name = operation(node)
            row = rows.setdefault(name, Row(name, 0, 0.0))
            row.calls += calls - calls_before
            row.host += seconds - seconds_before
            if type(profile).__name__ == SCAN_PROFILE:
                within_scans += seconds - seconds_before
    for row in rows.values():
        row.total = row.host
    if "Scan" in rows:
        rows["Scan"].host = max(rows["Scan"].host - within_scans, 0.0)
    return "theano.config.profile", [row for row in rows.values() if row.calls]


def times(profile: "object") -> "dict":
    """Return node -> (calls, seconds) of a profile until now."""
    return {node: (profile.apply_callcount[node], seconds) for node, seconds in profile.apply_time.items()}


def operation(node: "object") -> "str":
    """Return the name of a node's operation."""
    kind = type(node.op).__name__
    scalar = getattr(node.op, "scalar_op", None)
    return "{}{{{}}}".format(kind, str(scalar).partition("{")[0]) if scalar is not None else kind
