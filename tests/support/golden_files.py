"""Texts that are kept as files: ``UPDATE_GOLDEN=1 pytest FILE`` writes them anew, and ``git diff`` shows the change."""

import os
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
RUN = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{4}\b")


def check(name: str, text: str) -> None:
    """Compare a text with a kept file; ids of runs, which end in random digits, do not count."""
    path, shown = FOLDER / name, RUN.sub("20261120-104500-ab12", text)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(shown, "utf-8")
    assert shown == path.read_text("utf-8")
