"""What guardians that were killed have left held, and undoing it."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from runner.core.errors import RecordError
from runner.gpu.clocks import journal
from runner.gpu.clocks.client import END_SECONDS, SUDO, Guard
from runner.gpu.clocks.journal import Entry, Ledger
from runner.gpu.clocks.protocol import COMMAND, HOLD_SECONDS, Order

Say = Callable[[str], None]

AT_WORK = "is at work with it"
LOOK_SECONDS = 0.05
ROOTS = f"only root can let go of them: `sudo {sys.executable} -m runner clocks reset`"


def leftovers(environ: Mapping[str, str] = os.environ) -> Iterator[tuple[Ledger, Entry | None]]:
    """Give what dead guardians have left on this machine; None for a file that cannot be read."""
    for state_folder in journal.folders(environ, os.geteuid()):
        for book in journal.files(state_folder):
            if journal.alive(book.path):
                continue
            try:
                entry = book.read()
            except RecordError:
                yield book, None
                continue
            if entry is not None and not entry.on_other_machine:
                yield book, entry


def taken_back(order: Order, patience: float) -> str | None:
    """Undo what this runner's guardian has left of a GPU, if it is dead and has; return why that could not be done.

    Args:
        order: what the guardian was asked. What others hold is theirs.
        patience: seconds that a child of it, which may still be at work, gets to undo it by itself.
    """
    until = time.monotonic() + patience
    for state_folder in journal.folders(os.environ, os.geteuid()):
        while _has_entry_of(state_folder, order):
            if not journal.alive(state_folder / f"{order.uuid}.json"):
                why = undone(Order(task="restore", uuid=order.uuid), state_folder)
                return (
                    why if _has_entry_of(state_folder, order) else None
                )  # another runner may have been faster, and holds it
            if time.monotonic() > until:
                return "its driver does not answer"
            time.sleep(LOOK_SECONDS)
    return None


def _has_entry_of(state_folder: Path, order: Order) -> bool:
    """Say whether a folder has an entry of a GPU that is this runner's."""
    try:
        entry = journal.ledger(state_folder, order.uuid).read()
    except (RecordError, ValueError):  # nothing that this program can undo
        return False
    return entry is not None and (entry.runner, entry.run) == (order.runner, order.run) and not entry.on_other_machine


def recover(say: Say, seconds: float = HOLD_SECONDS) -> tuple[str, ...]:
    """Undo what dead guardians have left, and say so; return a sentence for each GPU whose clocks are still held."""
    failed = []
    for book, entry in tuple(leftovers()):
        uuid = book.path.stem
        whose = f"{entry.name} by run {entry.run}" if entry and entry.name else uuid
        why = undone(Order(task="restore", uuid=uuid), book.path.parent, seconds)
        if why is None:
            say(f"the clocks of {whose} had been left held: they are as they were")
        else:
            failed.append(f"the clocks of {whose} are still held: {why}")
    return tuple(failed)


def undone(order: Order, state_folder: Path, seconds: float = HOLD_SECONDS) -> str | None:
    """Have a guardian undo what is written down in a folder; return why it could not, None where it could."""
    users_folder = journal.folder(os.environ, os.geteuid())
    if state_folder != users_folder and not shutil.which("sudo"):
        return ROOTS
    last = Guard(order, COMMAND if state_folder == users_folder else SUDO).end(seconds + END_SECONDS)
    if last is None:  # sudo ends without an answer where it has no rule for this user
        return "its guardian gave no answer" if state_folder == users_folder else ROOTS
    if last["said"] == "busy":
        return f"{last['who']} {AT_WORK}"
    return None if last["said"] == "restored" else str(last["why"])
