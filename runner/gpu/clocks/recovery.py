"""Find the clocks that killed guardians left locked, and restore them.

After the death of the runner alone, its guardian restores them (``guardian``), and nothing is found here.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.core.errors import RecordError
from runner.gpu.clocks import journal
from runner.gpu.clocks.client import END_SECONDS, Answer, Guard
from runner.gpu.clocks.journal import ClockEntry, Ledger
from runner.gpu.clocks.permission import SUDO, sudo_usable
from runner.gpu.clocks.protocol import COMMAND, HOLD_SECONDS, Order

Say = Callable[[str], None]

LOOK_SECONDS = 0.05
ROOT_ONLY = f"only root can restore them: `sudo {sys.executable} -P -m runner clocks reset`"


@dataclass(frozen=True, slots=True)
class Undone:
    """All changes were undone."""


@dataclass(frozen=True, slots=True)
class HeldElsewhere:
    """Another guardian, ``who``, holds the GPU, so nothing was changed."""

    who: str

    @property
    def why(self) -> str:
        """The reason, for messages."""
        return f"{self.who} holds them"


@dataclass(frozen=True, slots=True)
class Failed:
    """Some clocks could not be restored; ``why`` is the reason, for messages."""

    why: str


Outcome = Undone | HeldElsewhere | Failed


def leftovers(environ: Mapping[str, str] = os.environ) -> Iterator[tuple[Ledger, ClockEntry | None]]:
    """Yield what dead guardians left on this machine; None for a file that cannot be read."""
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


def restore_after(order: Order, patience: float) -> str | None:
    """Restore what this runner's guardian left of a GPU, if it is dead; return why that failed, None if it did not.

    Args:
        order: the order of the guardian. Entries of other runners are left alone.
        patience: seconds that a child of the guardian, which may still run, gets to restore the clocks by itself.
    """
    until = time.monotonic() + patience
    for state_folder in journal.folders(os.environ, os.geteuid()):
        while _has_entry_of(state_folder, order):
            if not journal.alive(state_folder / f"{order.uuid}.json"):
                outcome = restore(Order(task="restore", uuid=order.uuid), state_folder)
                # Without the entry another runner was faster, and holds the GPU now.
                return None if isinstance(outcome, Undone) or not _has_entry_of(state_folder, order) else outcome.why
            if time.monotonic() > until:
                return "its driver does not answer"
            time.sleep(LOOK_SECONDS)
    return None


def _has_entry_of(state_folder: Path, order: Order) -> bool:
    """Return whether a folder has an entry of this runner for the GPU."""
    try:
        entry = journal.ledger(state_folder, order.uuid).read()
    except (RecordError, ValueError):  # nothing that this program can undo
        return False
    return entry is not None and (entry.runner, entry.run) == (order.runner, order.run) and not entry.on_other_machine


def recover(say: Say, seconds: float = HOLD_SECONDS) -> tuple[str, ...]:
    """Restore what dead guardians left, and announce each GPU; return a message for each one that failed."""
    failures = []
    for book, entry in tuple(leftovers()):
        uuid = book.path.stem
        gpu = f"{entry.name} (left locked by run {entry.run})" if entry and entry.name else uuid
        outcome = restore(Order(task="restore", uuid=uuid), book.path.parent, seconds)
        if isinstance(outcome, Undone):
            say(f"restored the clocks of {gpu}")
        else:
            failures.append(f"could not restore the clocks of {gpu}: {outcome.why}")
    return tuple(failures)


def restore(order: Order, state_folder: Path, seconds: float = HOLD_SECONDS) -> Outcome:
    """Start a guardian that carries out an order with the journal in a folder, as root if it is root's folder."""
    is_users = state_folder == journal.folders(os.environ, os.geteuid())[0]
    if not is_users and not sudo_usable():
        return Failed(ROOT_ONLY)
    answer = Guard(order, COMMAND if is_users else SUDO).end(seconds + END_SECONDS)
    if answer is None:  # sudo ends without an answer if it has no rule for this user
        return Failed("its guardian gave no answer" if is_users else ROOT_ONLY)
    return outcome_of(answer)


def outcome_of(answer: Answer) -> Outcome:
    """Return what the last answer of a guardian means."""
    match answer["said"]:
        case "restored":
            return Undone()
        case "busy":
            return HeldElsewhere(answer["who"])
        case _:
            return Failed(str(answer["why"]))
