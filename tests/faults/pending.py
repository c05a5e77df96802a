"""Faults that the program does not survive yet: id -> the part that has to change, and what happens today.

Each fails its test for certain, except those in ``SOMETIMES``. Whoever mends one takes its line away.
"""

from tests.faults.signals import OTHER_STAGES, STAGES, signals

SIGNALS = tuple(fault.id for fault in signals({**STAGES, **OTHER_STAGES}))
PENDING: dict[str, str] = {
    **{name: "console: SIGHUP ends the program at once, without a word" for name in SIGNALS if "sighup" in name},
    **{
        name: "console: a second signal can end the interpreter while it ends by itself"
        for name in SIGNALS
        if "twice" in name and "sighup" not in name
    },
    "stderr-reader-gone": "console: the run ends with exit 1, without a word",
    "stderr-closed": "console: exit 70",
    "stdout-full": "console: exit 70",
    "stdout-closed": "console: exit 1 and a traceback, after the run is complete",
    "disk-full-folder": "console: exit 70",
    "inodes-full-folder": "console: exit 70",
    "disk-full-report": "console: exit 70",
    "disk-full-cache": "console: the message blames the reports folder",
    "foreign-run": "store: exit 70",
    "server-no-status": "wire: exit 70",
    "server-facts": "wire: exit 70",
    "server-size": "wire: exit 70",
    "server-seconds": "wire: exit 70",
    "server-compile": "wire: exit 70",
    "server-escapes": "console: escape sequences reach the terminal",
    "child-raise": "console: 5 MB and escape sequences reach the terminal",
    "child-setsid": "children: the process outlives the run",
    "piece-lock-folder": "store: exit 70",
}
SOMETIMES = tuple(name for name in SIGNALS if "twice" in name and "sighup" not in name)
