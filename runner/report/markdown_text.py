"""Parts of a GitHub Markdown page: escaped text, tables, lists and folded sections."""

import re
from collections.abc import Iterable, Sequence

from runner.core.text import printable


class Raw(str):
    """Text that is Markdown already."""

    __slots__ = ()


def plain(value: str) -> str:
    """Return text with Markdown's special characters escaped, in one line that can be seen; ``Raw`` text as it is."""
    if isinstance(value, Raw):
        return value
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|~!" else letter for letter in printable(value))


def bold(value: str) -> Raw:
    """Return text in bold."""
    return Raw(f"**{plain(value)}**")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its head and its cells are text unless they are ``Raw``."""
    lines = [" | ".join(map(plain, head)), " | ".join("---" for _ in head)]
    lines += [" | ".join(plain(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def bullets(items: Iterable[str]) -> str:
    """Return a list; its items are text unless they are ``Raw``."""
    return "\n".join(f"- {plain(item)}" for item in items)


def folded(summary: str, parts: Iterable[str]) -> str:
    """Return parts of a page in a section that a reader opens."""
    return "\n\n".join([f"<details><summary>{plain(summary)}</summary>", *parts, "</details>"])


def fenced(text: str, language: str = "") -> str:
    """Return text as a block of code, behind more backticks than the text has in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{printable(text.rstrip(), multiline=True)}\n{fence}"
