"""Values that break programs, and the JSON text of documents with values that ``json.dumps`` does not write."""

import json
import re
from collections.abc import Mapping
from typing import Any

RAW: Mapping[str, str] = {
    "digits": "9" * 4301,  # int() refuses more than 4,300 digits
    "minus-digits": "-" + "1" * 4400,
    "many-decimals": "0." + "3" * 5000,
    "overflow": "1e999",
    "nested": "[" * 3000 + "]" * 3000,  # deeper than Python's recursion limit
    "nested-objects": '{"a":' * 3000 + "1" + "}" * 3000,
    "surrogate": '"\\ud800"',
    "surrogate-key": '{"\\udfff": 1}',
    "long-text": '"' + "x" * 100_000 + '"',
    "long-key": '{"' + "k" * 100_000 + '": 1}',
    "long-list": "[" + "0.5," * 50_000 + "0.5]",
    "same-key": '{"a": 1, "a": [2]}',
}
"""Name -> JSON text. The text ``@raw:NAME`` in a document stands for it."""
MARK = "@raw:"
_MARKED = re.compile(f'"{MARK}([a-z-]+)"')

NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 64, 1000, 10**6, 2**31, 2**53, 2**63, -(2**63), 2**64, 10**30, 10**400),
    *(0.0, -0.0, 0.5, 1.0, -0.5, 1e-320, 1e-12, 1e12, 1e308, -1e308, float("nan"), float("inf"), float("-inf")),
)
TEXTS = (
    *(
        "",
        " ",
        "x",
        "0",
        "1",
        "-1",
        "1.5",
        "nan",
        "inf",
        "true",
        "null",
        "None",
        "ok",
        "failed",
        "crash",
        "run",
        "skip",
    ),
    *("cpu", "cuda", "torch", "torch-1.0", "torch-2.x", "torch-2.x@twin", "@twin", "#", "#x", "a#b", "server#-1"),
    *("\x00", "\x1b[31m", "\r\n", "\t", "\x85", "\u2028", "\u202e", "\ufeff", "é", "🦊", "%s", "{0}", "{", "$HOME"),
    *("../../../../etc/passwd", "/dev/null", "records/x.json", ".", "..", "/", "a/b/c/d/e/f", "*", "?", "[", "!x", "|"),
    *("<script>alert(1)</script>", "=1+1", '"', "'", "`", "\\", "aligned", "published", "fp32", "tf32", "2026-11-20"),
    *("20261120-104500-aaaa", "9" * 40, "1e400", "1_000", "٣", "x" * 300),
)
MARKS = tuple(MARK + name for name in RAW)
CONTAINERS: tuple[Any, ...] = (
    *([], {}, [[]], [{}], [None], [True], [1], [0.5], [-0.5], ["x"], [1, "x", None], [[0.5]], [float("nan")]),
    *({"": None}, {"x": 1}, {"a": {"b": {"c": []}}}, {"x": [0.5]}, {"0": 0.5}, {"-1": 1}),
)
SCALARS: tuple[Any, ...] = (None, True, False, *NUMBERS, *TEXTS)
VALUES: tuple[Any, ...] = (*SCALARS, *CONTAINERS, *MARKS)


def to_json(document: object) -> str:
    """Return a document as JSON text, with marks replaced by their text."""
    text = json.dumps(document)
    return _MARKED.sub(lambda match: RAW.get(match[1], match[0]), text) if MARK in text else text
