"""Interpreters that exist already, and are measured as they are: what they hold, and how they are started."""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from runner.backends import Installed, Say
from runner.backends.local_channel import ProcessChannel
from runner.core.errors import Problem, UsageError
from runner.core.model import Limits, Provisioned, Spec
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
AS_IT_IS = "host:"
"""Begins what identifies an interpreter that was not made by this program: its packages have no hashes."""
_ANSWER = re.compile(
    r"(?P<framework>\w+) (?P<release>[\w.+!-]{1,100}) (?P<python>\d+\.\d+) (?P<installed>[\w,]+)", re.ASCII
)


def framework_names(framework: str | None) -> list[str]:
    """Return the frameworks that a probe looks for, in order; raises UsageError where there is no such framework."""
    if framework is not None and framework not in FRAMEWORKS:
        message = f"there is no framework {framework!r}"
        raise UsageError(Problem(message, hint=f"--framework takes {', '.join(FRAMEWORKS)}"))
    return [framework] if framework else list(FRAMEWORKS)


def answer_of(line: str, names: Sequence[str], python: str, image: str = "") -> Installed | None:
    """Return what a line says that the probe printed; None where it is no answer.

    Args:
        line: of its stdout.
        names: the frameworks that it looked for.
        python: the interpreter.
        image: the image that it is in; empty on this machine.
    """
    answer = _ANSWER.fullmatch(line)
    if answer is None or answer["framework"] not in names:
        return None
    others = [name for name in FRAMEWORKS if name in answer["installed"].split(",")]
    return Installed(
        python=python,
        framework=answer["framework"],
        release=answer["release"],
        python_version=answer["python"],
        others=tuple(name for name in others if name not in (answer["framework"], "numpy")),
        image=image,
    )


def no_framework(source: str, names: Sequence[str], err: str, other: str) -> UsageError:
    """Return the error of an interpreter or an image that can import none of some frameworks.

    Args:
        source: the interpreter or the image.
        names: the frameworks that the probe looked for.
        err: what it wrote to stderr.
        other: what may be named instead, with its article.
    """
    last = "".join(f"; {printable(line, REASON_LENGTH)}" for line in err.strip().splitlines()[-1:])
    is_chosen = len(names) == 1
    what = f"cannot import {names[0]}" if is_chosen else "imports no framework that can be measured"
    missing = names[0] if is_chosen else f"one of {', '.join(names)}"
    return UsageError(Problem(f"{source} {what}{last}", hint=f"install {missing} for it, or name {other}"))


def located(python: str, hint: str) -> str:
    """Return the path of an interpreter, from its path or its name on PATH; raises UsageError where there is none."""
    path = shutil.which(python)
    if path is None:
        raise UsageError(Problem(f"there is no interpreter {python[:REASON_LENGTH]!r}", hint=hint))
    return str(Path(path).absolute())  # links are not followed: a virtual environment's python is one


def probe(python: str, framework: str | None, other: str) -> Installed:
    """Return what an interpreter of this machine holds.

    Args:
        python: its path.
        framework: what to measure; None for the first that it can import.
        other: how another one is named, for hints.

    Raises:
        UsageError: there is no such framework, or the interpreter has none or cannot be started.
    """
    names = framework_names(framework)
    try:
        code, out, err = _run([python, "-c", PROBE, *names], PROBE_SECONDS)
    except OSError as error:
        raise UsageError(Problem(f"{python} cannot be started: {error}")) from error
    except subprocess.TimeoutExpired as error:
        what = f"did not say within {PROBE_SECONDS:g} s which frameworks it has"
        raise UsageError(Problem(f"{python} {what}", hint=f"name {other}")) from error
    last = (out.strip().splitlines() or [""])[-1]  # after banners, if any
    answer = None if code else answer_of(last, names, python)
    if answer is None:
        raise no_framework(python, names, err, other)
    return answer


def provisioned(spec: Spec, python: str, say: Say) -> Provisioned:
    """Return an environment that is an interpreter as it is."""
    say(f"using {python}")
    return Provisioned(
        environment=spec.environment,
        framework=spec.framework,
        handle=python,
        digest=f"{AS_IT_IS}{shortened(python)} {spec.framework}=={spec.release}",
        seconds=0.0,
        cached=True,
    )


def is_as_it_is(ready: Provisioned) -> bool:
    """Return whether an environment is an interpreter that this program has not made."""
    return ready.digest.startswith(AS_IT_IS)


def opened(ready: Provisioned, limits: Limits) -> ProcessChannel:
    """Start a server with an interpreter as its user starts it: with user packages and PYTHONPATH."""
    return ProcessChannel(ready.handle, limits.device, isolated=False, variables=ready.variables)


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
