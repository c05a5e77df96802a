"""Units of time and size, chosen here and nowhere else: seconds and bytes become text, and text becomes seconds."""

import re

from runner.core.errors import Problem, UsageError


def duration(seconds: float) -> str:
    """Return seconds as a person says them.

    >>> duration(9.2), duration(75), duration(7260)
    ('9 s', '1 min 15 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def size(count: float) -> str:
    """Return bytes as a person says them.

    >>> size(592e6), size(1.93e9)
    ('592 MB', '1.9 GB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def seconds(text: str) -> float:
    """Return a length of time in seconds: a number and s, m or h.

    Raises:
        UsageError: it cannot be read, or is nothing.

    >>> seconds("90s"), seconds("30m"), seconds("1.5h")
    (90.0, 1800.0, 5400.0)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(s|m|min|h)", text.strip())
    length = float(found[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600}[found[2]] if found else 0.0
    if not length:
        raise UsageError(Problem(f"cannot read {text!r} as a length of time", hint="write 90s, 30m or 8h"))
    return length
