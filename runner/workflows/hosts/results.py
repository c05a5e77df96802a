"""Add the blocks that workers return to the run of the driver: each exactly once, however often it arrives."""

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, RecordError, file_problem
from runner.core.files import read_bounded, write_whole
from runner.core.model import Cell, Record
from runner.core.model.cells import is_twin
from runner.store.journal import Journal
from runner.store.run import Run
from runner.workflows.imports.archives import Budget, runs_in_folder, unpack

FOLDER = "blocks"
"""Below the folder of a run: the archives that workers returned."""
MAX_LOG_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A block that was handed out.

    Attributes:
        case_id: the case of the block.
        number: counts the leases of the block from 1; the attempt of its records.
        token: 32 hexadecimal digits, different for each lease.
        host: the name of the host.
        device: ``cpu``, or the UUID of the GPU.
        device_name: the processor or the GPU.
    """

    case_id: str
    number: int
    token: str
    host: str
    device: str
    device_name: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "Lease":
        """Return the lease of a ``leased`` event of the journal."""
        names = ("token", "host", "device", "device_name")
        return cls(case_id=event["case"], number=event["lease"], **{name: event[name] for name in names})

    def event(self) -> dict[str, Any]:
        """Return the fields of its ``leased`` event."""
        fields = asdict(self)
        return {"case": fields.pop("case_id"), "lease": fields.pop("number"), **fields}


def archive_path(run: Run, lease: Lease) -> Path:
    """Return where the run has what the worker of a lease returned."""
    return run.path / FOLDER / f"{lease.case_id.replace('/', '~')}.{lease.number}.tar.gz"


def save(run: Run, lease: Lease, archive: bytes) -> Path:
    """Write what a worker returned to the run's folder, and return the path; it is on disk when this returns.

    Raises:
        RecordError: it cannot be written.
    """
    path = archive_path(run, lease)
    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, archive)
    except OSError as error:
        raise RecordError(file_problem(error, path)) from error
    return path


class Collector:
    """Adds the blocks of other hosts to a run."""

    def __init__(self, run: Run) -> None:
        """Continue with what the run has; the caller holds its lock."""
        self.run = run
        self.environments = dict(run.environments())
        self.unmerged = _unmerged(run)

    def add(self, lease: Lease, archive: Path) -> tuple[Record, ...]:
        """Add the records of a block, and note that the block is complete; return the records.

        What a driver that died has stored of the same archive is not stored again.

        Raises:
            RecordError: the archive is damaged, or has records of another case.
        """
        with _unpacked(self.run, archive) as block:
            journal, records = block.journal(), []
            machine = block.machine()
            for record in block.records(journal):
                added = self._of_run(record, lease, machine)
                records.append(added)
                if (added.cell.id, added.round, added.attempt) not in self.unmerged:
                    self.run.add(added, _log(block, added) if added.status != "ok" else "")
            self._add_events(lease, journal)
            environments = block.environments()
        self._add_environments(environments)
        digests = {name: str(facts.get("digest", "")) for name, facts in environments.items()}
        event = {name: value for name, value in lease.event().items() if name != "token"}
        self.run.note("block", **event, digests=digests)
        return tuple(records)

    def _of_run(self, record: Record, lease: Lease, machine: Mapping[str, Any]) -> Record:
        """Return a record of a block as one of the run, with the host and the kind of device that measured it."""
        if record.cell.case_id != lease.case_id:
            raise RecordError(Problem(f"{lease.host} returned a record of {record.cell.id} for {lease.case_id}"))
        name = machine.get("cpu") if record.facts.get("device") == "cpu" else record.facts.get("device")
        facts = {**record.facts, "host": machine.get("host") or lease.host, "device_name": name or lease.device_name}
        return replace(record, run=self.run.id, attempt=lease.number, facts=facts)

    def _add_events(self, lease: Lease, journal: Journal) -> None:
        """Note the canary, the finished rounds and the times of a block."""
        for case_id, number, seconds in journal.canary:
            self.run.note("canary", case=case_id, round=number, seconds=seconds)
        for case_id, number in sorted(journal.finished):
            self.run.note("round", case=case_id, round=number)
        for number, times in journal.times:
            self.run.note("times", device=lease.device, round=number, seconds=dict(times))

    def _add_environments(self, environments: Mapping[str, Any]) -> None:
        new = {name: facts for name, facts in environments.items() if name not in self.environments}
        if new:
            self.environments |= new
            self.run.write_environments(self.environments)

    def add_saved(self) -> None:
        """Add the blocks whose archives a driver saved before it died, and that are not in the run yet."""
        journal = self.run.journal()
        for case_id, event in journal.leases.items():
            lease = Lease.of(event)
            if case_id not in journal.blocks and archive_path(self.run, lease).is_file():
                self.add(lease, archive_path(self.run, lease))


def _unmerged(run: Run) -> frozenset[tuple[str, int, int]]:
    """Return (cell, round, attempt) of the records of blocks that are not complete."""
    journal = run.journal()
    return frozenset(
        (entry.cell, entry.round, entry.attempt)
        for entry in journal.entries
        if Cell.parse(entry.cell).case_id not in journal.blocks
    )


def _log(block: Run, record: Record) -> str:
    path = block.path / "logs" / f"{record.cell.id.replace('/', '~')}.log"
    try:
        return read_bounded(path, MAX_LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def different_builds(run: Run) -> tuple[str, ...]:
    """Return a sentence for each environment whose content differs between the hosts of a run."""
    hosts: dict[str, dict[str, str]] = {}
    for event in run.journal().blocks.values():
        for name, digest in event["digests"].items():
            if not is_twin(name):
                hosts.setdefault(name, {}).setdefault(digest, event["host"])
    return tuple(
        f"{name} is not the same on all hosts: "
        + ", ".join(f"{digest[:19]} on {host}" for digest, host in sorted(builds.items(), key=lambda item: item[1]))
        for name, builds in sorted(hosts.items())
        if len(builds) > 1
    )


@contextmanager
def _unpacked(run: Run, archive: Path) -> Iterator[Run]:
    """Give the run in an archive, in a folder that is removed at the end.

    Raises:
        RecordError: it is damaged, or holds no run or several.
    """
    folder = run.path / f".{secrets.token_hex(8)}.tmp"
    try:
        unpack(archive, folder, Budget())
        blocks = runs_in_folder(folder)
        if len(blocks) != 1:
            raise RecordError(Problem(f"{archive} holds {len(blocks)} runs instead of one"))
        yield Run.open(blocks[0])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
