"""What is written down before a clock is changed, so that whoever comes next can undo it; one file for each GPU.

A file is on the disk before the call that it is about is made, and is removed once all is as it was. Beside it lies a
lock that the guardian and its children hold: where nobody holds it, the guardian is dead.
"""

import fcntl
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from runner.core.errors import Problem, RecordError
from runner.core.files import write_whole
from runner.gpu.types import Pair

VERSION = 1
MACHINE = Path("/var/lib")  # where root keeps what is about the machine
PROGRAM = Path("matrix-runner/clocks")
BOOT = Path("/proc/sys/kernel/random/boot_id")
MACHINE_ID = Path("/etc/machine-id")  # machine-id(5)
UUID = re.compile(r"[A-Za-z]+-[0-9A-Fa-f-]+")

Undo = Literal["sm", "memory", "application"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was, or was about to be, changed on a GPU.

    Attributes:
        uuid: the GPU's; ``name`` is for people.
        run: the run it is held for, and ``runner`` its process.
        guardian: the process that undoes it.
        at: when, in UTC.
        boot: the start of the machine it was in: no clock stays held over the next one.
        machine: the machine it was on: a user's folder may be shared by several.
        held: what is held, as a sentence; empty until it is.
        undo: what may have been set: locked clocks of the multiprocessors, of the memory, application clocks.
        before: the application clocks there were. Locked clocks cannot be read from any driver.
        trouble: why undoing it failed.
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
    before: Pair | None = None
    trouble: str = ""

    @property
    def gone(self) -> bool:
        """This machine was started anew since then, and nothing is held any more."""
        return bool(self.boot) and self.boot != boot() and not self.on_other_machine

    @property
    def on_other_machine(self) -> bool:
        """It is about another machine. A container has another id than its machine, but the same start."""
        return bool(self.machine) and self.machine != machine() and self.boot != boot()


@dataclass(slots=True)
class Ledger:
    """The file of one GPU."""

    path: Path

    def read(self) -> Entry | None:
        """Return what it says; None where there is none.

        Raises:
            RecordError: it cannot be read.
        """
        try:
            return _entry(json.loads(self.path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = "remove it after `sudo nvidia-smi --reset-gpu-clocks` and `--reset-memory-clocks`"
            raise RecordError(Problem(f"{self.path} cannot be read: {error}", hint=hint)) from error

    def write(self, entry: Entry) -> Entry:
        """Write it down; it is on the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, json.dumps({"version": VERSION, **asdict(entry)}, indent=1) + "\n")
        return entry

    def will(self, what: Undo) -> None:
        """Write down that something is about to be set."""
        entry = self._present()
        self.write(replace(entry, undo=(*(earlier for earlier in entry.undo if earlier != what), what)))

    def was_refused(self, what: Undo) -> None:
        """Write down that it was not: the driver has refused it."""
        entry = self._present()
        self.write(replace(entry, undo=tuple(earlier for earlier in entry.undo if earlier != what)))

    def holds(self, held: str) -> None:
        """Write down what is held now."""
        self.write(replace(self._present(), held=held))

    def close(self) -> None:
        """Remove it: all is as it was."""
        self.path.unlink(missing_ok=True)

    def _present(self) -> Entry:
        entry = self.read()
        assert entry is not None
        return entry


def ledger(folder: Path, uuid: str) -> Ledger:
    """Return the file of a GPU.

    Raises:
        ValueError: that is no UUID.
    """
    if not UUID.fullmatch(uuid):
        raise ValueError(f"{uuid!r} is no UUID of a GPU")
    return Ledger(folder / f"{uuid}.json")


def lock(folder: Path, uuid: str) -> Path:
    """Return the lock of a GPU."""
    return folder / f"{uuid}.lock"


def folder(environ: Mapping[str, str], user: int) -> Path:
    """Return where a user's files are: below ``XDG_STATE_HOME``; else root's in one place for the whole machine.

    A GPU has one set of clocks for all users, and most drivers let only root change them. ``sudo`` hands on no
    ``XDG_STATE_HOME``.
    """
    state_home = environ.get("XDG_STATE_HOME", "")
    if state_home.startswith("/"):
        return Path(state_home) / PROGRAM
    if user == 0:
        return MACHINE / PROGRAM
    return Path(environ.get("HOME", "~")).expanduser() / ".local/state" / PROGRAM


def folders(environ: Mapping[str, str], user: int) -> tuple[Path, ...]:
    """Return where files may be that are about this machine: the user's, and root's."""
    return (folder(environ, user), *(() if user == 0 else (MACHINE / PROGRAM,)))


def files(state_folder: Path) -> Iterator[Ledger]:
    """Give the files that are in a folder."""
    try:
        paths = sorted(state_folder.iterdir())
    except OSError:
        return
    for path in paths:
        if path.suffix == ".json" and UUID.fullmatch(path.stem):
            yield Ledger(path)


def alive(path: Path) -> bool:
    """Say whether a guardian, or a child of one, holds the lock beside a file; needs no more than to read it."""
    try:
        with path.with_suffix(".lock").open() as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def boot() -> str:
    """Return what names this start of the machine; empty where the kernel does not say."""
    return _line(BOOT)


def machine() -> str:
    """Return what names this machine; empty where it has no name."""
    return _line(MACHINE_ID)


def _line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _entry(values: Mapping[str, Any]) -> Entry:
    if values["version"] > VERSION:
        raise ValueError("it was written by a newer program")
    known = {name: value for name, value in values.items() if name in Entry.__dataclass_fields__}
    before = known.get("before")
    return Entry(**{**known, "undo": tuple(known["undo"]), "before": Pair(**before) if before else None})
