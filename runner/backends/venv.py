"""Environments as virtual environments of this machine's interpreters, for machines without an engine.

Interpreters that exist already are measured beside them, as they are.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from typing_extensions import override

from runner.backends import Backend, Installed, Resources, Say, harness_archive, installed, interpreters, uses
from runner.backends.local_channel import ProcessChannel
from runner.backends.lock_file import LOCK_BYTES, lock_skip, read_lock
from runner.backends.pip_log import pip_hint, pip_progress, without_logging_errors
from runner.core.errors import InterruptedRunError, Problem, ProvisionError
from runner.core.files import read_bounded
from runner.core.locks import exclusive
from runner.core.model import Limits, Provisioned, Skip, Spec, Survey
from runner.core.model.cells import without_control
from runner.core.outages import is_outage, is_passing_error, not_fetched
from runner.core.uninterrupted import uninterrupted

READY = ".ready"
LOCK_COPY = "lock.txt"
DIGITS = 12  # of a digest in the name of a folder
OLD_PIP = ("3.6", "3.5")
# The last for Python 3.6; that of its ensurepip does not know manylinux2014. The hash is that of the wheel on PyPI.
PIP_FOR_OLD = "pip==21.3.1 --hash=sha256:deaf32dcd9ab821e359cd8330786bcd077604b5c5730c0b096eda46f95c24a2d\n"
# A mirror may have to fetch a large wheel first; an index that does not answer costs about 2 s for each package.
PIP_PATIENCE = ("--retries", "3", "--timeout", "60")
LAST_LINES = 15
PIP_LOG = "pip.log"
OTHER_HASH = "DO NOT MATCH THE HASHES"
NO_VERSION = "No matching distribution found"
CANCELLED = "provisioning was cancelled"
OTHER = "another interpreter with python:PATH"


class VenvBackend(Backend):
    """Makes one venv for each lock and keeps it in the user's cache."""

    name = "venv"
    limits_memory = False

    def __init__(self, folder: Path, checkout: Path | None = None) -> None:
        """Keep environments under ``folder``/venvs and compiler caches under ``folder``/caches.

        Args:
            folder: the cache.
            checkout: the folder of the matrix file, whose uses of environments are noted; None notes nothing.
        """
        self._cache, self._checkout = folder, checkout
        self.folder = folder / "venvs"
        self.caches = folder / "caches"
        self.running: set[subprocess.Popen[str]] = set()
        self.cancelled = threading.Event()

    @classmethod
    def create(cls, resources: Resources) -> Self:
        """See Backend."""
        return cls(resources.cache, resources.dockerfiles.parent)

    @classmethod
    def refused_by_auto(cls) -> str:
        """See Backend: every machine has an interpreter."""
        return ""

    @override
    def installed(self) -> None:
        """See Backend."""

    @override
    def probe(self, source: str, environment: str, framework: str | None = None) -> Installed:
        python = installed.located(source, "name an interpreter with its path, such as python:/opt/conda/bin/python")
        return installed.probe(python, framework, OTHER)

    @override
    def describe(self) -> None:
        """See Backend."""

    @override
    def survey(self, specs: Sequence[Spec]) -> Survey:
        skips: dict[str, Skip] = {}
        cached: set[str] = set()
        for spec in specs:
            skip = self._skip(spec)
            if skip is not None:
                skips[spec.environment] = skip
            elif spec.interpreter or (self.home(spec) / READY).exists():
                cached.add(spec.environment)
        self.folder.mkdir(parents=True, exist_ok=True)
        return Survey(skips=skips, cached=frozenset(cached), free=shutil.disk_usage(self.folder).free)

    def _skip(self, spec: Spec) -> Skip | None:
        if spec.interpreter:
            return None
        if spec.image is not None:
            return Skip("no-engine", f"it is the image {spec.image}, which needs a container engine: start Docker")
        if (skip := lock_skip(spec)) is not None:
            return skip
        if spec.python is None:
            return Skip("no-interpreter", "matrix.yaml names no python for it")
        if interpreters.find(spec.python) is None:
            return Skip("no-interpreter", f"no Python {spec.python} was found: `{interpreters.remedy(spec.python)}`")
        return None

    def home(self, spec: Spec) -> Path:
        """Return the folder of an environment; its name depends on the lock and the interpreter."""
        assert spec.lock is not None
        assert spec.python is not None
        return self.folder / f"{spec.environment}-{self.digest(spec)[:DIGITS]}"

    def home_of(self, environment: str, digest: str) -> Path:
        """Return the folder of an environment with the content of a digest."""
        return self.folder / f"{environment}-{digest.removeprefix('sha256:')[:DIGITS]}"

    def digest(self, spec: Spec) -> str:
        """Return the hash of the lock and of the interpreter's path, which contains its release."""
        assert spec.lock is not None
        assert spec.python is not None
        return hashlib.sha256(
            read_bounded(spec.lock, LOCK_BYTES) + str(interpreters.find(spec.python)).encode()
        ).hexdigest()

    @override
    def provision(self, spec: Spec, say: Say) -> Provisioned:
        """See Backend. If two runners need the same environment, one makes it and the other waits."""
        if spec.interpreter:
            return installed.provisioned(spec, spec.interpreter, say)
        begin = time.monotonic()
        home = self.home(spec)
        cached = (home / READY).exists()
        try:
            if not cached:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._make_once(spec, home, say)
        except OSError as error:
            hint = f"check the free space and the permissions of {self.folder}"
            problem = Problem(f"cannot make the venv: {error}", hint=hint)
            raise ProvisionError("image-build", problem, passing=is_passing_error(error)) from error
        self._note_use(home)
        return Provisioned(
            environment=spec.environment,
            framework=spec.framework,
            handle=str(home / "bin" / "python"),
            digest="sha256:" + self.digest(spec),
            seconds=time.monotonic() - begin,
            cached=cached,
            lock=read_lock(spec.lock)[0] if spec.lock else b"",
        )

    def _note_use(self, home: Path) -> None:
        if self._checkout is not None:
            uses.note_use(self._cache, home.name, self._checkout)

    def _make_once(self, spec: Spec, home: Path, say: Say) -> None:
        """Make a venv, unless another runner has made it by the time that this one holds its lock."""
        lock = self.folder / f"{home.name}.lock"
        lock.touch()  # a folder that cannot be written to fails this environment, not the run
        with exclusive(lock, say, "another runner makes this environment", self._pause):
            self._pause(0.0)
            if not (home / READY).exists():
                self._make(spec, home, say)

    def _pause(self, seconds: float) -> None:
        """Wait some seconds; raise InterruptedRunError as soon as ``cancel`` was called."""
        if self.cancelled.wait(seconds):
            raise InterruptedRunError(CANCELLED)

    def _make(self, spec: Spec, home: Path, say: Say) -> None:
        assert spec.python is not None
        assert spec.lock is not None
        shutil.rmtree(home, ignore_errors=True)
        python = str(home / "bin" / "python")
        log = home / PIP_LOG
        pip = [
            python,
            "-I",  # a pip.py of the user's folder is not pip
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--log",
            str(log),
            "install",
            "--progress-bar",
            "off",
        ]
        content, locked = read_lock(spec.lock)
        no_deps = ["--no-deps"] if locked.needs_no_deps else []
        pip += ["--require-hashes", *no_deps, "--no-input", *PIP_PATIENCE, "-r"]
        try:
            self._run([str(interpreters.find(spec.python)), "-I", "-m", "venv", str(home)], say)
            if spec.python in OLD_PIP:
                (home / "pip.txt").write_text(PIP_FOR_OLD)
                # Where PIP_NO_CACHE_DIR is set, the pip that ensurepip installs fails without this option.
                self._install([*pip, str(home / "pip.txt"), "--no-cache-dir"], log, say)
            (home / LOCK_COPY).write_bytes(content)  # pip reads what was checked, whatever becomes of the lock
            self._install([*pip, str(home / LOCK_COPY)], log, say)
            if spec.added:
                lock = str(home / LOCK_COPY)
                self._run([python, "-I", str(harness_archive.ADDED), lock, lock, *spec.added], say)
            log.unlink(missing_ok=True)
            (home / READY).touch()
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise

    def _install(self, command: list[str], log: Path, say: Say) -> None:
        """Run pip, again after a hash that differs: up to 23.2 it takes a download that broke off for a whole file."""
        try:
            self._run(command, say, log)
        except ProvisionError as error:
            if OTHER_HASH not in error.log:
                raise
            self._run(command, say, log)

    def _run(self, command: list[str], say: Say, pip_log: Path | None = None) -> None:
        """Run a command and report pip's progress; raises ProvisionError with the last lines if it fails."""
        # Old source packages read their files in the encoding of the locale, and have non-ASCII ones.
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        with uninterrupted():  # a process that was started, and is not known here, would stay
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                env=environment,
                cwd=self.folder,  # nothing of the user's folder is imported, or read as a setting
            )
            self.running.add(process)
        try:
            if self.cancelled.is_set():
                raise InterruptedRunError(CANCELLED)
            assert process.stdout is not None
            lines: list[str] = []
            for line in without_logging_errors(process.stdout):
                lines = [*lines, line.rstrip()][-200:]
                if progress := pip_progress(line):
                    say(progress)
            if process.wait():
                if self.cancelled.is_set():
                    raise InterruptedRunError(CANCELLED)
                raise _failure(command, process.returncode, lines, pip_log)
        finally:
            _kill(process)
            self.running.discard(process)
            process.communicate()  # reads to the end, closes the pipe and waits

    @override
    def restore(self, environment: str, digest: str) -> str | None:
        home = self.home_of(environment, digest)
        if not (home / READY).exists():
            return None
        self._note_use(home)
        return str(home / "bin" / "python")

    @override
    def others_need(self, ready: Provisioned) -> tuple[str, ...]:
        if self._checkout is None or installed.is_as_it_is(ready):
            return ()
        home = Path(ready.handle).parent.parent
        return uses.Checkout(self._checkout).need(uses.noted_uses(self._cache, home.name)).others

    @override
    def cancel(self) -> None:
        self.cancelled.set()
        for process in tuple(self.running):
            _kill(process)

    @override
    def cache(self, ready: Provisioned) -> str:
        """See Backend; as of the host backend where an interpreter is measured as it is."""
        if installed.is_as_it_is(ready):
            return str(self.caches / without_control(ready.environment))
        return str(self.caches / Path(ready.handle).parent.parent.name)

    @override
    def open(self, ready: Provisioned, limits: Limits) -> ProcessChannel:
        if installed.is_as_it_is(ready):
            return installed.opened(ready, limits)
        return ProcessChannel(ready.handle, limits.device, variables=ready.variables)

    @override
    def answers(self) -> bool:
        return True

    @override
    def close(self) -> None:
        """See Backend."""


def _failure(command: list[str], code: int, lines: Sequence[str], pip_log: Path | None) -> ProvisionError:
    """Return the error of a command that failed: its last lines, and whether an outage is the cause."""
    last = "\n".join([line for line in lines if line.strip()][-LAST_LINES:])
    passing = code < 0 or is_outage(last)
    if pip_log is not None and NO_VERSION in last:
        passing = passing or is_outage(not_fetched(pip_log))
    if pip_log is None:
        hint = "run the command yourself: " + " ".join(command)
    else:  # pip was removed with the unfinished environment
        hint = pip_hint(last) or "the last lines of pip say why"
    return ProvisionError("image-build", Problem("cannot make the venv", hint=hint), log=last, passing=passing)


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
