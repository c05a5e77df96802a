"""The lines of a crontab."""

import shlex
from collections.abc import Sequence

from runner.core.errors import Problem, UsageError
from runner.watch.schedule.job import Job

MAX_COMMAND = 990  # characters of a crontab's command; cron takes 1000
LINES = """\
# {name}: every night; then each hour whether the night was missed, because the machine was off
{minute} {hour} * * * {command}
{later} * * * * {if_missed}
"""


def crontab(job: Job) -> str:
    """Return the lines of a crontab; raises UsageError if a command is too long for cron."""
    hour, minute = job.at
    command, if_missed = _command(job, job.command), _command(job, job.if_missed)
    return LINES.format(
        name=job.name, hour=hour, minute=minute, later=(minute + 30) % 60, command=command, if_missed=if_missed
    )


def _command(job: Job, words: Sequence[str]) -> str:
    """Return a command for the shell, where a percent sign would end it."""
    words = ["env", *job.environment, *words] if job.environment else list(words)
    command = f"cd {shlex.quote(str(job.folder))} && exec {shlex.join(words)}"
    command = command.replace("\\%", "\\''%").replace("%", "\\%")  # cron reads \% as %, and \\% as the end
    if len(command) > MAX_COMMAND:
        what = f"the command has {len(command)} characters, and cron takes {MAX_COMMAND}"
        raise UsageError(Problem(what, hint="use --format systemd, or a shorter PATH"))
    return command
