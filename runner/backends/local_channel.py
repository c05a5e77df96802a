"""A harness server as a process of this machine, for the venv and host backends.

Whatever a server writes to stderr, only its end is kept, in memory.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO

from typing_extensions import override

from runner.backends import ARCHIVE_SECONDS, Channel, harness_archive
from runner.backends.line_reader import Lines
from runner.backends.sending import SendTime
from runner.backends.visible_devices import in_process
from runner.core.uninterrupted import uninterrupted

LAST_BYTES = 64 * 1024
READ_BYTES = 1 << 20
MAX_READS = 64  # of what a server still writes to stderr after its end was seen
KEPT = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME")
KEPT_BY_HOST = ("PYTHONPATH", "PYTHONUSERBASE", "VIRTUAL_ENV")
END_SECONDS = 2.0  # a server has to end by itself
FAMILY_PASSES = 20


class ProcessChannel(Channel):
    """A server with its own session and temporary folder; both are gone after ``close``."""

    def __init__(
        self,
        python: str,
        device: str,
        harness: bytes | None = None,
        *,
        isolated: bool = True,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start ``python`` and send it the harness.

        Args:
            python: path of an interpreter.
            device: ``cpu``, or the UUIDs of the GPUs that it may see, with commas between them.
            harness: see ``harness_archive.pack``; the shipped harness by default.
            isolated: ignore packages of the user and of ``PYTHONPATH``.
            variables: name -> value, those of the environment.

        Raises:
            OSError: the interpreter cannot be started.
            UnreadError: the server does not read the harness.
        """
        kept = KEPT if isolated else (*KEPT, *KEPT_BY_HOST)
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= variables
        environment |= in_process(device)
        try:
            with uninterrupted():  # a process that was started, and is not known here, would stay
                self._start([python, *(["-I"] if isolated else []), "-c", harness_archive.BOOTSTRAP], environment)
            os.set_blocking(self.stdin.fileno(), False)
            os.set_blocking(self.stderr.fileno(), False)
            self.last_words = bytearray()
            self.stderr_ended = False
            self.lines = Lines(self._read)
            with contextlib.suppress(BrokenPipeError):  # the server is gone: the first reply says how
                self.send(harness_archive.pack() if harness is None else harness, ARCHIVE_SECONDS)
        except BaseException:
            if hasattr(self, "process"):
                self.close()
            raise

    def _start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="matrix-runner-"))
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env={**environment, "TMPDIR": str(self.folder)},
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            self._clean()
            raise
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr

    def _read(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while self.stdout not in self._wait([self.stdout], [], max(timeout, 0.0)):
            timeout = deadline - time.monotonic()
            if timeout <= 0:
                raise TimeoutError
        return os.read(self.stdout.fileno(), READ_BYTES)

    @override
    def send(self, data: bytes, timeout: float) -> None:
        """See Channel."""
        remaining, time_left = memoryview(data), SendTime(timeout)
        while remaining:
            if self.stdin in self._wait([], [self.stdin], time_left.left()):
                written = self.stdin.write(remaining)
                if written:
                    remaining = remaining[written:]
                    time_left.note_progress()

    def _wait(self, readers: list[IO[bytes]], writers: list[IO[bytes]], timeout: float) -> list[IO[bytes]]:
        """Return what can be read or written, at the latest after ``timeout`` seconds; read stderr meanwhile."""
        watched = readers if self.stderr_ended else [*readers, self.stderr]
        readable, writable, _ = select.select(watched, writers, [], timeout)
        if self.stderr in readable:
            self._read_stderr()
        return readable + writable

    def _read_stderr(self) -> bool:
        """Read what has arrived of stderr, and keep its end; return False if there is no more."""
        try:
            received = os.read(self.stderr.fileno(), READ_BYTES)
        except BlockingIOError:
            return False
        self.stderr_ended = not received
        self.last_words += received
        del self.last_words[:-LAST_BYTES]
        return bool(received)

    @override
    def receive(self, timeout: float) -> bytes | None:
        return self.lines.next(timeout)

    @override
    def discard(self) -> None:
        self.lines.discard()

    @override
    def words(self) -> str:
        if not self.stderr.closed:
            for _ in range(MAX_READS):
                if not self._read_stderr():
                    break
        return self.last_words.decode("utf-8", "replace")

    @override
    def ending(self) -> tuple[str, str]:
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "crash", "the harness server closed its output but runs"
        last = (self.words().strip().splitlines() or ["it printed nothing"])[-1]
        if code < 0:
            return "crash", f"the harness server was killed by {_signal_name(-code)}; last words: {last}"
        return "crash", f"the harness server ended with exit {code}; last words: {last}"

    @override
    def close(self) -> None:
        """See Channel. The end of stdin ends a server; after END_SECONDS it is killed with every process it started."""
        try:
            self.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECONDS)
            self._remove()
        except BaseException:  # a signal interrupts once, anywhere in here
            self._remove()
            raise

    def _remove(self) -> None:
        """Kill what still runs, and remove the folder; it does no harm twice."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.process.wait() != 0:  # it could not end its children
            _kill_family(self.folder)
        self.stdout.close()
        self.stderr.close()
        self._clean()

    def _clean(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _signal_name(number: int) -> str:
    """Return ``SIGKILL``, or ``signal 35`` where Python has no name."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _kill_family(folder: Path) -> None:
    """Kill the remaining processes of a server: those whose ``TMPDIR`` is its temporary folder or lies below it."""
    mark = f"\0TMPDIR={folder}".encode()
    for _ in range(FAMILY_PASSES):
        killed = False
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in b"\0" + path.read_bytes():
                    os.kill(int(path.parent.name), signal.SIGKILL)
                    killed = True
        if not killed:
            return
        time.sleep(0.01)
