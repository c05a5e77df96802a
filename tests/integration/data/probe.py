"""Stands in for the harness server: runs the Python it is sent, one JSON string a line, and replies with ``found``."""

import json
import os
from typing import Any


def main(source: Any) -> None:
    """Serve until stdin ends."""
    out = os.dup(1)
    os.dup2(2, 1)
    for line in iter(source.readline, b""):
        names = {"OUT": out, "SOURCE": source}
        exec(json.loads(line.decode("ascii")), names)
        rest = json.dumps(names["found"]).encode("ascii") + b"\n"
        while rest:
            rest = rest[os.write(out, rest) :]
