"""What a child has of its server: a pipe for its result, one on which it announces that it waits, and one for its plan."""

import json
import os
import signal
import sys
import threading
import time

from . import procfs, protocol

FIRST, CALLED, BUILT, WARM, TURN, TIMED = "first", "called", "built", "warm", "turn", "timed"
"""Why a child waits: it makes the first call of its program next; it has made it, and verifies what it computes next; it
warms up next; it has warmed up, and takes turns by the plan that it will get; it takes samples next; all its samples are
taken."""
STAGES = {b"f": FIRST, b"c": CALLED, b"b": BUILT, b"w": WARM, b"t": TURN, b"d": TIMED}
ANNOUNCED_BYTES = 256  # of an announcement: a key of STAGES and, with WARM, what the child found
PLAN_BYTES = 4096  # what a pipe takes at once, so that neither end waits for the other
PLAIN, FORK = "plain", "fork"
"""How a process that times a cell comes to be: as a fresh interpreter, or as a copy of its server."""


class ServerLink(object):
    """The child's ends of three pipes; called with a stage, it returns when it is the child's turn."""

    def __init__(self, result: "int", turns: "int", plan: "int", token: "str") -> "None":
        """Take the descriptors to write the result and the stages to, that to read the plan from, and the result's token."""
        self.result, self.turns, self.plan, self.token = result, turns, plan, token
        self.waited = 0.0  # seconds in which this process was stopped

    def __call__(self, stage: "str" = TURN) -> "None":
        """Announce that this process waits, and at which stage; stop all its threads until it is continued.

        A thread pool that spins while it waits for work would disturb the process whose turn it is.
        """
        self.stop(stage, b"")

    def agree(self, pace: "dict") -> "dict":
        """Stop at WARM, report the pace of this process (``turn_plan.pace``), and return the plan of its turns."""
        self.stop(WARM, json.dumps(pace, sort_keys=True).encode("ascii"))
        return json.loads(os.read(self.plan, PLAN_BYTES).decode("ascii"))

    def stop(self, stage: "str", more: "bytes") -> "None":
        """Announce a stage with what follows it, and stop until this process is continued."""
        os.write(self.turns, next(code for code in STAGES if STAGES[code] == stage) + more)
        begin = time.perf_counter()
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # sent to itself, it stops before the call returns
        self.waited += time.perf_counter() - begin

    def send(self, message: "dict") -> "None":
        """Send the result of the child, a dict with ``status``."""
        remaining = protocol.encode(dict(message, swapped_bytes=procfs.swapped_bytes(), token=self.token))
        sys.stdout.flush()
        sys.stderr.flush()
        while remaining:
            remaining = remaining[os.write(self.result, remaining) :]

    def kept_open(self) -> "dict":
        """Keep the pipes open for the program that this process executes; return the arguments of its link."""
        pipes = {"result": self.result, "turns": self.turns, "plan": self.plan}
        for descriptor in pipes.values():
            os.set_inheritable(descriptor, True)
        return dict(pipes, token=self.token)
