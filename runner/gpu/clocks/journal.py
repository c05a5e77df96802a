"""The write-ahead journal of clock changes, one file per GPU, from which any later process can undo them.

An entry is on the disk before the call that it records, and the file is removed once everything is restored. Next to it
lies a lock file that the guardian and its children hold: if no process holds it, the guardian is dead.
"""

import fcntl
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from runner.core.errors import Problem, RecordError, UsageError
from runner.core.files import read_line, write_whole
from runner.core.paths import home
from runner.gpu.types import ClockPair

VERSION = 1
MACHINE = Path("/var/lib")  # root's state of the machine
PROGRAM = Path("matrix-runner/clocks")
BOOT = Path("/proc/sys/kernel/random/boot_id")
MACHINE_ID = Path("/etc/machine-id")  # machine-id(5)
UUID = re.compile(r"[A-Za-z]+-[0-9A-Fa-f-]+")

Undo = Literal["sm", "memory", "application"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockEntry:
    """The changes made, or about to be made, to a GPU's clocks.

    Attributes:
        uuid: the GPU's; ``name`` is for messages.
        run: the run that needs the clocks; ``runner`` is its process.
        guardian: the process that undoes them.
        at: time of the entry, in UTC.
        boot: id of the boot: no clock stays locked over a reboot.
        machine: id of the machine: several may share a user's folder.
        held: the held clocks, for messages; empty until they are set.
        undo: what may have been set: locked clocks of the multiprocessors, of the memory, application clocks.
        before: the previous application clocks. No driver reports locked clocks.
        trouble: why undoing failed.
    """

    uuid: str
    name: str = ""
    run: str = ""
    runner: int = 0
    guardian: int = 0
    at: str = ""
    boot: str = ""
    machine: str = ""
    held: str = ""
    undo: tuple[Undo, ...] = ()
    before: ClockPair | None = None
    trouble: str = ""

    @property
    def gone(self) -> bool:
        """True if this machine has rebooted since, which reset all clocks."""
        return bool(self.boot) and self.boot != boot() and not self.on_other_machine

    @property
    def on_other_machine(self) -> bool:
        """True for an entry of another machine. A container has its own machine id, but the boot id of its host."""
        return bool(self.machine) and self.machine != machine() and self.boot != boot()


@dataclass(slots=True)
class Ledger:
    """The journal file of one GPU."""

    path: Path

    def read(self) -> ClockEntry | None:
        """Return the entry; None without a file.

        Raises:
            RecordError: the file cannot be read.
        """
        try:
            return _entry(json.loads(self.path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = "remove it after `sudo nvidia-smi --reset-gpu-clocks` and `--reset-memory-clocks`"
            raise RecordError(Problem(f"{self.path} cannot be read: {error}", hint=hint)) from error

    def write(self, entry: ClockEntry) -> ClockEntry:
        """Write the entry; it is on the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, json.dumps({"version": VERSION, **asdict(entry)}, indent=1) + "\n")
        return entry

    def will(self, what: Undo) -> None:
        """Record that a clock is about to be set."""
        entry = self._present()
        self.write(replace(entry, undo=(*(earlier for earlier in entry.undo if earlier != what), what)))

    def was_refused(self, what: Undo) -> None:
        """Record that a clock was not set: the driver refused."""
        entry = self._present()
        self.write(replace(entry, undo=tuple(earlier for earlier in entry.undo if earlier != what)))

    def holds(self, held: str) -> None:
        """Record the clocks that are held now."""
        self.write(replace(self._present(), held=held))

    def close(self) -> None:
        """Remove the file: everything is restored."""
        self.path.unlink(missing_ok=True)

    def _present(self) -> ClockEntry:
        entry = self.read()
        assert entry is not None
        return entry


def ledger(folder: Path, uuid: str) -> Ledger:
    """Return the journal file of a GPU.

    Raises:
        ValueError: ``uuid`` is not a UUID.
    """
    if not UUID.fullmatch(uuid):
        raise ValueError(f"{uuid!r} is no UUID of a GPU")
    return Ledger(folder / f"{uuid}.json")


def lock(folder: Path, uuid: str) -> Path:
    """Return the path of a GPU's lock file."""
    return folder / f"{uuid}.lock"


def folder(environ: Mapping[str, str], user: int) -> Path:
    """Return a user's journal folder: below ``XDG_STATE_HOME`` if set; root's is one folder for the entire machine.

    A GPU has one set of clocks for all users, and most drivers let only root change them. ``sudo`` does not
    pass ``XDG_STATE_HOME`` on.

    Raises:
        UsageError: this user has no home folder.
    """
    state_home = environ.get("XDG_STATE_HOME", "")
    if state_home.startswith("/"):
        return Path(state_home) / PROGRAM
    if user == 0:
        return MACHINE / PROGRAM
    return home(environ, "XDG_STATE_HOME") / ".local/state" / PROGRAM


def folders(environ: Mapping[str, str], user: int) -> tuple[Path, ...]:
    """Return the folders that may hold journal files of this machine: the user's, and root's."""
    of_root = () if user == 0 else (MACHINE / PROGRAM,)
    try:
        return (folder(environ, user), *of_root)
    except UsageError:  # a user without a home folder has none
        return of_root


def files(state_folder: Path) -> Iterator[Ledger]:
    """Yield the journal files in a folder."""
    try:
        paths = sorted(state_folder.iterdir())
    except OSError:
        return
    for path in paths:
        if path.suffix == ".json" and UUID.fullmatch(path.stem):
            yield Ledger(path)


def alive(path: Path) -> bool:
    """Return whether a guardian or its child holds the lock next to a file; needs only read access."""
    try:
        with path.with_suffix(".lock").open() as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def boot() -> str:
    """Return the boot id; empty if the kernel does not report it."""
    return read_line(BOOT)


def machine() -> str:
    """Return the machine id; empty if it has none."""
    return read_line(MACHINE_ID)


def _entry(values: Mapping[str, Any]) -> ClockEntry:
    if values["version"] > VERSION:
        raise ValueError("it was written by a newer program")
    known = {name: value for name, value in values.items() if name in ClockEntry.__dataclass_fields__}
    before = known.get("before")
    return ClockEntry(**{**known, "undo": tuple(known["undo"]), "before": ClockPair(**before) if before else None})
