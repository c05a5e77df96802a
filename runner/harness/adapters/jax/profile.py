"""JAX's profiler, whose trace is read as in ``harness.xplane``: JAX has no table of it without further packages.

On a CPU the operators are XLA's, in traces since 0.4.34; XLA fuses several into one. XLA numbers them, so that their
names without the number are the same in releases that number otherwise.
"""

import re
import tempfile

from ... import xplane
from ...profile_rows import NoProfile

NUMBER = re.compile(r"(\.[0-9]+)+(\.(clone|remat[0-9]*))?$")
NO_OPERATORS = ("$", "end: ", "PjitFunction", "ParseArguments", "ThreadpoolListener")
WAIT = "(wait for completion)"
EXECUTOR = "tf_XLA"  # the threads of XLA's executor


def table(run: "object", device: "str") -> "tuple":
    """Return (the profiler's name, rows) of what ``run`` does.

    Raises:
        NoProfile: the trace has no operators.
    """
    import jax

    folder = tempfile.mkdtemp(prefix="trace-")
    jax.profiler.start_trace(folder)
    try:
        run()
    finally:
        jax.profiler.stop_trace()
    rows = xplane.rows(xplane.events(folder), operator, EXECUTOR)
    if not any("::" not in row.name for row in rows):
        raise NoProfile("the trace of this release of JAX has no operators")
    return "jax.profiler", rows


def operator(name: "str") -> "str":
    """Return the name of an operator without its number; empty for what is none.

    >>> operator("dot.15"), operator("bitcast_dynamic-update-slice_fusion.1.clone"), operator("$profiler.py:91 start_trace")
    ('dot', 'bitcast_dynamic-update-slice_fusion', '')
    """
    return "" if name.startswith(NO_OPERATORS) or name.endswith(WAIT) else NUMBER.sub("", name)
