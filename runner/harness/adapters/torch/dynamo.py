"""What TorchDynamo, the part of ``torch.compile`` that reads Python code, counts of a process.

References:
    torch/_dynamo/utils.py, ``counters`` and ``graph_break_reasons``: the former's ``graph_break`` has no branches on data
    (2.13). torch/_dynamo/convert_frame.py, ``FRAME_COMPILE_COUNTER``, since 2.1.
"""

import sys
from collections import Counter

from ...compilations import AGAIN, BREAKS, GRAPHS


def counts() -> "dict":
    """Return what was counted, see ``Compilations``; nothing if the program has compiled nothing. It imports nothing."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None)
    if not counters or not counters["frames"]["total"]:
        return {}
    broken = Counter(str(each.reason) for each in utils.graph_break_reasons if getattr(each, "graph_break", True))
    counted = {GRAPHS: int(counters["stats"]["unique_graphs"]), BREAKS: dict(broken)}
    frames = getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COMPILE_COUNTER", None)
    if frames is not None:
        counted[AGAIN] = sum(count - 1 for count in frames.values() if count > 1)
    return counted
