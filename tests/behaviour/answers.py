"""What a command answers: exit codes, what it prints, and the files that it leaves, without what varies by nature."""

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.behaviour.commands import Command

TEXTS = frozenset({"", ".json", ".jsonl", ".md", ".csv", ".html", ".svg", ".yml", ".yaml", ".txt", ".toml", ".log"})
TEXTS |= {".service", ".timer"}
SHIPPED = ("matrix.yaml", "docker", "examples", "docs/machines", "README.md", "reports/examples")
IGNORED = frozenset({"history.db-wal", "history.db-shm"})
FORKED = Path(__file__).with_name("forked.py")
THREAD = threading.local()
RUN_ID = re.compile(r"\b(\d{8}-\d{6})-[0-9a-f]{4}\b")
MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)?")
VARYING = (
    (re.compile(r"[\d.]+ [GT]B (are free|free in)"), r"N GB \1"),
    (re.compile(r"[\d.]+ GiB of ([\d.]+) GiB available"), r"N GiB of \1 GiB available"),
    (re.compile(r"Traceback \(most recent call last\):\n(?: .*\n)+"), "Traceback\n"),
    (re.compile(r"^\S+\.py:\d+: (\w+Warning: .*)\n  .*$", re.MULTILINE), r"\1"),
    (re.compile(r'"(checksum|sha256|pid|[a-z_]*free_bytes|[a-z_]*available_bytes)": ("[0-9a-f]+"|\d+)'), r'"\1": 0'),
    (re.compile(r'"load_average": \[[^]]*\]'), '"load_average": []'),
    (re.compile(r"^noisy {3}(other load|stolen time)[^\n]*(\n {10,}[^\n]*)*", re.MULTILINE), r"\1"),
    (re.compile(r"\bpid \d+|process \d+"), "process N"),
    (re.compile(r"0x[0-9a-f]{8,}"), "0xN"),
    (re.compile(r"\bin \d+(\.\d+)? m?s\b"), "in N s"),
)
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")
NOISY = re.compile(r"measured|now:|waiting|trust|remain|next:|busy|clear|faster|slower|can't tell|same|would help|tune")


