"""What an input may cost: an error for people at most, 2 s of computing, and 500 MB."""

import re
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from runner.core.errors import RunnerError

ROOT = Path(__file__).parents[2]
SECONDS = 2.0
"""Of the processor; an input that waits longer than WAIT_SECONDS hangs."""
WAIT_SECONDS = 20.0
BYTES = 500 * 10**6


class BrokenPropertyError(AssertionError):
    """A target found that something which has to hold does not."""


class _TooSlowError(BaseException):  # no handler of the program may catch it
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """What an input broke.

    Attributes:
        where: ``file:line: function`` of the innermost frame in the program.
        what: the class of the exception, ``slow``, ``hang`` or ``memory``.
        message: what the exception says, its start.
        traceback: as Python prints it, its end.
    """

    where: str
    what: str
    message: str
    traceback: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What makes two breakages the same: place and kind."""
        return self.where, self.what


@dataclass(frozen=True, slots=True)
class Trial:
    """How an input ended: with a result, with an error for people (``rejected``), or broken."""

    seconds: float
    rejected: bool
    broken: Broken | None = None


def attempt(target: Callable[[Any], object], value: Any) -> Trial:
    """Give an input to a target, and return how it ended."""
    before = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, WAIT_SECONDS)
    size, begin, rejected = reset_peak(), time.process_time(), False
    broken: Broken | None = None
    try:
        with warnings.catch_warnings(action="ignore"):  # about damage, and NumPy's of times such as 1e308 s
            target(value)
    except RunnerError:
        rejected = True
    except _TooSlowError as error:
        broken = describe(error, "hang")
    except Exception as error:  # noqa: BLE001  that is what is looked for
        broken = describe(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    seconds = time.process_time() - begin
    if broken is None and seconds > SECONDS:
        broken = Broken(where=f"{getattr(target, '__name__', target)}", what="slow", message=f"{seconds:.1f} s")
    if broken is None and (growth := peak_bytes() - size) > BYTES:
        broken = Broken(where=f"{getattr(target, '__name__', target)}", what="memory", message=f"{growth:,} B")
    return Trial(seconds, rejected, broken)


def reset_peak() -> int:
    """Make the present resident size of this process its largest one, and return it; see proc(5), ``clear_refs``."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    """Return the largest resident size of this process since the last ``reset_peak``."""
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    return int(peak[1]) * 1024


def describe(error: BaseException, what: str = "") -> Broken:
    """Return an exception as something that broke."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/runner/" in frame.filename] or list(frames)
    last = ours[-1]
    name = last.filename.rpartition("/runner/")[2] if "/runner/" in last.filename else Path(last.filename).name
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return Broken(
        where=f"{name}:{last.lineno}: {last.name}",
        what=what or type(error).__name__,
        message=str(error)[:300],
        traceback="".join(lines)[-3000:],
    )


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise _TooSlowError
