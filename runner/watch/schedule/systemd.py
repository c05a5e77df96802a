"""A systemd service and timer of a user."""

import re
from collections.abc import Sequence

from runner.core.errors import Problem, UsageError
from runner.watch.schedule.job import Job

STOP_SECONDS = 120  # to stop servers and to store the results
UNITS = "~/.config/systemd/user"

SERVICE = """\
# {name}.service
[Unit]
Description=Measure the releases of {folder} and compare with the last good run
# A confirmed regression fails this unit; `runner alerts` sends messages about it. OnFailure= can name a unit of yours.

[Service]
Type=oneshot
WorkingDirectory={folder}
{environment}
# Variables with passwords, such as MATRIX_RUNNER_HISTORY: NAME=value in this file, with mode 0600.
EnvironmentFile=-%E/matrix-runner/environment
ExecStart={command}
# systemd kills the guardian of a GPU's clocks together with a killed runner; this resets the clocks then.
ExecStopPost={after}
# The runner stops its servers itself; finished results are kept.
KillMode=mixed
KillSignal=SIGINT
TimeoutStartSec=infinity
TimeoutStopSec={stop}
"""
TIMER = """\
# {name}.timer
[Unit]
Description=Every night: {name}.service

[Timer]
OnCalendar=*-*-* {hour:02}:{minute:02}:00
AccuracySec=1s
# A night that this machine missed, because it was off, starts once when it is on again.
Persistent=true

[Install]
WantedBy=timers.target
"""


def units(job: Job) -> dict[str, str]:
    """Return the two units, by name; raises UsageError for a folder that systemd cannot work in."""
    folder = _plain(str(job.folder))
    service = SERVICE.format(
        name=job.name,
        folder=folder,
        environment="\n".join(f"Environment={quoted(variable)}" for variable in job.environment),
        command=_line(job.command),
        after=_line(job.after),
        stop=STOP_SECONDS,
    )
    hour, minute = job.at
    return {f"{job.name}.service": service, f"{job.name}.timer": TIMER.format(name=job.name, hour=hour, minute=minute)}


def quoted(word: str) -> str:
    r"""Return a word as systemd reads it back: in quotes where it has to be, with no specifier in it.

    >>> print(quoted("100%"), quoted('a "b" c'))
    100%% "a \"b\" c"
    """
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return escaped if re.fullmatch(r"[A-Za-z0-9_@%+=:,./*-]+", escaped) else f'"{escaped}"'


def _line(words: Sequence[str]) -> str:
    """Return a command as systemd reads it back; it replaces variables in all words but the first."""
    return " ".join([quoted(words[0]), *(quoted(word).replace("$", "$$") for word in words[1:])])


def _plain(path: str) -> str:
    """Return a path for a setting that knows no quotes; raises UsageError where it would be read as another one."""
    if path != path.strip() or path.endswith("\\"):
        hint = "rename the folder, or use --format cron"
        raise UsageError(Problem(f"systemd cannot work in the folder {path!r}", hint=hint))
    return path.replace("%", "%%")
