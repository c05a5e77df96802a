"""A folder in which the real command line is run and broken, and the checks of what a fault leaves behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.core.locks import try_exclusive
from runner.core.paths import cache_folder
from runner.session.context import IN_USE
from runner.store.run import Run, runs
from runner.store.started import note_started
from tests.faults.fault import Fault, Kept
from tests.integration.conftest import ROOT, alive, containers, wait_for
from tests.support.options import with_last_values

ROUNDS = 2
HOST = ("--backend", "host", "--python", sys.executable)
SMALL = ("--device", "cpu", "--threads", "1", "--rounds", str(ROUNDS), "--seconds", "0.02", "--workload", "rnn-step")
SECONDS = 120
GONE_SECONDS = 45.0
"""Less than the minute after which what a fault has started ends by itself."""
LOCKS = ("measuring-cpu.lock", IN_USE)
STARTED = re.compile(r"[^\s`]+ -m runner ")
"""What messages write for ``runner `` here, where it is started as a module."""


@dataclass
class Bench:
    """A folder with a matrix, with its own cache, state and temporary folders.

    Attributes:
        folder: the working folder of the command line.
        environment: its variables.
        fault: what is broken; what is asserted of it.
        observed: what was observed, for the JSON.
    """

    folder: Path
    environment: dict[str, str]
    fault: Fault
    started: list["subprocess.Popen[str]"] = field(default_factory=list)
    observed: dict[str, Any] = field(default_factory=dict)
    prints: int = 0

    @property
    def reports(self) -> Path:
        """The folder of the runs."""
        return self.folder / "reports"

    @property
    def cache(self) -> Path:
        """The cache of the program."""
        return cache_folder(self.environment)

    @property
    def temporary(self) -> Path:
        """The folder of temporary files."""
        return Path(self.environment["TMPDIR"])

    def take_over(self, reports: Path) -> None:
        """Copy a reports folder here, as if its only run had been started here: a copy is not resumed otherwise."""
        shutil.copytree(reports, self.reports)
        (run,) = self.reports.glob("runs/[!.]*")
        note_started(Run(run), self.environment)

    def start(
        self,
        *arguments: str,
        pause: str = "",
        program: tuple[str, ...] = ("runner",),
        wrap: tuple[str, ...] = (),
        **streams: Any,
    ) -> "subprocess.Popen[str]":
        """Start the command line.

        Args:
            arguments: of the command line.
            pause: a function that it stops at, see ``paused``.
            program: the module that is started, with its first arguments.
            wrap: a command that starts it.
            streams: of the process, where they are not pipes.
        """
        if arguments[:1] in {("run",), ("nightly",)}:
            arguments = (*with_last_values(arguments), "--busy-ok")
        if pause:
            program = ("tests.faults.paused", pause, str(self.marker))
        self.prints += 1
        with (self.folder / f"stderr-{self.prints}").open("w") as printed:
            process = subprocess.Popen(
                [*wrap, sys.executable, "-m", *program, *arguments],
                cwd=self.folder,
                text=True,
                env=self.environment,
                **{"stdout": subprocess.PIPE, "stderr": printed, **streams},
            )
        self.started.append(process)
        return process

    def __call__(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run the command line to its end."""
        return self.end(self.start(*arguments, **options))

    def end(self, process: "subprocess.Popen[str]", seconds: float = SECONDS) -> "subprocess.CompletedProcess[str]":
        """Wait for the end of a command, and return how it ended."""
        out, _ = process.communicate(timeout=seconds)
        return subprocess.CompletedProcess(process.args, process.returncode, out, self.stderr())

    def stderr(self) -> str:
        """Return what the command that was started last has printed so far."""
        return (self.folder / f"stderr-{self.prints}").read_text(errors="replace")

    @property
    def marker(self) -> Path:
        """The file that appears when a command has stopped at a function."""
        return self.folder / "paused"

    def paused(self, process: "subprocess.Popen[str]") -> None:
        """Wait until a command has stopped at its function."""
        self.reached(process, self.marker.exists)

    def go_on(self) -> None:
        """Let a command that has stopped go on."""
        self.marker.with_name(f"{self.marker.name}.go").touch()

    def printed(self, process: "subprocess.Popen[str]", text: str) -> None:
        """Wait until a command has printed a text to stderr."""
        self.reached(process, lambda: text in self.stderr())

    def measured(self, process: "subprocess.Popen[str]", records: int = 1) -> None:
        """Wait until so many records count."""
        self.reached(process, lambda: len(self.events("measured")) >= records)

    def reached(self, process: "subprocess.Popen[str]", condition: Callable[[], object]) -> None:
        """Wait for a condition; fails with what was printed if the command ends before."""

        def either() -> object:
            return condition() or process.poll() is not None

        wait_for(either, SECONDS)
        assert process.poll() is None or condition(), self.stderr()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a name in the journals of all runs; a last line that is cut off is left out."""
        paths = sorted(self.reports.glob("runs/[!.]*/journal.jsonl"))
        lines = [line for path in paths for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    # What a fault leaves behind.

    def check(self, done: "subprocess.CompletedProcess[str]", *options: str) -> None:
        """Hold a command that a fault has hit to the declaration; ``options`` are those of the run, for a new one."""
        self.check_seen(done)
        self.check_cleaned()
        self.check_kept(*options)

    def check_seen(self, done: "subprocess.CompletedProcess[str]") -> None:
        """Check the exit code and what was printed."""
        self.observed |= {"exit": done.returncode, "printed": done.stderr.splitlines()[-12:]}
        assert done.returncode in self.fault.exits, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        printed, position = STARTED.sub("runner ", done.stderr), 0
        for sentence in self.fault.sees:
            assert sentence in printed[position:], printed
            position = printed.index(sentence, position) + len(sentence)

    def check_cleaned(self) -> None:
        """Check that no process, temporary folder, lock, half file or container is left."""
        wait_for(lambda: not self.processes(), GONE_SECONDS)
        wait_for(lambda: not list(self.temporary.glob("matrix-runner-*")), GONE_SECONDS)
        for name in LOCKS:
            if (self.cache / name).exists():
                with try_exclusive(self.cache / name) as free:
                    assert free, name
        if self.fault.exits != (-signal.SIGKILL,):  # what is killed cannot remove its file; no reader looks at it
            assert not list(self.reports.rglob("*.tmp"))
            assert not list(self.cache.glob("references/.*"))
        names = [path.name for path in self.reports.glob("runs/*")]
        if self.environment.get("FAULTS_ENGINE") and names:
            wait_for(lambda: not containers(*names), GONE_SECONDS)

    def processes(self) -> list[int]:
        """Return the processes that the commands of this folder started, however they got away from their parents."""
        ours = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                places = [(process / "environ").read_bytes(), bytes((process / "cwd").readlink())]
            except OSError:
                continue
            if any(str(self.temporary).encode() in text for text in places) and int(process.name) != os.getpid():
                ours.append(int(process.name))
        return [pid for pid in ours if alive(pid)]

    def check_kept(self, *options: str) -> None:
        """Check what is kept, by what the program itself does with it."""
        match self.fault.kept:
            case Kept.NOTHING:
                assert not self.events("measured")
                if options:
                    done = self("run", *options)
                    assert done.returncode == 0, done.stderr
                    self.check_complete(runs(self.reports)[0])
            case Kept.MISSING | Kept.RESUMABLE:
                self.check_resumes()
            case Kept.COMPLETE:
                self.check_complete(runs(self.reports)[0])
            case Kept.OTHERS | Kept.FAILED:
                run = runs(self.reports)[0]
                assert run.journal().ended == "done"
                states = Counter(record.status for record in run.records())
                assert states["failed"]
                assert bool(states["ok"]) == (self.fault.kept is Kept.OTHERS)
            case Kept.PAGE:
                run = runs(self.reports)[0]
                self.check_complete(run)
                assert self("report").returncode == 0
                assert (run.path / "index.html").exists()
            case _:
                pass  # the test checks it

    def check_resumes(self) -> None:
        """Resume the run: what was finished is not measured again, and in the end nothing is missing."""
        (run,) = runs(self.reports)
        if self.fault.kept is Kept.MISSING:
            assert run.journal().ended == "outage"
            assert {record.failure for record in run.records() if record.status == "failed"} == {"outage"}
        finished = run.journal().finished
        before = counted(run, finished)
        self.observed["records kept"] = len(list(run.journal().counting()))
        done = self("run", "--resume", run.id)
        assert done.returncode == 0, done.stderr
        assert counted(run, finished) == before
        self.check_complete(run)

    def check_complete(self, run: Run) -> None:
        """Check that each planned cell counts once in each round, and that all are good."""
        records = list(run.records())
        assert {record.status for record in records} == {"ok"}
        planned = [cell["id"] for cell in run.plan()["cells"] if cell["verdict"] == "run"]
        per_cell = Counter((record.cell.id, record.round) for record in records)
        assert set(per_cell.values()) == {1}
        assert {(name, number) for name in planned for number in range(1, ROUNDS + 1)} <= set(per_cell)
        assert run.journal().ended == "done"

    def close(self) -> None:
        """End what is still running; a test that failed may leave something."""
        for process in self.started:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)


def counted(run: Run, finished: frozenset[tuple[str, int]]) -> Mapping[tuple[str, int], str]:
    """Return the file of each record that counts, of the cases that are finished in their rounds."""
    records = {(entry.cell, entry.round): entry.file for entry in run.journal().counting()}
    cases = {f"/{case}/": number for case, number in finished}
    return {key: file for key, file in records.items() if any(c in key[0] and n == key[1] for c, n in cases.items())}


def variables(folder: Path) -> dict[str, str]:
    """Return the variables of a command line that has its own cache, state and temporary folders."""
    names = {"XDG_CACHE_HOME": "cache", "XDG_STATE_HOME": "state", "TMPDIR": "tmp"}
    for name in names.values():
        (folder / name).mkdir()
    private_paths = {variable: str(folder / name) for variable, name in names.items()}
    shared = cache_folder(os.environ) / "venvs"
    private = folder / "cache" / "matrix-runner"
    private.mkdir()
    (private / "venvs").symlink_to(shared)
    return {**os.environ, **private_paths, "PYTHONPATH": str(ROOT)}
