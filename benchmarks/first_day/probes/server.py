"""Answers requests for probes, one at a time: the JSON lines of ``runner.harness.protocol``, through stdin and stdout.

A probe is a module here with ``answer(request)``. What it prints goes to stderr.
"""

import importlib
import os
import traceback
from typing import Any, BinaryIO

from runner.harness import protocol
from runner.harness.server import remove_temporary_folder


def main(source: BinaryIO) -> None:
    """Answer until stdin ends."""
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        for line in iter(source.readline, b""):
            remaining = protocol.encode(answer(protocol.decode(line)))
            while remaining:
                remaining = remaining[os.write(out, remaining) :]
    finally:
        remove_temporary_folder()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a probe; ``error`` where it raised."""
    try:
        module = importlib.import_module(f"benchmarks.first_day.probes.{request['probe']}")
        return dict(module.answer(request))
    except Exception as error:  # noqa: BLE001  a probe that fails is a row, not the end of a check
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}
