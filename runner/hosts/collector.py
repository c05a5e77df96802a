"""Add the blocks that workers return to the run of the driver, each as a whole; ``driver._take`` lets each in once."""

import errno
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, RecordError
from runner.core.files import read_bounded, write_whole
from runner.core.model import Record
from runner.core.model.cells import is_control
from runner.core.unfinished import hidden
from runner.store.events import BlockLease, MeasuredBlock
from runner.store.journal import Journal
from runner.store.records import record_of
from runner.store.run import Run
from runner.watch.imports.archives import Budget, runs_in_folder, unpack

FOLDER = "blocks"
"""Below the folder of an unfinished run: the archives that workers returned."""
MAX_LOG_BYTES = 1 << 20
OF_THIS_HOST = frozenset(
    [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE]
)
"""Numbers of an OSError that does not say that an archive is damaged: the run has to end, and to keep the archive."""


def open_leases(run: Run) -> dict[str, BlockLease]:
    """Return token -> lease of the blocks that were handed out and are not in the run; of each block, the last one."""
    journal = run.journal()
    return {lease.token: lease for case_id, lease in journal.leases.items() if case_id not in journal.blocks}


def archive_path(run: Run, lease: BlockLease) -> Path:
    """Return where the run has what the worker of a lease returned."""
    return run.path / FOLDER / f"{lease.case_id.replace('/', '~')}.{lease.number}.tar.gz"


def save(run: Run, lease: BlockLease, archive: bytes) -> Path:
    """Write what a worker returned to the run's folder, and return the path; it is on disk when this returns.

    Raises:
        OSError: it cannot be written.
    """
    path = archive_path(run, lease)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, archive)
    return path


class Collector:
    """Adds the blocks of other hosts to a run."""

    def __init__(self, run: Run) -> None:
        """Continue with what the run has; the caller holds its lock."""
        self.run = run
        self.environments = dict(run.environments())

    def add(self, lease: BlockLease, archive: Path) -> tuple[Record, ...]:
        """Add the records of a block to the run, and return them.

        Its lines enter the journal together, so that a block is complete or is not there at all. The caller has made
        sure that the run does not have it: a block that is added twice is counted twice.

        Raises:
            RecordError: the archive is damaged, or has records of another case or of another kind of device; it is
                removed, and nothing is added.
            OSError: this host has no room, or another trouble of its own; the archive is kept.
        """
        try:
            with _unpacked(self.run, archive) as block:
                lease, journal, environments = _as_measured(lease, block), block.journal(), block.environments()
                machine = block.machine()
                stored = [*journal.set_aside(), *journal.counting()]
                all_records = map(record_of, block.quick_records(journal, entries=stored))
                records = tuple(self._of_run(record, lease, machine) for record in all_records)
                logged = (each for each in records if each.status != "ok" or each.facts.get("model_files"))
                logs = {record.cell.id: _log(block, record) for record in logged}
        except RecordError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in OF_THIS_HOST:
                raise error.__cause__ from error
            archive.unlink(missing_ok=True)
            raise
        self._add_environments(environments, lease.host)
        self.run.add_block(records, logs, [*_events(lease, journal), _block_event(lease, environments)])
        return records[len(journal.set_aside()) :]

    def _of_run(self, record: Record, lease: BlockLease, machine: Mapping[str, Any]) -> Record:
        """Return a record of a block as one of the run, with the host and the kind of device that measured it."""
        if record.cell.case_id != lease.case_id:
            raise RecordError(Problem(f"{lease.host} returned a record of {record.cell.id} for {lease.case_id}"))
        name = machine.get("cpu") if record.facts.get("device") == "cpu" else record.facts.get("device")
        facts = {**record.facts, "host": lease.host, "device_name": name or lease.device_name}
        return replace(record, run=self.run.id, attempt=_attempt(record.attempt, lease), facts=facts)

    def _add_environments(self, environments: Mapping[str, Any], host: str) -> None:
        """Store the facts of new environments, and which others have another build on this host than on the first."""
        known = {**environments, **self.environments}
        for name, facts in environments.items():
            if _build(facts) != _build(known[name]):
                others = {*known[name].get("other_builds", ()), f"{_build(facts)[:19]} on {host}"}
                known[name] = {**known[name], "other_builds": sorted(others)}
        if known != self.environments:
            self.environments = known
            self.run.write_environments(self.environments)

    def add_saved(self, say: Callable[[str], None] = lambda _: None) -> None:
        """Add the blocks whose archives a driver saved before it died, and that are not in the run yet.

        Args:
            say: takes a sentence for each; a block whose archive is damaged is measured again.

        Raises:
            OSError: this host has no room, or another trouble of its own.
        """
        for lease in open_leases(self.run).values():
            archive = archive_path(self.run, lease)
            if archive.is_file():
                try:
                    self.add(lease, archive)
                    say(f"{lease.case_id}: measured before, and added to the run now")
                except RecordError as error:
                    say(f"{lease.case_id}: not measured on {lease.host}: {error.problems[0].message}")

    def remove_archives(self) -> None:
        """Remove the archives of a run whose blocks have all entered the journal."""
        shutil.rmtree(self.run.path / FOLDER, ignore_errors=True)


