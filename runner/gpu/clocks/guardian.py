"""The process that holds a GPU's clocks, and restores them when the runner's pipe closes, however the runner ends.

``python -P -m runner.gpu.clocks.guardian`` reads one Order from stdin, answers in lines of JSON on stdout, and runs
until stdin ends or a signal stops it. It has its own session, so that what ends a runner does not end it.

It never calls the driver, which may hang: its children do, and are killed when they take too long. The child that
holds the clocks keeps the GPU open meanwhile, and undoes them by itself if the guardian is killed.
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
from runner.gpu.clocks.journal import ClockEntry, Ledger
from runner.gpu.clocks.machine_lock import sole
from runner.gpu.clocks.policy import HELD, ClockHold, choose
from runner.gpu.clocks.preconditions import HINT, lasting_objection, observe
from runner.gpu.clocks.protocol import Order, read

SECOND_TRY = 20  # times the first one's time: it has to open the driver
STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MOST_BYTES = 1 << 16


def main() -> int:
    """Carry out the order on stdin; return the exit code, 0 if nothing is left to undo."""
    line = _first_line()
    if line is None:
        return 0  # the runner ended before it sent an order
    order = read(line)
    try:
        state_folder = journal.folder(os.environ, os.geteuid())
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
    """Carry out the order unless another user's guardian holds the GPU, which this user's journal cannot show."""
    with sole(order.uuid) as other:
        if other is None:
            return Guardian(order, state_folder).run()
        tell("busy", who=other.who, trusted=other.trusted)
        return 0


def _first_line() -> bytes | None:
    """Return the first line of stdin without reading further; None if it is incomplete."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 1) if len(line) < MOST_BYTES else b""
        if not part:
            return None
        line += part
    return line


def tell(what: str, **more: object) -> None:
    """Write an answer to the runner, if it still runs."""
    with suppress(OSError):
        os.write(1, json.dumps({"said": what, **more}).encode() + b"\n")


class Child:
    """Work in a forked process, which can be killed if it hangs."""

    def __init__(self, work: Callable[[], int], *others: int) -> None:
        """Fork; the child closes the descriptors ``others`` and ends with the code that ``work`` returns, else 1."""
        self.ended, mine = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                signal.set_wakeup_fd(-1)
                for number in STOP:
                    signal.signal(number, signal.SIG_IGN)  # the guardian decides when it ends
                for other in (self.ended, *others):
                    os.close(other)
                code = work()
            except BaseException:  # noqa: BLE001  the exit code reports it, the log has the reason
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(mine)

    def succeeds(self, seconds: float) -> bool:
        """Wait for its end, kill it after ``seconds``, and return whether its exit code was 0."""
        if not _readable((self.ended,), seconds):
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            _readable((self.ended,), 1.0)  # a call that hangs in the kernel may outlast even that
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            time.sleep(0.01)  # its pipe closes a moment before it can be waited for
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        os.close(self.ended)
        return bool(pid) and os.waitstatus_to_exitcode(status) == 0


def _readable(ends: tuple[int, ...], seconds: float | None) -> bool:
    return bool(select.select(ends, (), (), seconds)[0])


class Guardian:
    """Carries out one order while this process holds the GPU's lock."""

    def __init__(self, order: Order, state_folder: Path) -> None:
        """Take the order, and the folder of the journal."""
        self.order = order
        self.book = journal.ledger(state_folder, order.uuid)

    def run(self) -> int:
        """Carry out the order; return 0 if nothing is left to undo."""
        if self.order.task != "hold":
            return self.undone()
        stop, woken = _signals()
        end, until = os.pipe()
        holder = Child(lambda: self.hold(end), until, stop, woken)
        os.close(end)
        _readable((0, stop, holder.ended), None)  # stdin is readable only at its end
        os.close(until)
        return 0 if holder.succeeds(self.order.patience) else self.undone()

    def undone(self) -> int:
        """Undo what the journal records in a new child, which opens the driver again; return 0 if that worked."""
        if Child(self.restore).succeeds(SECOND_TRY * self.order.patience):
            tell("restored")
            return 0
        tell("left", why=self.trouble())
        return 1

    def trouble(self) -> str:
        """Return why clocks could not be restored, if a child recorded it."""
        try:
            entry = self.book.read()
        except RunnerError as error:
            return error.problems[0].message
        return entry.trouble if entry and entry.trouble else "its driver does not answer"

    def hold(self, end: int) -> int:
        """In a child: set the clocks, keep the GPU open until the pipe closes, and undo them."""
        try:
            with nvml.opened() as driver:
                device = driver.device(self.order.uuid)
                self.undo(device)  # what a killed guardian left
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
        """Set the requested clocks if nobody objects; report them, and return whether any are held.

        A failure undoes what was set before.
        """
        able = device.abilities()
        ways = choose(able, self.order.clocks)
        if ways[0].how in HELD and not self.order.clocks.force:
            objection = lasting_objection(lambda: observe(device))
            if objection:
                tell("held", pin=ClockHold(how="left", why=f"{objection}; {HINT}").json())
                return False
        self.book.write(
            ClockEntry(
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
        held = pin.how in HELD
        if not held:
            self.undo(device)
        tell("held", pin=pin.json())
        return held

    def restore(self) -> int:
        """In a child: undo what the journal records, or for ``reset`` all clocks."""
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
        """Undo what the journal records, and remove its file."""
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
    """Make a signal to stop only turn the first of the two returned descriptors readable."""
    stop, woken = os.pipe()
    os.set_blocking(woken, False)
    for number in STOP:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(woken)
    return stop, woken


if __name__ == "__main__":
    sys.exit(main())
