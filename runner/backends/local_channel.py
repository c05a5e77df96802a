"""A harness server as a process of this machine, for the venv and host backends."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from runner.backends import harness_archive
from runner.backends.line_reader import Lines
from runner.backends.visible_devices import in_process

LAST_BYTES = 64 * 1024
KEPT = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME")
KEPT_BY_HOST = ("PYTHONPATH", "PYTHONUSERBASE", "VIRTUAL_ENV")
END_SECONDS = 2.0  # a server has to end by itself
FAMILY_PASSES = 20
SEND_SECONDS = 30.0


class ProcessChannel:
    """A server with its own session and temporary folder; both are gone after ``close``."""

    def __init__(self, python: str, device: str, harness: bytes | None = None, *, isolated: bool = True) -> None:
        """Start ``python`` and send it the harness.

        Args:
            python: path of an interpreter.
            device: ``cpu``, or the UUIDs of the GPUs that it may see, with commas between them.
            harness: see ``harness_archive.pack``; the shipped harness by default.
            isolated: ignore packages of the user and of ``PYTHONPATH``.

        Raises:
            OSError: the interpreter cannot be started.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="matrix-runner-"))
        self.log = (self.folder / "stderr").open("w+b")
        kept = KEPT if isolated else (*KEPT, *KEPT_BY_HOST)
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment["TMPDIR"] = str(self.folder)
        environment |= in_process(device)
        try:
            self.process = subprocess.Popen(
                [python, *(["-I"] if isolated else []), "-c", harness_archive.BOOTSTRAP],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            self._clean()
            raise
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self.stdin.fileno(), False)
        self.lines = Lines(self._read)
        try:
            with contextlib.suppress(BrokenPipeError):  # the server is gone: the first reply says how
                self.send(harness_archive.pack() if harness is None else harness)
        except BaseException:
            self.close()
            raise

    def _read(self, timeout: float) -> bytes:
        ready, _, _ = select.select([self.stdout], [], [], timeout)
        if not ready:
            raise TimeoutError
        return os.read(self.stdout.fileno(), 1 << 20)

    def send(self, data: bytes) -> None:
        """See Channel; raises TimeoutError if the server reads nothing for SEND_SECONDS."""
        remaining = memoryview(data)
        while remaining:
            if not select.select([], [self.stdin], [], SEND_SECONDS)[1]:
                raise TimeoutError
            remaining = remaining[self.stdin.write(remaining) or 0 :]

    def receive(self, timeout: float) -> bytes | None:
        """See Channel."""
        return self.lines.next(timeout)

    def words(self) -> str:
        """See Channel."""
        if self.log.closed:
            return ""
        size = self.log.seek(0, os.SEEK_END)
        self.log.seek(max(size - LAST_BYTES, 0))
        return self.log.read().decode("utf-8", "replace")

    def ending(self) -> tuple[str, str]:
        """See Channel."""
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "crash", "the harness server closed its output but runs"
        last = (self.words().strip().splitlines() or ["it printed nothing"])[-1]
        if code < 0:
            return "crash", f"the harness server was killed by {signal.Signals(-code).name}; last words: {last}"
        return "crash", f"the harness server ended with exit {code}; last words: {last}"

    def close(self) -> None:
        """See Channel. The end of stdin ends a server; after END_SECONDS it is killed with every process it started."""
        self.stdin.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            if self.process.wait() != 0:  # it could not end its children
                _kill_family(self.folder)
            self.stdout.close()
            self._clean()

    def _clean(self) -> None:
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _kill_family(folder: Path) -> None:
    """Kill what a server has left behind: the processes that were started with its temporary folder, or one in it."""
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
