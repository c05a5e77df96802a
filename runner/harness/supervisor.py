"""One forked child, watched: its result comes down a private pipe, its chatter down another, its end has a class."""

import ctypes
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback

from . import protocol

LOG_BYTES = 64 * 1024
POLL = 0.1
HEARTBEAT = 1.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h
CLD_STOPPED = 5  # asm-generic/siginfo.h; Python has it since 3.9
COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control", "/proc/vmstat")


class Watch(object):
    """A child at work."""

    def __init__(self, work: "object", private: "int", source: "object"):
        """Fork; the child runs ``work`` and sends what it returns.

        Args:
            work: called in the child with a function that returns when it is the child's turn; returns a dict for JSON.
            private: the server's reply descriptor, which the child must not hold.
            source: the server's stdin; when it ends while the child works, so does the server.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        self.libc = ctypes.CDLL(None)
        server = os.getpid()
        self.source = source
        self.kills = out_of_memory_kills()
        self.result, result = os.pipe()
        self.log, log = os.pipe()
        self.turns, turns = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for end in (private, self.result, self.log, self.turns):
                    os.close(end)
                self.libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))  # a child never outlives its server
                if os.getppid() == server:
                    child(lambda: work(lambda: stand_still(turns)), result, log)
            finally:
                os._exit(1)
        os.close(result)
        os.close(log)
        os.close(turns)
        try:
            os.setpgid(self.pid, self.pid)
        except OSError:
            pass  # the child was faster
        self.parts = {self.result: [], self.log: []}
        self.reaped = self.asks = False

    def follow(self, timeout: "float", memory: "object", beat: "object", turn: "object") -> "dict":
        """Return the child's message, or a failure with its class; kills what outlives ``timeout`` seconds.

        Args:
            timeout: seconds, above 0; those in which it waits for its turn do not count.
            memory: resident bytes at which the child is ended, or None where a container sets the limit.
            beat: called about every HEARTBEAT seconds.
            turn: called when the child waits for its turn; returns when it may go on.
        """
        start = last = time.monotonic()
        verdict = code = message = None
        while code is None and message is None:
            self.drain(0.001 if self.done() or self.asks else POLL)
            now = time.monotonic()
            if now - last >= HEARTBEAT:
                beat()
                last = now
            if self.stands_still():
                self.give(turn)
                last, start = time.monotonic(), start + time.monotonic() - now
            message = self.message()
            if message is None:
                verdict = self.overrun(now - start, timeout, memory)
                code = self.ended(wait=verdict is not None)
        if not self.reaped:
            self.kill()  # whoever has answered leaves nobody behind
        while self.drain(0):
            pass
        os.close(self.result)
        os.close(self.log)
        os.close(self.turns)
        log = b"".join(self.parts[self.log])[-LOG_BYTES:].decode("utf-8", "replace")
        found = message or self.message() or verdict or self.ending(code, log)
        return dict(found, log=log)

    def stands_still(self) -> "bool":
        """Say whether the child waits for its turn: it has said so, and the kernel has stopped it, all its threads."""
        if select.select([self.turns], [], [], 0)[0]:
            self.asks = bool(os.read(self.turns, 1)) or self.asks
        if not self.asks:
            return False
        found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        return found is not None and found.si_code == CLD_STOPPED

    def give(self, turn: "object") -> "None":
        """Let the child go on once ``turn`` returns; where that raises, end it with all that it started."""
        try:
            turn()
        except BaseException:
            self.kill()
            raise
        self.asks = False
        os.kill(self.pid, signal.SIGCONT)

    def ended(self, wait: "bool") -> "object":
        """Return the child's exit code, minus the signal that killed it, or None while it runs; ``wait`` kills it."""
        if self.reaped:
            return None
        if wait:
            self.kill()
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG)) is None:
            return None
        self.kill()  # what it started; until it is waited for, nobody else can be given its number
        _, status = os.waitpid(self.pid, 0)
        self.reaped = True
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def reap(self) -> "None":
        """Wait until the child and its memory are gone."""
        self.ended(wait=True)

    def done(self) -> "bool":
        """Say whether the result has arrived whole, or both pipes have ended: the child's exit is a moment away."""
        ended = [bool(parts) and parts[-1] == b"" for parts in self.parts.values()]
        result = self.parts[self.result]
        return all(ended) or (bool(result) and result[-1][-1:] in (b"\n", b""))

    def drain(self, seconds: "float") -> "bool":
        """Read what the child wrote, waiting up to ``seconds``; say whether there was anything."""
        watched = [end for end in (self.result, self.log) if self.parts.get(end) is not None]
        watched = [end for end in watched if not self.parts[end] or self.parts[end][-1] != b""]
        turns = [self.turns] if watched else []  # looked at by whoever asks
        stdin = [self.source.fileno()] if hasattr(self.source, "fileno") else []
        ready, _, _ = select.select(watched + turns + stdin, [], [], seconds)
        if not watched and not ready:
            return False
        for end in ready:
            if end in turns:
                continue
            if end in stdin:
                if not self.source.peek(1):
                    self.kill()
                    raise BrokenPipeError  # nobody is left to answer
                time.sleep(seconds)  # a request that came early waits its turn
                continue
            self.parts[end].append(os.read(end, 1 << 20))
        return any(end in ready for end in watched)

    def overrun(self, seconds: "float", timeout: "float", memory: "object") -> "object":
        """Return a failure where the child has used up its time or its memory, else None."""
        from .server import resident

        if seconds > timeout:
            return {"status": "failed", "class": "timeout", "reason": "no end within {:g} s".format(timeout)}
        if memory and resident(self.pid) > memory:
            reason = "it took more than the {:.1f} GiB it may have".format(memory / 2.0 ** 30)
            return {"status": "failed", "class": "oom", "reason": reason}
        return None

    def message(self) -> "object":
        """Return the dict the child sent; None while it is missing or cut short."""
        parts = self.parts[self.result]
        if not any(parts) or b"".join(parts[-2:])[-1:] != b"\n":
            return None
        try:
            return protocol.decode(b"".join(parts))
        except (ValueError, UnicodeDecodeError):
            return None

    def ending(self, code: "int", log: "str") -> "dict":
        """Return the class of an end without a result."""
        last = (log.strip().splitlines() or ["it printed nothing"])[-1][:300]
        if code == -signal.SIGKILL and out_of_memory_kills() > self.kills:
            return {"status": "failed", "class": "oom", "reason": "the kernel killed it: out of memory"}
        if code < 0:
            reason = "killed by signal {}; last words: {}".format(signal.Signals(-code).name, last)
        else:
            reason = "exit {} without a result; last words: {}".format(code, last)
        return {"status": "failed", "class": "crash", "reason": reason}

    def kill(self) -> "None":
        """Kill the child and all it started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass


def child(work: "object", result: "int", log: "int") -> "None":
    """Be the child: own process group, no stdin, chatter to ``log``; never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        first_to_die()
        rest = protocol.encode(dict(work(), swapped_bytes=swapped()))
        sys.stdout.flush()
        sys.stderr.flush()
        while rest:
            rest = rest[os.write(result, rest) :]
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def stand_still(turns: "int") -> "None":
    """Say on ``turns`` that this process waits for its turn, and stop all its threads until it is let go on.

    A thread pool that spins while it waits for work would disturb whoever has the turn.
    """
    os.write(turns, b".")
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # sent to itself, it stops before the call returns


def swapped() -> "int":
    """Return how many bytes of this process are in swap; 0 where the kernel does not tell."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as handle:
            return sum(int(line.split()[1]) * 1024 for line in handle if line.startswith("VmSwap:"))
    except (OSError, ValueError):
        return 0


def first_to_die() -> "None":
    """Let the kernel take the child, not its server, when memory runs out; leave no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as handle:
            handle.write("1000")
    except OSError:
        pass


def out_of_memory_kills() -> "int":
    """Return how many processes the kernel has killed for memory: in this control group, else on this machine."""
    for path in COUNTERS:
        try:
            with open(path, encoding="ascii") as handle:
                for line in handle:
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        except (OSError, ValueError):
            continue
    return 0
