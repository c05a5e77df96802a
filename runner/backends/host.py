"""Environments that exist: measure what an interpreter of the user has installed, and install nothing."""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from typing_extensions import override

from runner.backends import Backend, Installed, Resources, Say
from runner.backends.local_channel import ProcessChannel
from runner.core.errors import Problem, UsageError
from runner.core.model import Limits, Provisioned, Spec, Survey
from runner.core.model.cells import without_control
from runner.core.paths import shortened
from runner.core.text import REASON_LENGTH, printable
from runner.harness.adapters import MODULES

FRAMEWORKS = (*(name for name in MODULES if name not in ("numpy", "torch7")), "numpy")
"""What an interpreter may have; NumPy comes with each of the others."""
PROBE = """
import importlib, importlib.util, sys
names = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is not None]
for name in names:
    try:
        module = importlib.import_module(name)
    except Exception as error:
        print(error, file=sys.stderr)
        continue
    print(name, module.__version__, '%d.%d' % sys.version_info[:2], ','.join(names))
    break
"""
"""Imports the first framework that it can, and prints it with those that are installed."""
PROBE_SECONDS = 120.0
LAST_BYTES = 64 * 1024  # of what the probe prints
_ANSWER = re.compile(
    r"(?P<framework>\w+) (?P<release>[\w.+!-]{1,100}) (?P<python>\d+\.\d+) (?P<installed>[\w,]+)", re.ASCII
)


class HostBackend(Backend):
    """Starts servers with the interpreter that the user named."""

    name = "host"
    limits_memory = False

    def __init__(self, python: str, folder: Path, framework: str | None = None) -> None:
        """Use the interpreter at ``python``; compiler caches go under ``folder``/caches.

        ``framework`` is measured; by default the first that can be imported.
        """
        if framework is not None and framework not in FRAMEWORKS:
            message = f"there is no framework {framework!r}"
            raise UsageError(Problem(message, hint=f"--framework takes {', '.join(FRAMEWORKS)}"))
        self.framework = framework
        path = shutil.which(python)
        if path is None:
            hint = "name an interpreter with --python PATH"
            raise UsageError(Problem(f"there is no interpreter {python!r}", hint=hint))
        self.python = str(Path(path).absolute())  # links are not followed: a virtual environment's python is one
        self.caches = folder / "caches"

    @classmethod
    def create(cls, resources: Resources) -> Self:
        """See Backend."""
        return cls(resources.python or "python3", resources.cache, resources.framework)

    @classmethod
    def refused_by_auto(cls) -> str:
        """See Backend: only a user chooses to measure an installed interpreter."""
        return "an installed interpreter is measured where it is asked for"

    @override
    def describe(self) -> None:
        """See Backend."""

    @override
    def restore(self, environment: str, digest: str) -> None:
        """See Backend: earlier contents of the interpreter are not kept."""

    @override
    def installed(self) -> Installed:
        """See Backend: the framework that was asked for, else the first that the interpreter can import."""
        names = [self.framework] if self.framework else list(FRAMEWORKS)
        try:
            code, out, err = _run([self.python, "-c", PROBE, *names], PROBE_SECONDS)
        except OSError as error:
            raise UsageError(Problem(f"{self.python} cannot be started: {error}")) from error
        except subprocess.TimeoutExpired as error:
            what = f"did not say within {PROBE_SECONDS:g} s which frameworks it has"
            raise UsageError(
                Problem(f"{self.python} {what}", hint="name another interpreter with --python PATH")
            ) from error
        answer = _ANSWER.fullmatch((out.strip().splitlines() or [""])[-1])  # after banners, if any
        if code or answer is None or answer["framework"] not in names:
            last = "".join(f"; {printable(line, REASON_LENGTH)}" for line in err.strip().splitlines()[-1:])
            what = f"cannot import {self.framework}" if self.framework else "imports no framework that can be measured"
            missing = self.framework or f"one of {', '.join(names)}"
            hint = f"install {missing} for it, or name another interpreter with --python PATH"
            raise UsageError(Problem(f"{self.python} {what}{last}", hint=hint))
        others = [name for name in FRAMEWORKS if name in answer["installed"].split(",")]
        return Installed(
            python=self.python,
            framework=answer["framework"],
            release=answer["release"],
            python_version=answer["python"],
            others=tuple(name for name in others if name not in (answer["framework"], "numpy")),
        )

    @override
    def survey(self, specs: Sequence[Spec]) -> Survey:
        """See Backend: nothing has to be made."""
        return Survey(cached=frozenset(spec.environment for spec in specs))

    @override
    def provision(self, spec: Spec, say: Say) -> Provisioned:
        say(f"using {self.python}")
        return Provisioned(
            environment=spec.environment,
            framework=spec.framework,
            handle=self.python,
            digest=f"host:{shortened(self.python)} {spec.framework}=={spec.release}",
            seconds=0.0,
            cached=True,
        )

    @override
    def cancel(self) -> None:
        """See Backend."""

    @override
    def cache(self, ready: Provisioned) -> str:
        """See Backend; a twin is the same interpreter, and compilers' results depend on variables."""
        return str(self.caches / without_control(ready.environment))

    @override
    def open(self, ready: Provisioned, limits: Limits) -> ProcessChannel:
        return ProcessChannel(ready.handle, limits.device, isolated=False, variables=ready.variables)

    @override
    def answers(self) -> bool:
        return True

    @override
    def close(self) -> None:
        """See Backend."""


def _run(command: Sequence[str], seconds: float) -> tuple[int, str, str]:
    """Run a command; return its exit code and the ends of stdout and stderr, however much it prints.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it did not end in time, and was killed.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        ends = (bytearray(), bytearray())
        readers = [
            threading.Thread(target=_keep_end, args=(stream, end), daemon=True)
            for stream, end in zip((process.stdout, process.stderr), ends, strict=True)
        ]
        try:
            for reader in readers:
                reader.start()
            code = process.wait(seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it started may hold the pipes open
            for reader in readers:
                reader.join(1.0)
    out, err = (end.decode("utf-8", "replace") for end in ends)
    return code, out, err


def _keep_end(stream: IO[bytes], end: bytearray) -> None:
    """Read a stream to its end; keep the last LAST_BYTES of it."""
    with suppress(ValueError, OSError):  # closed meanwhile
        while data := os.read(stream.fileno(), LAST_BYTES):
            end += data
            del end[:-LAST_BYTES]
