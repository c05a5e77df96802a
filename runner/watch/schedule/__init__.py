"""`runner schedule`: what runs `runner nightly` every night: systemd, cron, GitHub or GitLab. It installs nothing."""

import re
from pathlib import Path
from typing import Literal

from runner.core.errors import Problem, UsageError
from runner.watch.schedule.ci import GITHUB_FILE, GITLAB_FILE, github, gitlab
from runner.watch.schedule.cron import crontab
from runner.watch.schedule.job import Job, clock
from runner.watch.schedule.systemd import UNITS, units

__all__ = ["Form", "Job", "advice", "clock", "files"]

Form = Literal["systemd", "cron", "github", "gitlab"]
CRONTAB = "crontab"


def files(job: Job, form: Form) -> dict[str, str]:
    """Return the files that a format needs, by name.

    Raises:
        UsageError: the format cannot hold a path or a word.
    """
    for word in (*job.command, str(job.folder), *job.environment):
        if re.search(r"[\0-\37\177]", word):
            raise UsageError(Problem(f"{word!r} holds a control character, which {form} cannot hold", hint="rename it"))
    match form:
        case "systemd":
            return units(job)
        case "cron":
            return {CRONTAB: crontab(job)}
        case "github":
            return {GITHUB_FILE: github(job)}
        case "gitlab":
            return {GITLAB_FILE: gitlab(job)}


def advice(job: Job, form: Form, output: Path | None) -> str:
    """Return where the files belong, the commands that enable them, and which variables were left out."""
    hour, minute = job.at
    put = [] if output else [f"put the two units into {UNITS}, as -o {UNITS} does; then:"]
    lines = {
        "systemd": [
            *put,
            "systemctl --user daemon-reload",
            f"systemctl --user enable --now {job.name}.timer",
            "`loginctl enable-linger` lets it run while you are logged out",
        ],
        "cron": ["add the lines with `crontab -e`; cron mails what a night prints, and does not look at its exit code"],
        "github": [f"commit it as {GITHUB_FILE}; `gh secret set MATRIX_RUNNER_ALERTS` sets who gets alerts"],
        "gitlab": [f"commit it as {GITLAB_FILE}; its pipeline schedule has the interval `{minute} {hour} * * *`"],
    }[form]
    if job.secrets and form in ("systemd", "cron"):
        lines.append(f"{' and '.join(job.secrets)} may hold a password, so its value was left out")
    return "\n".join(lines)
