"""The process that holds a GPU's clocks, and lets go of them when the runner's pipe closes, however the runner ended.

``python -P -m runner.gpu.clocks.guardian`` reads one Order from stdin, answers in lines of JSON on stdout, and goes on
until stdin ends or a signal asks it to stop. It is in a session of its own, so that what ends a runner does not end it.

It never calls the driver itself, which may hang: children do, and are killed when they take too long. The one that
holds the clocks keeps the GPU open for as long; it undoes them by itself where the guardian is killed.
"""

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from runner.core.errors import GpuError, RunnerError
from runner.core.locks import try_exclusive
from runner.gpu import nvml
from runner.gpu.clocks import apply, journal
from runner.gpu.clocks.journal import Entry, Ledger
from runner.gpu.clocks.machine_lock import sole
from runner.gpu.clocks.policy import choose
from runner.gpu.clocks.protocol import Order, read

SECOND_TRY = 20  # times as long as the first: it has to open the driver
STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MOST_BYTES = 1 << 16


def main() -> int:
    """Do what the order on stdin says; return the exit code, 0 where nothing is left to undo."""
    line = _first_line()
    if line is None:
        return 0  # the runner ended before it could ask
    order = read(line)
    state_folder = journal.folder(os.environ, os.geteuid())
    try:
        with try_exclusive(journal.lock(state_folder, order.uuid)) as alone:
            if alone:
                return _alone(order, state_folder)
            held = journal.ledger(state_folder, order.uuid).read()
            tell("busy", who=f"process {held.runner} for run {held.run}" if held and held.run else "another runner")
            return 0
    except RunnerError as error:
        tell("refused", kind="broken", why=error.problems[0].message, hint=error.problems[0].hint)
        return 1


def _alone(order: Order, state_folder: Path) -> int:
    """Do what is asked where no guardian of another user is at work with the GPU; its files would not say so."""
    with sole(order.uuid) as other:
        if not other:
            return Guardian(order, state_folder).run()
        tell("busy", who=other)
        return 0


def _first_line() -> bytes | None:
    """Return the line on stdin, read so that what comes after it is left there; None where it is cut off."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 1) if len(line) < MOST_BYTES else b""
        if not part:
            return None
        line += part
    return line


def tell(what: str, **more: object) -> None:
    """Write a line to the runner, if it is still there."""
    with suppress(OSError):
        os.write(1, json.dumps({"said": what, **more}).encode() + b"\n")


class Child:
    """Work in a process that may be given up."""

    def __init__(self, work: Callable[[], int], *others: int) -> None:
        """Fork; the child closes the descriptors ``others`` and ends with the code that ``work`` returns, else 1."""
        self.ended, mine = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                signal.set_wakeup_fd(-1)
                for number in STOP:
                    signal.signal(number, signal.SIG_IGN)  # the guardian says when it is time
                for other in (self.ended, *others):
                    os.close(other)
                code = work()
            except BaseException:  # noqa: BLE001  the code says it, the log says why
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(mine)

    def succeeds(self, seconds: float) -> bool:
        """Wait some seconds for its end; kill it where that is too long; say whether its code was 0."""
        if not _readable((self.ended,), seconds):
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            _readable((self.ended,), 1.0)  # a call that hangs in the kernel may outlast even that
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            time.sleep(0.01)  # its pipe closes a moment before it is there to be waited for
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        os.close(self.ended)
        return bool(pid) and os.waitstatus_to_exitcode(status) == 0


def _readable(ends: tuple[int, ...], seconds: float | None) -> bool:
    return bool(select.select(ends, (), (), seconds)[0])


class Guardian:
    """One order at work, while the GPU's lock is held."""

    def __init__(self, order: Order, state_folder: Path) -> None:
        """Take the order, and the folder of what is written down."""
        self.order = order
        self.book = journal.ledger(state_folder, order.uuid)

    def run(self) -> int:
        """Do it; return 0 where nothing is left to undo."""
        if self.order.task != "hold":
            return self.undone()
        stop, woken = _signals()
        end, until = os.pipe()
        holder = Child(lambda: self.hold(end), until, stop, woken)
        os.close(end)
        _readable((0, stop, holder.ended), None)  # nothing comes down stdin: it is readable when it ends
        os.close(until)
        return 0 if holder.succeeds(self.order.patience) else self.undone()

    def undone(self) -> int:
        """Undo what is written down in a child that opens the driver anew; return 0 where that worked."""
        if Child(self.restore).succeeds(SECOND_TRY * self.order.patience):
            tell("restored")
            return 0
        tell("left", why=self.trouble())
        return 1

    def trouble(self) -> str:
        """Return why clocks could not be undone, as far as a child wrote it down."""
        try:
            entry = self.book.read()
        except RunnerError as error:
            return error.problems[0].message
        return entry.trouble if entry and entry.trouble else "its driver does not answer"

    def hold(self, end: int) -> int:
        """In a child: set clocks, keep the GPU open until the other end of a pipe is closed, and undo them."""
        try:
            with nvml.opened() as driver:
                device = driver.device(self.order.uuid)
                self.undo(device)  # what a guardian that was killed has left
                held = self.pin(device)
                if held:
                    os.read(end, 1)
                    self.undo(device)
        except GpuError as error:
            problem, kind = error.problems[0], error.kind or "argument"
            tell("refused", kind=kind, why=problem.message, hint=problem.hint)
            return 1 if self.book.read() else 0
        if held:
            tell("restored")
        return 0

    def pin(self, device: nvml.Device) -> bool:
        """Set what is wanted, and say so; return whether anything is held. What half worked is undone."""
        able = device.abilities()
        ways = choose(able, self.order.clocks)
        self.book.write(
            Entry(
                uuid=self.order.uuid,
                name=able.name,
                run=self.order.run,
                runner=self.order.runner,
                guardian=os.getppid(),
                at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
                boot=journal.boot(),
                machine=journal.machine(),
                before=able.application,
            )
        )
        try:
            pin = apply.pin(device, ways, self.book)
        except GpuError:
            self.undo(device)
            raise
        held = pin.how in {"locked", "application"}
        if not held:
            self.undo(device)
        tell("held", pin=pin.json())
        return held

    def restore(self) -> int:
        """In a child: undo what is written down, or for ``reset`` all there is."""
        entry = self.book.read()
        if self.order.task != "reset" and (entry is None or entry.gone):
            self.book.close()
            return 0
        try:
            with nvml.opened() as driver:
                device = driver.device(self.order.uuid)
                if self.order.task == "reset":
                    apply.undo(device, apply.everything(device))
                    self.book.close()
                else:
                    self.undo(device)
        except GpuError as error:
            tell("trouble", kind=error.kind, why=error.problems[0].message)
            _note(self.book, error.problems[0].message)
            return 1
        return 0

    def undo(self, device: nvml.Device) -> None:
        """Undo what is written down, and remove it."""
        entry = self.book.read()
        if entry is not None:
            if not entry.gone:
                apply.undo(device, entry)
            self.book.close()


def _note(book: Ledger, trouble: str) -> None:
    entry = book.read()
    if entry is not None:
        book.write(replace(entry, trouble=trouble))


def _signals() -> tuple[int, int]:
    """From now on a signal to stop makes the first of two descriptors readable, and does nothing else."""
    stop, woken = os.pipe()
    os.set_blocking(woken, False)
    for number in STOP:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(woken)
    return stop, woken


if __name__ == "__main__":
    sys.exit(main())
