"""What is scheduled: a `runner nightly` with its options, folder, time of day and variables."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.core.errors import Problem, UsageError
from runner.history.location import secrets_of

PASSED_ON = (
    "PATH",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "PYTHONPATH",
    "CUDA_VISIBLE_DEVICES",
    "MATRIX_RUNNER_ALERTS_FILE",
    "MATRIX_RUNNER_HISTORY",
)
"""Variables of this shell that a night needs; neither systemd nor cron passes them on."""
SECRETS = ("MATRIX_RUNNER_ALERTS", "MATRIX_RUNNER_HISTORY")
"""Variables that may hold passwords: CI gets them as secrets, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledNight:
    """A scheduled `runner nightly`.

    Attributes:
        python: absolute path of the interpreter that has the runner.
        folder: the working folder, so that relative paths in ``words`` keep their meaning.
        words: the options of ``runner nightly``.
        at: hour and minute, local time; of CI services, UTC.
        environ: this shell's environment.
    """

    python: str
    folder: Path
    words: tuple[str, ...]
    at: tuple[int, int]
    environ: Mapping[str, str]

    @property
    def _program(self) -> tuple[str, ...]:
        """How the runner starts: without modules of the working folder, whatever is checked out there."""
        return (self.python, "-P", "-m", "runner")

    @property
    def command(self) -> tuple[str, ...]:
        """The command, as a list of words."""
        return (*self._program, "nightly", *self.words)

    @property
    def if_missed(self) -> tuple[str, ...]:
        """The command that measures a night only if the last one was missed."""
        hour, minute = self.at
        return (*self._program, "nightly", "--if-missed", f"{hour:02}:{minute:02}", *self.words)

    @property
    def names_reports(self) -> bool:
        """Whether the options name the folder of the reports."""
        return any(word.partition("=")[0] == "--reports" for word in self.words)

    @property
    def after(self) -> tuple[str, ...]:
        """The command that runs after the night, however it ended."""
        return (*self._program, "clocks", "reset")

    @property
    def name(self) -> str:
        """The name of the units, different for each folder."""
        return "matrix-runner-" + (re.sub(r"[^A-Za-z0-9_.-]+", "-", self.folder.name).strip("-.") or "root")

    @property
    def environment(self) -> tuple[str, ...]:
        """``NAME=value`` for each variable that the night needs, without those whose value holds a password."""
        return tuple(
            f"{name}={self.environ[name]}" for name in PASSED_ON if name not in self.secrets and self.environ.get(name)
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The variables of this shell that hold secrets, which no file may have."""
        return tuple(name for name in SECRETS if holds_secret(name, self.environ.get(name, "")))


def holds_secret(name: str, value: str) -> bool:
    """Return whether the value of a variable holds a secret; addresses for alerts always do.

    >>> holds_secret("MATRIX_RUNNER_HISTORY", "postgresql://ann:pw@host/db"), holds_secret("PATH", "/bin")
    (True, False)
    """
    if not value:
        return False
    return name == "MATRIX_RUNNER_ALERTS" or bool(secrets_of(value))


def clock(text: str) -> tuple[int, int]:
    """Return hour and minute; raises UsageError where the text is no time of day.

    >>> clock("02:30")
    (2, 30)
    """
    match = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", text)
    if not match:
        raise UsageError(Problem(f"cannot read {text!r} as a time of day", hint="write 02:30"))
    return int(match[1]), int(match[2])
