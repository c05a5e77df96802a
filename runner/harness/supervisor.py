"""Runs one forked child: reads its result and its output through pipes, gives it turns, and classifies its end."""

import ctypes
import os
import select
import signal
import sys
import threading
import time
import traceback

from . import procfs, protocol

LOG_BYTES = 64 * 1024
POLL = 0.1  # seconds between two looks at a child
POLL_ENDING = 0.001  # the same where its end or its stop is a moment away
HEARTBEAT = 1.0
READ_BYTES = 1 << 20
PR_SET_PDEATHSIG = 1  # linux/prctl.h
CLD_STOPPED = 5  # asm-generic/siginfo.h; Python has it since 3.9

RUNNING = "running"
WAITING = "waiting for its turn"  # announced by the child; the kernel stops it a moment later
REAPED = "reaped"

BUILT, TURN, TIMED = "built", "turn", "timed"
"""Why a child waits: it has built its program and warms up next; it takes samples next; all its samples are taken."""
STAGES = {b"b": BUILT, b"t": TURN, b"d": TIMED}


class Pipe(object):
    """A pipe from the child, and what has been read from it."""

    def __init__(self) -> "None":
        """Open both ends."""
        self.reader, self.writer = os.pipe()
        self.parts = []
        self.closed = False  # the child has closed its end

    def read(self) -> "None":
        """Keep the next bytes; blocks where there are none."""
        part = os.read(self.reader, READ_BYTES)
        if part:
            self.parts.append(part)
        else:
            self.closed = True

    def has_line(self) -> "bool":
        """Return whether a complete line has arrived."""
        return bool(self.parts) and self.parts[-1][-1:] == b"\n"

    def text(self) -> "bytes":
        """Return everything that has been read."""
        return b"".join(self.parts)