@dataclass(frozen=True)
class Places:
    """Where the code, its interpreter and the material are."""

    tree: Path
    python: Path
    stored: Path
    bytecode: Path
    started: datetime

    def answer(self, command: Command) -> str:
        """Run the steps of a command in a copy of its folder, and return all that they answered."""
        with tempfile.TemporaryDirectory(prefix="behaviour-") as name:
            base = Path(name).resolve()
            work = base / "work"
            self._fill(work, command)
            sections = [text for step in command.steps for text in self._step(step, base, command)]
        return "".join(sections)

    def _fill(self, work: Path, command: Command) -> None:
        if command.folder:
            shutil.copytree(self.stored / command.folder, work, symlinks=True)
        for shipped in () if command.folder else SHIPPED:
            source, target = self.tree / shipped, work / shipped
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)
        cache, shared = work.parent / "cache/matrix-runner", self.stored / "measured/cache/matrix-runner"
        cache.mkdir(parents=True)
        for part in ("venvs", "references"):
            (cache / part).symlink_to(shared / part)

    def _step(self, step: str, base: Path, command: Command) -> Iterator[str]:
        work = base / "work"
        before = _files(work)
        code = self._run(step, base, live=command.live)
        out, err = (self._plain((base / name).read_text("utf-8", "backslashreplace"), base) for name in ("out", "err"))
        ending = "0 or 1" if command.live and code in {0, 1} else code  # as the noise decides
        if command.live:
            out, err = _shape_of_text(out), "\n".join(line for line in err.splitlines() if line.startswith("error"))
        yield f"\n##### {step}\n### exit {ending}\n### stdout\n{out}\n### stderr\n{err}\n"
        after = _files(work)
        for path in sorted({*before, *after}):
            if before.get(path) != after.get(path):
                what = _content(work / path, live=command.live) if path in after else "removed"
                yield f"### file {self._plain(path, base)}\n{self._plain(what, base)}\n"

    def _run(self, step: str, base: Path, *, live: bool) -> int:
        """Run a step, and return its exit code; one that measures runs in a process that was not forked."""
        work, streams = base / "work", {name: str(base / name) for name in ("out", "err")}
        code = step if step.startswith("import runner") else ""
        words = [] if code else self._words(step, work)
        environment = self._environment(base)
        if not live:
            request = {"words": words, "code": code, "folder": str(work), "environment": environment, **streams}
            return self._forked(request)
        with Path(streams["out"]).open("wb") as out, Path(streams["err"]).open("wb") as err:
            command = [str(self.python), "-m", "runner", *words]
            return subprocess.run(
                command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False
            ).returncode

    def _forked(self, request: Mapping[str, object]) -> int:
        """Run a step in a fork of a process that has imported the program; each thread has such a process."""
        process = getattr(THREAD, "process", None)
        if process is None:
            environment = self._environment(Path(os.devnull).parent)
            process = THREAD.process = subprocess.Popen(
                [str(self.python), str(FORKED)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    def _words(self, step: str, work: Path) -> list[str]:
        words = shlex.split(step.replace("{python}", str(self.python)))
        matches = {
            word: sorted(str(path.relative_to(work)) for path in work.glob(word)) for word in words if "*" in word
        }
        return [each for word in words for each in matches.get(word) or [word]]

    def _environment(self, base: Path) -> Mapping[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("MATRIX_RUNNER", "XDG", "PYTHON"))
        }
        folders = {"HOME": "home", "XDG_CACHE_HOME": "cache", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config"}
        code = {"PYTHONPATH": str(self.tree), "PYTHONPYCACHEPREFIX": str(self.bytecode), "PYTHONHASHSEED": "0"}
        fixed = {"COLUMNS": "120", "DOCKER_HOST": "unix:///nowhere/docker.sock"}
        return kept | code | fixed | {name: str(base / folder) for name, folder in folders.items()}

    def _plain(self, text: str, base: Path) -> str:
        """Return a text without what varies by nature: paths, new runs and times, processes, and free space."""
        places = {base / "work": "WORK", base: "BASE", self.stored: "STORED", self.tree: "TREE", self.python: "PYTHON"}
        for path, word in places.items():
            text = text.replace(str(path), word)
        text = RUN_ID.sub(lambda run: "NEW-RUN" if self._is_new(run[1], "%Y%m%d-%H%M%S") else run[0], text)
        text = MOMENT.sub(
            lambda matches: "NOW" if self._is_new(f"{matches[1]} {matches[2]}", "%Y-%m-%d %H:%M:%S") else matches[0],
            text,
        )
        return masked(text)

    def _is_new(self, moment: str, form: str) -> bool:
        try:
            known = datetime.strptime(moment, form).replace(tzinfo=UTC)
        except ValueError:
            return False
        return self.started <= known <= datetime.now(UTC) + timedelta(seconds=2)


def masked(text: str) -> str:
    """Return a text without measured values of the machine, processes and places in code."""
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    return text


def _files(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return what tells whether a file was written; a database is when its rows are others."""
    files: dict[str, tuple[object, ...]] = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in IGNORED:
            status = path.stat()
            state = (status.st_size, status.st_mtime_ns)
            files[str(path.relative_to(folder))] = (_rows(path),) if path.suffix == ".db" else state
    return files


def _rows(path: Path) -> str:
    """Return the rows of a database as statements, or why it is none."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        try:
            return "\n".join(connection.iterdump())
        except sqlite3.DatabaseError as error:
            return str(error)


def _content(path: Path, *, live: bool) -> str:
    """Return a file's text, the rows of a database, or the checksum of anything else; of a live one, its shape."""
    if path.suffix == ".db":
        return "" if live else _rows(path)
    if path.suffix not in TEXTS:
        return "" if live else hashlib.sha256(path.read_bytes()).hexdigest()
    text = path.read_text("utf-8", "backslashreplace")
    if not live:
        return text
    if path.suffix not in {".json", ".jsonl"}:
        return ""
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    return "\n".join(sorted({key for line in lines for key in _keys(json.loads(line))}))


def _keys(value: Any, before: str = "") -> Iterator[str]:
    items = (
        value.items() if isinstance(value, dict) else (("", each) for each in value) if isinstance(value, list) else ()
    )
    yield f"{before}: {type(value).__name__}"
    for name, item in items:
        yield from _keys(item, f"{before}/{name}")


def _shape_of_text(text: str) -> str:
    try:
        return "\n".join(sorted(set(_keys(json.loads(text)))))
    except ValueError:
        return "\n".join(NUMBER.sub("N", line) for line in text.splitlines() if not NOISY.search(line))
