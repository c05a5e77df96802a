"""Quote words for systemd, cron, shells and GitHub: the filters of the templates."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runner.core.errors import Problem, UsageError
from runner.watch.schedule.scheduled_night import ScheduledNight

MAX_COMMAND = 990  # characters of a crontab's command; cron takes 1000


def systemd_word(word: str) -> str:
    r"""Return a word as systemd reads it back: in quotes where it has to be, with no specifier in it.

    >>> print(systemd_word("100%"), systemd_word('a "b" c'))
    100%% "a \"b\" c"
    """
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return escaped if re.fullmatch(r"[A-Za-z0-9_@%+=:,./*-]+", escaped) else f'"{escaped}"'


def systemd_command(words: Sequence[str]) -> str:
    """Return a command as systemd reads it back; it replaces variables in all words but the first."""
    return " ".join([systemd_word(words[0]), *(systemd_word(word).replace("$", "$$") for word in words[1:])])


def systemd_path(folder: Path) -> str:
    """Return a path for a setting that knows no quotes; raises UsageError where it would be read as another one."""
    path = str(folder)
    if path != path.strip() or path.endswith("\\"):
        hint = "rename the folder, or use --format cron"
        raise UsageError(Problem(f"systemd cannot work in the folder {path!r}", hint=hint))
    return path.replace("%", "%%")


def cron(words: Sequence[str], night: ScheduledNight) -> str:
    """Return a command in the folder of a night, for a crontab, where a percent sign would end it.

    Raises:
        UsageError: it is too long for cron.
    """
    words = ["env", *night.environment, *words] if night.environment else words
    command = f"cd {shlex.quote(str(night.folder))} && exec {shlex.join(words)}"
    command = command.replace("\\%", "\\''%").replace("%", "\\%")  # cron reads \% as %, and \\% as the end
    if len(command) > MAX_COMMAND:
        what = f"the command has {len(command)} characters, and cron takes {MAX_COMMAND}"
        raise UsageError(Problem(what, hint="use --format systemd, or a shorter PATH"))
    return command


def github(command: str) -> str:
    """Return a command in which GitHub sees no expression: it would replace it before the shell quotes anything."""
    return command.replace("${{", "${{ '${{' }}")


FILTERS: Mapping[str, Callable[..., str]] = {
    "systemd_word": systemd_word,
    "systemd_command": systemd_command,
    "systemd_path": systemd_path,
    "cron": cron,
    "shell": shlex.join,
    "github": github,
}
