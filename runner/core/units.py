"""The units in which numbers are shown: times, memory, disk space and rates.

Inside the program a time is in seconds and a size in bytes; these functions turn both into text. The conventions are:

- time of a step: s, ms, µs or ns, with three digits; times that are shown together share a unit (``time_unit``)
- time that a person waits: ``9 s``, ``1 min 15 s``, ``2 h 01 min``
- memory: binary units, ``12 MiB``, ``8.0 GiB``
- downloads and disk: decimal units, ``592 MB``, ``1.9 GB``, as package indexes and ``df -H`` give them
- rates: decimal prefixes, ``33.4 TFLOP/s``, ``78.7 GB/s``

Three choices are made elsewhere. The unit in which the figures of a workload are published, ``µs/example`` or
``words/s``, is the ``UNIT`` of its module in ``runner/catalog/cases``. That of a fact is the end of its
name, such as ``_bytes``, which is memory. The harness, which imports nothing of the runner, writes the GiB of its
messages itself.
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from runner.core.errors import Problem, UsageError


class TimeUnit(NamedTuple):
    """A unit of time, or of another metric: the factor from seconds, bytes, joules or instructions, and its name."""

    scale: float
    name: str


SECONDS, MILLISECONDS = TimeUnit(1.0, "s"), TimeUnit(1e3, "ms")
MAX_SECONDS = 1e8
"""The longest time that a matrix or an option may state: three years. Sums over every cell stay finite."""
MAX_COUNT = 1_000_000
"""The largest number of rounds, warm-ups or threads that a matrix or an option may state."""
TIME_UNITS = (SECONDS, MILLISECONDS, TimeUnit(1e6, "µs"), TimeUnit(1e9, "ns"))

MEMORY_UNITS = (TimeUnit(2.0**-30, "GiB"), TimeUnit(2.0**-20, "MiB"), TimeUnit(2.0**-10, "KiB"))
DISK_UNITS = (TimeUnit(1e-9, "GB"), TimeUnit(1e-6, "MB"), TimeUnit(1e-3, "kB"))
COUNT_UNITS = (TimeUnit(1e-9, "billion"), TimeUnit(1e-6, "million"), TimeUnit(1e-3, "thousand"))
BYTES, JOULES, INSTRUCTIONS = TimeUnit(1.0, "bytes"), TimeUnit(1.0, "J"), TimeUnit(1.0, "instructions")


def time_unit(seconds: Iterable[float | None]) -> TimeUnit:
    """Return the unit in which the smallest of some times is at least 1; seconds if there are no times."""
    smallest = min((value for value in seconds if value), default=1.0)
    return next((unit for unit in TIME_UNITS if smallest * unit.scale >= 1), TIME_UNITS[-1])


def digits(value: float) -> str:
    """Return a number above 0 with three digits, and with all digits before the point.

    >>> digits(0.0123), digits(1.23), digits(1234)
    ('0.0123', '1.23', '1234')
    """
    text = f"{value:#.3g}"
    return f"{value:.0f}" if "e" in text and value >= 1 else text.rstrip(".")


def step_time(seconds: float, unit: TimeUnit | None = None) -> str:
    """Return the time of a step, in its own unit or in one that it shares with others.

    >>> step_time(0.00123), step_time(2.0, TimeUnit(1e3, "ms"))
    ('1.23 ms', '2000 ms')
    """
    chosen = unit or time_unit([seconds])
    return f"{digits(seconds * chosen.scale)} {chosen.name}"


def duration(seconds: float) -> str:
    """Return a time that a person waits, to the second or the minute.

    >>> duration(9.2), duration(75), duration(7260)
    ('9 s', '1 min 15 s', '2 h 01 min')
    """
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60:02} s"
    return f"{total // 3600} h {total % 3600 // 60:02} min"


def long_duration(seconds: float) -> str:
    """Return the time of something that nobody waits for: days from two of them on, and weeks from two of them on.

    >>> long_duration(7260), long_duration(9 * 86400), long_duration(32.2 * 7 * 86400)
    ('2 h 01 min', '9 days', '32 weeks')
    """
    days = seconds / 86400
    if days < 2:
        return duration(seconds)
    return f"{days:.0f} days" if days < 14 else f"{days / 7:.0f} weeks"


def parse_duration(text: str) -> float:
    """Return the seconds of a duration: numbers of h, m or min, and s, each unit once and the largest first.

    Raises:
        UsageError: the text is no duration, or 0, or too long for a number.

    >>> parse_duration("90s"), parse_duration("1.5h"), parse_duration("4m30s"), parse_duration("2 h 01 min")
    (90.0, 5400.0, 270.0, 7260.0)
    """
    number = r"([0-9]+(?:\.[0-9]+)?)"
    match = re.fullmatch(rf"(?:{number} ?h)? ?(?:{number} ?m(?:in)?)? ?(?:{number} ?s)?", text.strip())
    numbers = match.groups() if match else ()
    seconds = sum(float(each or 0) * scale for each, scale in zip(numbers, (3600, 60, 1), strict=False))
    if not 0 < seconds < math.inf:
        hint = "write 90s, 30m, 4m30s or 8h"
        raise UsageError(Problem(f"cannot read {text!r:.100} as a duration above 0", hint=hint))
    return seconds


def percent(share: float) -> str:
    """Return a share in per cent, with two digits below 10 %.

    >>> percent(0.0123), percent(0.24), percent(1.5)
    ('1.2 %', '24 %', '150 %')
    """
    return f"{100 * share:.{1 if abs(share) < 0.0995 else 0}f} %"


def memory(byte_count: float) -> str:
    """Return an amount of memory in GiB, or in MiB below 1 GiB; below 100 GiB with one decimal.

    >>> memory(12 << 20), memory(8 << 30), memory(141 << 30)
    ('12 MiB', '8.0 GiB', '141 GiB')
    """
    gib = byte_count / (1 << 30)
    return f"{byte_count / (1 << 20):.0f} MiB" if gib < 1 else f"{gib:.{0 if gib >= 100 else 1}f} GiB"


def disk_size(byte_count: float) -> str:
    """Return the size of a download, or of files on a disk.

    >>> disk_size(592e6), disk_size(1.93e9)
    ('592 MB', '1.9 GB')
    """
    return f"{byte_count / 1e9:.1f} GB" if byte_count >= 1e9 else f"{byte_count / 1e6:.0f} MB"


def amount(value: float, unit: str, *, on_disk: bool = False) -> str:
    """Return a value of a metric with three digits: seconds, bytes of memory or on a disk, joules, or instructions.

    >>> amount(0.0123, "seconds"), amount(12.3 * 2**20, "bytes"), amount(1.5, "joules")
    ('12.3 ms', '12.3 MiB', '1.50 J')
    >>> amount(2.5e9, "bytes", on_disk=True), amount(40, "bytes"), amount(12.3e6, "instructions")
    ('2.50 GB', '40 bytes', '12.3 million')
    """
    chosen = amount_unit([value], unit, on_disk=on_disk)
    return f"{value:.0f} {chosen.name}" if chosen in (BYTES, INSTRUCTIONS) else step_time(value, chosen)


def amount_unit(values: Iterable[float], unit: str, *, on_disk: bool = False) -> TimeUnit:
    """Return the unit in which the smallest of some values of a metric is at least 1.

    Args:
        values: above 0, at least one.
        unit: of the metric: ``seconds``, ``bytes``, ``joules`` or ``instructions``.
        on_disk: whether bytes are sizes of files.
    """
    if unit == "seconds":
        return time_unit(values)
    if unit == "joules":
        return JOULES
    smallest = min(values)
    prefixes, single = (COUNT_UNITS, INSTRUCTIONS) if unit == "instructions" else (MEMORY_UNITS, BYTES)
    return next((each for each in (DISK_UNITS if on_disk else prefixes) if smallest * each.scale >= 1), single)


def rate(per_second: float, unit: str) -> str:
    """Return a rate with a prefix: T from 10^12 on, else G.

    Args:
        per_second: how many in a second, above 0.
        unit: what is counted, ``FLOP``, ``OP`` or ``B``.

    >>> rate(66.9e12, "FLOP"), rate(1.5e9, "FLOP"), rate(1979e12, "OP"), rate(78.7e9, "B")
    ('66.9 TFLOP/s', '1.50 GFLOP/s', '1979 TOP/s', '78.7 GB/s')
    """
    scale, prefix = (1e12, "T") if per_second >= 1e12 else (1e9, "G")
    return f"{digits(per_second / scale)} {prefix}{unit}/s"
