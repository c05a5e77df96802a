"""Runs one forked child: reads its result and its output through pipes, gives it turns, and classifies its end."""

import json
import os
import select
import signal
import sys
import time
import traceback

from . import leftovers, procfs, protocol
from .link import ANNOUNCED_BYTES, STAGES, TURN, WARM, ServerLink
from .pipe import Pipe
from .script_stack import Steps
from .watched import Watch

LOG_BYTES = 64 * 1024
RESULT_BYTES = 32 << 20  # of JSON, at most: a million samples
POLL = 0.1  # seconds between two looks at a child
POLL_ENDING = 0.001  # the same where its end or its stop is a moment away
HEARTBEAT = 1.0
DRAIN_SECONDS = 1.0  # for what is left in the pipes; a process that the child started may still be writing
END_SECONDS = 5.0  # for the end of such processes once they are killed
PR_SET_PDEATHSIG = 1  # linux/prctl.h
CLD_STOPPED = 5  # asm-generic/siginfo.h; Python has it since 3.9

RUNNING = "running"
WAITING = "waiting for its turn"  # announced by the child; the kernel stops it a moment later
REAPED = "reaped"


class Forked(BaseException):
    """Raised in a forked child: it leaves the functions of its server, and makes its calls where a script makes them.

    Attributes:
        steps: a generator, which ``script_stack.run`` runs, and which ends the process.
    """

    def __init__(self, steps: "Steps") -> "None":
        """Take the generator."""
        BaseException.__init__(self)
        self.steps = steps