class ChildSupervisor(object):
    """A child, its pipes, and its ``state``: RUNNING, WAITING or REAPED."""

    def __init__(self, work: "object", private: "int", source: "object"):
        """Fork; the child runs ``work`` and sends what it returns.

        Args:
            work: called in the child with a function that takes a stage and returns when it is the child's turn; returns
                a dict for JSON.
            private: the server's reply descriptor, which the child must not hold.
            source: the server's stdin; when it ends while the child runs, so does the server.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        self.libc = ctypes.CDLL(None)
        server = os.getpid()
        self.source = source
        self.kills = procfs.out_of_memory_kills()
        self.result, self.log, self.turns = pipes = Pipe(), Pipe(), Pipe()
        self.state = RUNNING
        self.stage = TURN
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for descriptor in [private] + [pipe.reader for pipe in pipes]:
                    os.close(descriptor)
                self.libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))  # a child never outlives its server
                if os.getppid() == server:
                    run_child(
                        lambda: work(lambda stage=TURN: wait_for_turn(self.turns.writer, stage)),
                        self.result.writer,
                        self.log.writer,
                    )
            finally:
                os._exit(1)
        for pipe in pipes:
            os.close(pipe.writer)
        try:
            os.setpgid(self.pid, self.pid)
        except OSError:
            pass  # the child was faster

    def wait_for_result(self, timeout: "float", memory: "object", beat: "object", turn: "object") -> "dict":
        """Return the child's message, or a failure with its class; kill a child that exceeds its limits.

        Args:
            timeout: seconds, above 0; those in which it waits for its turn do not count.
            memory: resident bytes at which the child is killed, or None where a container sets the limit.
            beat: called about every HEARTBEAT seconds.
            turn: called with the stage when the child waits for its turn; returns when it may continue.
        """
        start = last_beat = time.monotonic()
        failure = code = message = None
        while code is None and message is None:
            self.read_pipes(POLL_ENDING if self.is_ending() or self.state == WAITING else POLL)
            now = time.monotonic()
            if now - last_beat >= HEARTBEAT:
                beat()
                last_beat = now
            if self.is_stopped():
                self.give_turn(turn)
                last_beat, start = time.monotonic(), start + time.monotonic() - now
            message = self.message()
            if message is None:
                failure = self.exceeded_limit(now - start, timeout, memory)
                code = self.exit_code(kill=failure is not None)
        if self.state != REAPED:
            self.kill()  # processes that the child started must not outlive its answer
        while self.read_pipes(0):
            pass
        for pipe in (self.result, self.log, self.turns):
            os.close(pipe.reader)
        log = self.log.text()[-LOG_BYTES:].decode("utf-8", "replace")
        return dict(message or self.message() or failure or self.failure_of_exit(code, log), log=log)

    def is_stopped(self) -> "bool":
        """Return whether the child has announced that it waits for its turn, and the kernel has stopped all its threads."""
        if select.select([self.turns.reader], [], [], 0)[0]:
            announced = os.read(self.turns.reader, 1)
            if announced:
                self.state, self.stage = WAITING, STAGES[announced]
        if self.state != WAITING:
            return False
        status = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        return status is not None and status.si_code == CLD_STOPPED

    def give_turn(self, turn: "object") -> "None":
        """Let the child continue once ``turn`` returns; if that raises, kill the child and all that it started."""
        try:
            turn(self.stage)
        except BaseException:
            self.kill()
            raise
        self.state = RUNNING
        os.kill(self.pid, signal.SIGCONT)

    def exit_code(self, kill: "bool") -> "object":
        """Return the child's exit code, minus the signal that killed it; None while it runs, or where it was returned before.

        ``kill`` ends it first.
        """
        if self.state == REAPED:
            return None
        if kill:
            self.kill()
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | (0 if kill else os.WNOHANG)) is None:
            return None
        self.kill()  # what it started; its process number is not used again before ``waitpid``
        _, status = os.waitpid(self.pid, 0)
        self.state = REAPED
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def reap(self) -> "None":
        """Kill the child if it still runs, and wait until it and its memory are gone."""
        self.exit_code(kill=True)

    def is_ending(self) -> "bool":
        """Return whether the result is complete or its pipe is closed: the child exits in a moment."""
        return self.result.closed or self.result.has_line()

    def read_pipes(self, seconds: "float") -> "bool":
        """Read what the child wrote, waiting up to ``seconds``; return whether there was anything.

        Raises:
            BrokenPipeError: the server's stdin has ended; the child is killed.
        """
        pipes = {pipe.reader: pipe for pipe in (self.result, self.log) if not pipe.closed}
        turns = [self.turns.reader] if pipes else []  # ends the wait; ``is_stopped`` reads it
        stdin = [self.source.fileno()] if hasattr(self.source, "fileno") else []
        ready, _, _ = select.select(list(pipes) + turns + stdin, [], [], seconds)
        for descriptor in ready:
            if descriptor in pipes:
                pipes[descriptor].read()
            elif descriptor in stdin:
                if not self.source.peek(1):
                    self.kill()
                    raise BrokenPipeError  # the runner has ended
                time.sleep(seconds)  # an early request waits until this one is answered
        return any(descriptor in pipes for descriptor in ready)

    def exceeded_limit(self, seconds: "float", timeout: "float", memory: "object") -> "object":
        """Return a failure if the child has exceeded its time or its memory, else None."""
        if seconds > timeout:
            return {"status": "failed", "class": "timeout", "reason": "not finished after {:g} s".format(timeout)}
        if memory and procfs.resident_bytes(self.pid) > memory:
            reason = "used more than its limit of {:.1f} GiB of memory".format(memory / 2.0 ** 30)
            return {"status": "failed", "class": "oom", "reason": reason}
        return None

    def message(self) -> "object":
        """Return the dict that the child sent; None while it is missing or incomplete."""
        if not self.result.has_line():
            return None
        try:
            return protocol.decode(self.result.text())
        except (ValueError, UnicodeDecodeError):
            return None

    def failure_of_exit(self, code: "int", log: "str") -> "dict":
        """Return the failure of a child that ended without a result."""
        last_line = (log.strip().splitlines() or ["it printed nothing"])[-1][:300]
        if code == -signal.SIGKILL and procfs.out_of_memory_kills() > self.kills:
            return {"status": "failed", "class": "oom", "reason": "the kernel killed the process: out of memory"}
        if code < 0:
            reason = "killed by signal {}; last words: {}".format(signal.Signals(-code).name, last_line)
        else:
            reason = "exit {} without a result; last words: {}".format(code, last_line)
        return {"status": "failed", "class": "crash", "reason": reason}

    def kill(self) -> "None":
        """Kill the child and all that it started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass


def run_child(work: "object", result: "int", log: "int") -> "None":
    """Run ``work`` in the child, in a process group of its own, without stdin and with its output in ``log``; never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        procfs.become_first_oom_victim()
        remaining = protocol.encode(dict(work(), swapped_bytes=procfs.swapped_bytes()))
        sys.stdout.flush()
        sys.stderr.flush()
        while remaining:
            remaining = remaining[os.write(result, remaining) :]
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def wait_for_turn(turns: "int", stage: "str") -> "None":
    """Announce on ``turns`` that this process waits, and at which stage; stop all its threads until it is continued.

    A thread pool that spins while it waits for work would disturb the process whose turn it is.
    """
    os.write(turns, next(code for code in STAGES if STAGES[code] == stage))
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # sent to itself, it stops before the call returns
