"""A systemd service and timer, or a crontab line, that runs `runner nightly` in this folder."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.core.errors import Problem, UsageError

PASSED_ON = (
    "PATH",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "PYTHONPATH",
    "CUDA_VISIBLE_DEVICES",
)
"""Variables of this shell that a night needs; neither systemd nor cron passes them on."""
STOP_SECONDS = 120  # to stop servers and to store the results
MAX_COMMAND = 990  # characters of a crontab's command; cron takes 1000
CRONTAB = "crontab"
UNITS = "~/.config/systemd/user"

SERVICE = """\
# {name}.service
[Unit]
Description=Measure the releases of {folder} and compare with the last good run
# A confirmed regression fails this unit. To be notified, name a unit of yours:
# OnFailure=

[Service]
Type=oneshot
WorkingDirectory={folder}
{environment}
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

[Install]
WantedBy=timers.target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A scheduled `runner nightly`.

    Attributes:
        python: absolute path of the interpreter that has the runner.
        folder: the working folder, so that relative paths in ``words`` keep their meaning.
        words: the options of ``runner nightly``.
        at: hour and minute, local time.
        environ: this shell's environment.
    """

    python: str
    folder: Path
    words: tuple[str, ...]
    at: tuple[int, int]
    environ: Mapping[str, str]

    @property
    def command(self) -> tuple[str, ...]:
        """The command, as a list of words."""
        return (self.python, "-m", "runner", "nightly", *self.words)

    @property
    def after(self) -> tuple[str, ...]:
        """The command that runs after the night, however it ended."""
        return (self.python, "-m", "runner", "clocks", "reset")

    @property
    def name(self) -> str:
        """The name of the units, different for each folder."""
        return "matrix-runner-" + (re.sub(r"[^A-Za-z0-9_.-]+", "-", self.folder.name).strip("-.") or "root")

    @property
    def environment(self) -> tuple[str, ...]:
        """``NAME=value`` for each variable that the night needs."""
        return tuple(f"{name}={self.environ[name]}" for name in PASSED_ON if self.environ.get(name))


def clock(text: str) -> tuple[int, int]:
    """Return hour and minute; raises UsageError where the text is no time of day.

    >>> clock("02:30")
    (2, 30)
    """
    match = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", text)
    if not match:
        raise UsageError(Problem(f"cannot read {text!r} as a time of day", hint="write 02:30"))
    return int(match[1]), int(match[2])


def files(job: Job, form: str) -> dict[str, str]:
    """Return the files that a format needs, by name: two units, or a crontab.

    Raises:
        UsageError: the format cannot hold a path or a word.
    """
    for word in (*job.command, str(job.folder), *job.environment):
        if re.search(r"[\0-\37\177]", word):
            raise UsageError(Problem(f"{word!r} holds a control character, which {form} cannot hold", hint="rename it"))
    if form == "cron":
        return {CRONTAB: _crontab(job)}
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


def _crontab(job: Job) -> str:
    """Return the line of a crontab, where a percent sign would end the command."""
    words = ["env", *job.environment, *job.command] if job.environment else list(job.command)
    command = f"cd {shlex.quote(str(job.folder))} && exec {shlex.join(words)}"
    command = command.replace("\\%", "\\''%").replace("%", "\\%")  # cron reads \% as %, and \\% as the end
    if len(command) > MAX_COMMAND:
        what = f"the command has {len(command)} characters, and cron takes {MAX_COMMAND}"
        raise UsageError(Problem(what, hint="use --format systemd, or a shorter PATH"))
    hour, minute = job.at
    return f"{minute} {hour} * * * {command}\n"


def advice(job: Job, form: str, output: Path | None) -> str:
    """Return where the files belong, and the commands that enable them."""
    if form == "cron":
        return "add the line with `crontab -e`; cron mails what a night prints, and does not look at its exit code"
    steps = [] if output else [f"put the two units into {UNITS}, as -o {UNITS} does; then:"]
    steps += [
        "systemctl --user daemon-reload",
        f"systemctl --user enable --now {job.name}.timer",
        "`loginctl enable-linger` lets it run while you are logged out",
    ]
    return "\n".join(steps)
