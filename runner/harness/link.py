"""What a child has of its server: the pipe for its result, and the one on which it announces that it waits for its turn."""

import os
import signal
import sys
import threading

from . import procfs, protocol

BUILT, TURN, TIMED = "built", "turn", "timed"
"""Why a child waits: it has built its program and warms up next; it takes samples next; all its samples are taken."""
STAGES = {b"b": BUILT, b"t": TURN, b"d": TIMED}
PLAIN, FORK = "plain", "fork"
"""How a process that times a cell comes to be: as a fresh interpreter, or as a copy of its server."""


class ServerLink(object):
    """The child's ends of two pipes; called with a stage, it returns when it is the child's turn."""

    def __init__(self, result: "int", turns: "int", token: "str") -> "None":
        """Take the descriptors to write to, and the token that the result has to carry."""
        self.result, self.turns, self.token = result, turns, token

    def __call__(self, stage: "str" = TURN) -> "None":
        """Announce that this process waits, and at which stage; stop all its threads until it is continued.

        A thread pool that spins while it waits for work would disturb the process whose turn it is.
        """
        os.write(self.turns, next(code for code in STAGES if STAGES[code] == stage))
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # sent to itself, it stops before the call returns

    def send(self, message: "dict") -> "None":
        """Send the result of the child, a dict with ``status``."""
        remaining = protocol.encode(dict(message, swapped_bytes=procfs.swapped_bytes(), token=self.token))
        sys.stdout.flush()
        sys.stderr.flush()
        while remaining:
            remaining = remaining[os.write(self.result, remaining) :]

    def kept_open(self) -> "dict":
        """Keep the pipes open for the program that this process executes; return the arguments of its link."""
        for descriptor in (self.result, self.turns):
            os.set_inheritable(descriptor, True)
        return {"result": self.result, "turns": self.turns, "token": self.token}
