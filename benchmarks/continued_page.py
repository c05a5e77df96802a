"""Pages that a benchmark continues: a table line for each thing that was measured, which is not measured again."""

import re
from pathlib import Path

SMALLEST_FREE = 25 << 30
"""Bytes of disk that stay free; nothing further is built with less."""


def known(path: Path, pattern: str) -> dict[str, str]:
    """Return first cell -> its line, for the table lines of a page whose first cell matches a pattern."""
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    line_pattern = re.compile(rf"\| ({pattern}) \|.*\|")
    return {match[1]: line for line in lines if (match := line_pattern.fullmatch(line))}


def cells(line: str) -> list[str]:
    """Return the cells of a table line; an escaped bar within a cell does not divide it."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
