"""``runner doctor`` and ``runner tune``: every finding is a row."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from benchmarks.first_day.rows import Row
from benchmarks.first_day.settings import MATRIX, ROOT, Settings

SUBJECT = "runner doctor"
SECONDS = 120.0


def rows(settings: Settings) -> Iterator[Row]:
    """Yield what doctor and tune find, and whether they find the GPU."""
    document = _document(settings, "doctor", *settings.selectors, "--matrix", str(MATRIX))
    gpus = document["machine"]["gpus"]
    held = bool(gpus)
    detail = ", ".join(gpu["name"] for gpu in gpus) or "it names no GPU"
    yield Row("doctor finds the GPU", "held" if held else "did not hold", detail, {"gpus": gpus})
    for finding in document["findings"]:
        detail = finding["found"] + (f" (fix: {finding['fix']})" if finding["fix"] else "")
        yield Row(f"doctor: {finding['what']}", "read", detail, {"state": finding["state"]})
    for source in _document(settings, "tune")["sources"]:
        yield Row(f"tune: {source['what']}", "read", str(source["found"]), {"state": source["state"]})


def _document(settings: Settings, name: str, *words: str) -> dict[str, Any]:
    command = settings.command(name, None, *words, "--format", "json")
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=SECONDS, check=False)
    print(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    return document
