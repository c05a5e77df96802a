"""The memory of a process that times a cell: its peaks while it builds, in its first call and in later ones.

A forked child shares most of its memory with its server, which has imported the framework, and a plain process has imported
it too. Only what a process has beyond that is memory of its cell. The kernel keeps the peak of the resident memory, and
starts anew when asked to (proc(5), ``clear_refs``, since Linux 4.0). Pages of files are left out: they are code of the
framework, which each child maps when it first runs it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STATUS = "/proc/self/status"
CLEAR = "/proc/self/clear_refs"
RESET_PEAK = "5"  # proc(5): the peak becomes the present resident memory; no page is touched
FIELDS = ("VmHWM", "RssAnon", "RssFile", "RssShmem")  # the last three since Linux 4.5
BUILD, FIRST_CALL, STEPS = "build_peak_bytes", "first_call_peak_bytes", "step_peak_bytes"
"""Facts: the peaks while the program is built, in its first call, and in the warm-up and the samples."""


class OwnMemory(object):
    """The peaks of this process above what it has when this object is made; read outside of timed calls."""

    def __init__(self) -> "None":
        """Read how much memory the process has now, which does not count as memory of the cell."""
        self.peaks = {}
        fields = resident()
        self.known = fields is not None and reset_peak()
        self.before = fields["RssAnon"] + fields["RssShmem"] if fields is not None else 0

    def begin(self) -> "None":
        """Begin a stage: the peak so far no longer counts."""
        self.known = self.known and reset_peak()

    def end(self, stage: "str") -> "None":
        """End a stage, which has the name of a fact; the next one begins."""
        fields = resident() if self.known else None
        if fields is not None:
            self.peaks[stage] = max(0, fields["VmHWM"] - fields["RssFile"] - self.before)
        self.begin()

    def facts(self) -> "dict":
        """Return the peak of each stage in bytes; empty if the kernel does not report it."""
        return dict(self.peaks) if self.known else {}


def resident() -> "Any":
    """Return field of FIELDS -> bytes; None if the kernel does not report all of them."""
    try:
        with open(STATUS, encoding="utf-8", errors="replace") as handle:
            lines = [line.split() for line in handle if line.startswith(FIELDS)]
        fields = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}
    except (OSError, ValueError, IndexError):
        return None
    return fields if len(fields) == len(FIELDS) else None


def reset_peak() -> "bool":
    """Have the kernel start the peak of this process anew; return whether it did."""
    try:
        with open(CLEAR, "w", encoding="ascii") as handle:
            handle.write(RESET_PEAK)
    except OSError:
        return False
    return True