class ChildSupervisor(object):
    """A child, its pipes, and its ``state``: RUNNING, WAITING or REAPED."""

    def __init__(self, work: "object", private: "int", source: "object", kept: "object" = ()):
        """Fork; the child runs ``work`` and sends what it returns.

        Args:
            work: called in the child with its ``ServerLink``; returns a generator for ``script_stack.run``, which returns a
                dict for JSON, with ``status``; or executes another program, which sends that by the link.
            private: the server's reply descriptor, which the child must not hold.
            source: the server's stdin; when it ends while the child runs, so does the server.
            kept: ids of the processes below the server that the child did not start.

        Raises:
            Forked: in the child.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        server = os.getpid()
        self.source = source
        self.kept = kept
        self.kills = procfs.out_of_memory_kills()
        self.token = os.urandom(16).hex()
        self.scratch = leftovers.Scratch(leftovers.server_folders())
        self.result, self.log = Pipe(RESULT_BYTES), Pipe(LOG_BYTES, last=True)
        self.turns, self.plan = Pipe(ANNOUNCED_BYTES, last=True), Pipe(0)
        self.pipes = self.result, self.log, self.turns
        self.link = ServerLink(self.result.writer, self.turns.writer, self.plan.reader, self.token)
        self.state = RUNNING
        self.stage, self.pace = TURN, None
        self.watch = Watch(kept)
        self.descendant_bytes = 0  # of memory, at the last heartbeat
        self.pid = self.fork()
        if self.pid == 0:
            try:
                for descriptor in [private, self.plan.writer] + [pipe.reader for pipe in self.pipes]:
                    os.close(descriptor)
                procfs.control(PR_SET_PDEATHSIG, int(signal.SIGKILL))  # a child never outlives its server
                procfs.control(procfs.PR_SET_DUMPABLE, 1)  # it may read and write what /proc says of itself
                has_server = os.getppid() == server
            except BaseException:
                os._exit(1)
            if not has_server:
                os._exit(1)
            raise Forked(self.run_child(work))
        for pipe in self.pipes:
            pipe.close_writer()
        self.plan.close_reader()
        try:
            os.setpgid(self.pid, self.pid)
        except OSError:
            pass  # the child was faster

    def fork(self) -> "int":
        """Return what os.fork does; if the kernel refuses, nothing of this child stays, and OSError is raised."""
        try:
            return os.fork()
        except OSError:
            for pipe in self.pipes + (self.plan,):
                pipe.close_writer()
                pipe.close_reader()
            self.scratch.clear()
            raise

    def run_child(self, work: "object") -> "Steps":
        """Run ``work`` in the child, in a new process group and the scratch folder, without stdin; never returns.

        A generator, see ``Forked``.
        """
        code, child = 1, os.getpid()
        try:
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(self.log.writer, 1)
            os.dup2(self.log.writer, 2)
            procfs.become_first_oom_victim()
            self.scratch.enter()
            message = yield from work(self.link)
            if os.getpid() == child:  # a copy that the framework forked has no result
                self.link.send(message)
                code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)

    def wait_for_result(self, timeout: "float", memory: "object", beat: "object", turn: "object" = None) -> "dict":
        """Return the child's message, or a failure with its class; kill a child that exceeds its limits.

        Args:
            timeout: seconds, above 0; those in which it waits for its turn do not count.
            memory: bytes at which the child is killed, with all that it started; None where a container sets the limit.
            beat: called about every HEARTBEAT seconds.
            turn: called when the child waits for its turn, with the stage and the pace that it announced, or None; returns
                when it may continue, with the plan of its turns where it waits for that. None if it has no turns.
        """
        try:
            message, failure, code = self.follow(timeout, memory, beat, turn)
            if self.state != REAPED:
                self.kill()
            deadline = time.monotonic() + DRAIN_SECONDS
            while self.read_pipes(0) and time.monotonic() < deadline:
                pass
        finally:
            for pipe in self.pipes:
                pipe.close_reader()
            self.plan.close_writer()
        log = self.log.data.decode("utf-8", "replace")
        return dict(message or self.message() or failure or self.failure_of_exit(code, log), log=log)

    def follow(self, timeout: "float", memory: "object", beat: "object", turn: "object") -> "tuple":
        """Return (message, failure, exit code) as soon as the child has sent a message, exceeded a limit or ended."""
        start = last_beat = time.monotonic()
        failure = code = message = None
        while code is None and message is None:
            self.read_pipes(POLL_ENDING if self.is_ending() or self.state == WAITING else POLL)
            now = time.monotonic()
            if now - last_beat >= HEARTBEAT:
                beat()
                last_beat = now
                self.watch_descendants(memory)
                self.watch.look(self.pid)
            if turn is not None and self.is_stopped():
                self.give_turn(turn)
                last_beat, start = time.monotonic(), start + time.monotonic() - now
            message = self.message()
            if message is None:
                failure = self.exceeded_limit(now - start, timeout, memory)
                code = self.exit_code(kill=failure is not None)
        return message, failure, code

    def watch_descendants(self, memory: "object") -> "None":
        """Reap the processes that lost their parent and have ended; add up the memory of the others, if there is a limit."""
        leftovers.reap_orphans(set(self.kept) | {self.pid})
        if memory:
            pids = [pid for pid in procfs.descendants(os.getpid(), self.kept) if pid != self.pid]
            self.descendant_bytes = sum(procfs.resident_bytes(pid) for pid in pids)
            if pids and procfs.resident_bytes(self.pid) + self.descendant_bytes > memory:
                self.descendant_bytes = sum(procfs.proportional_bytes(pid) for pid in pids)

    def is_stopped(self) -> "bool":
        """Return whether the child has announced that it waits for its turn, and the kernel has stopped all its threads."""
        announced = bytes(self.turns.data)
        self.turns.data.clear()
        stage = STAGES.get(announced[:1])
        if stage is not None and (stage == WARM or len(announced) == 1):
            self.state, self.stage = WAITING, stage
            self.pace = announced_pace(announced[1:]) if stage == WARM else None
        if self.state != WAITING:
            return False
        # Without WEXITED the kernel says of a child that was killed meanwhile that there is none.
        status = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return status is not None and status.si_code == CLD_STOPPED

    def give_turn(self, turn: "object") -> "None":
        """Let the child continue once ``turn`` returns; if that raises, kill the child and all that it started."""
        self.watch.stops(self.pid)
        try:
            plan = turn(self.stage, self.pace)
        except BaseException:
            self.kill()
            raise
        if self.stage == WARM:
            self.send_plan(plan or {})
        self.state = RUNNING
        self.watch.goes_on(self.stage)
        os.kill(self.pid, signal.SIGCONT)

    def send_plan(self, plan: "dict") -> "None":
        """Send the child the plan of its turns; without effect where it was killed meanwhile."""
        try:
            os.write(self.plan.writer, json.dumps(plan, sort_keys=True).encode("ascii"))
        except BrokenPipeError:
            pass

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
        """End the child and all that it started; wait until their memory is free, and remove their files."""
        self.exit_code(kill=True)
        remaining = leftovers.end_processes(self.kept, END_SECONDS)
        if remaining:
            sys.stderr.write("processes of a child that cannot be killed: {}\n".format(remaining))
        self.scratch.clear()

    def is_ending(self) -> "bool":
        """Return whether the result is complete or its pipe is closed: the child exits in a moment."""
        return self.result.closed or self.result.is_complete()

    def read_pipes(self, seconds: "float") -> "bool":
        """Read what the child wrote, waiting up to ``seconds``; return whether there was anything.

        Raises:
            BrokenPipeError: the server's stdin has ended; the child is killed.
        """
        pipes = {pipe.reader: pipe for pipe in self.pipes if not pipe.closed}
        stdin = [self.source.fileno()] if hasattr(self.source, "fileno") else []
        ready, _, _ = select.select(list(pipes) + stdin, [], [], seconds)
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
        if memory and procfs.resident_bytes(self.pid) + self.descendant_bytes > memory:
            reason = "used more than its limit of {:.1f} GiB of memory".format(memory / 2.0 ** 30)
            return {"status": "failed", "class": "oom", "reason": reason}
        return None

    def message(self) -> "object":
        """Return the dict that the child sent, a failure if it is not the harness's; None while it is incomplete.

        The token is no secret from a framework, whose code runs in the same process. It keeps what was written to the pipe
        by mistake from being believed.
        """
        if not self.result.is_complete():
            return None
        try:
            message = protocol.decode(bytes(self.result.data))
        except ValueError:
            message = {}
        if message.pop("token", None) == self.token and message.get("status") in ("ok", "failed"):
            return message
        reason = "something that is not the harness's result was written to its pipe"
        return {"status": "failed", "class": "crash", "reason": reason}

    def failure_of_exit(self, code: "int", log: "str") -> "dict":
        """Return the failure of a child that ended without a result."""
        last_line = (log.strip().splitlines() or ["it printed nothing"])[-1][:300]
        if code == -signal.SIGKILL and procfs.out_of_memory_kills() > self.kills:
            return {"status": "failed", "class": "oom", "reason": "the kernel killed the process: out of memory"}
        if code < 0:
            reason = "killed by signal {}; last words: {}".format(signal_name(-code), last_line)
        else:
            reason = "exit {} without a result; last words: {}".format(code, last_line)
        return {"status": "failed", "class": "crash", "reason": reason}

    def kill(self) -> "None":
        """Kill the child, which is not reaped yet, and its process group, which it may have left; in a container, all."""
        leftovers.kill_container(self.kept)
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except OSError:
                pass


def signal_name(number: "int") -> "str":
    """Return the name of a signal; its number if Python has no name for it, as for most real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def announced_pace(text: "bytes") -> "object":
    """Return what a child announced with WARM, see ``turn_plan.pace``; None if it is no JSON object."""
    try:
        return protocol.decode(text)
    except ValueError:
        return None