def _events(lease: BlockLease, journal: Journal) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the canary, the finished rounds and the times of a block, as events of the run."""
    for case_id, number, seconds in journal.canary:
        yield "canary", {"case": case_id, "round": number, "seconds": seconds}
    for case_id, number in sorted(journal.finished):
        yield "round", {"case": case_id, "round": number}
    for marked in journal.disturbances:
        yield "disturbed", replace(marked, attempt=_attempt(marked.attempt, lease)).event()
    for number, times in journal.times:
        yield "times", {"device": lease.device, "round": number, "seconds": dict(times)}


def _attempt(of_block: int, lease: BlockLease) -> int:
    """Return the attempt of a record in the run, whose block was handed out so often."""
    return lease.number + of_block - 1


def _block_event(lease: BlockLease, environments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the event of a complete block."""
    block = MeasuredBlock(
        case=lease.case_id,
        lease=lease.number,
        host=lease.host,
        device=lease.device,
        device_name=lease.device_name,
        digests={name: _build(facts) for name, facts in environments.items()},
        not_pulled={name: str(facts["not_pulled"]) for name, facts in environments.items() if "not_pulled" in facts},
    )
    return "block", block.event()


def _as_measured(lease: BlockLease, block: Run) -> BlockLease:
    """Return a lease with the host and the device that measured: Slurm chooses both anew for each job.

    Raises:
        RecordError: the device is of another kind than the one that the block was planned for.
    """
    header = block.journal().header
    name = header.get("device_name", lease.device_name)
    host = block.machine().get("host") or lease.host
    if name != lease.device_name:
        advice = "give the driver devices of one kind, with `constraint` in the address of Slurm"
        raise RecordError(Problem(f"{host} measured on {name} instead of {lease.device_name}: {advice}"))
    return replace(lease, host=host, device=header.get("device", lease.device))


def _log(block: Run, record: Record) -> str:
    path = block.path / "logs" / f"{record.cell.id.replace('/', '~')}.log"
    try:
        return read_bounded(path, MAX_LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _build(facts: Mapping[str, Any]) -> str:
    """Return the digest of an environment: that of the team's registry, or else that of its content on the host.

    Engines with different image stores give the same image of a registry different ids.
    """
    return str(facts.get("team_image") or facts.get("digest", "")).rpartition("@")[2]


def different_builds(run: Run) -> tuple[str, ...]:
    """Return a sentence for each environment whose content differs between the hosts of a run."""
    hosts: dict[str, dict[str, str]] = {}
    for block in run.journal().blocks.values():
        for name, digest in block.digests.items():
            if not is_control(name):
                reason = block.not_pulled.get(name)
                host = f"{block.host} (not pulled: {reason})" if reason else block.host
                hosts.setdefault(name, {}).setdefault(digest, host)
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
    folder = hidden(run.path / FOLDER / "block")
    try:
        unpack(archive, folder, Budget())
        blocks = runs_in_folder(folder)
        if len(blocks) != 1:
            raise RecordError(Problem(f"{archive} holds {len(blocks)} runs instead of one"))
        yield Run.open(blocks[0])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
