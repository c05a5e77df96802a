"""`runner schedule`: what runs `runner nightly` every night: systemd, cron, GitHub or GitLab. It installs nothing.

The files are in ``templates``; ``quoting`` has their filters. The jobs of CI services keep their reports on the machine
that measures, outside of the checkout: the nights of a history have to outlive the job.
"""

import re
from pathlib import Path
from typing import Literal

from runner.core.errors import Problem, UsageError
from runner.watch.schedule.scheduled_night import SECRETS, ScheduledNight, clock

__all__ = ["Form", "ScheduledNight", "advice", "clock", "files"]

Form = Literal["systemd", "cron", "github", "gitlab"]
GITHUB_FILE, GITLAB_FILE = ".github/workflows/nightly.yml", ".gitlab-ci.yml"
UNITS = "~/.config/systemd/user"
REPORTS = ' --reports "$HOME/.local/share/matrix-runner/{name}/reports"'
_REFUSED = re.compile(r"[\0-\37\177-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
"""Line ends of YAML, of shells and of systemd, all other control characters, and bytes of a path that are no UTF-8."""


def files(night: ScheduledNight, form: Form) -> dict[str, str]:
    """Return the files that a format needs, by name.

    Raises:
        UsageError: the format cannot hold a path or a word.
    """
    for word in (*night.command, str(night.folder), *night.environment):
        if _REFUSED.search(word):
            message = f"{word!r} holds a control character or a byte that is no UTF-8, which {form} cannot hold"
            raise UsageError(Problem(message, hint="rename it"))
    match form:
        case "systemd":
            kinds = ("service", "timer")
            return {f"{night.name}.{kind}": _render(f"systemd.{kind}", night) for kind in kinds}
        case "cron":
            return {"crontab": _render("crontab", night)}
        case "github":
            return {GITHUB_FILE: _render("github.yml", night, GITHUB_FILE)}
        case "gitlab":
            return {GITLAB_FILE: _render("gitlab.yml", night, GITLAB_FILE)}


def _render(template: str, night: ScheduledNight, file: str = "") -> str:
    import jinja2

    from runner.watch.schedule.quoting import FILTERS

    environment = jinja2.Environment(  # noqa: S701 - no HTML; each value is quoted by its own filter
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        variable_start_string="<<",  # GitHub has braces
        variable_end_string=">>",
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    hour, minute = night.at
    reports = "" if night.names_reports else REPORTS.format(name=night.name)
    return environment.get_template(f"{template}.j2").render(
        night=night, hour=hour, minute=minute, file=file, secrets=SECRETS, reports=reports
    )


def advice(night: ScheduledNight, form: Form, output: Path | None) -> str:
    """Return where the files belong, the commands that enable them, and which variables were left out."""
    hour, minute = night.at
    put = [] if output else [f"put the two units into {UNITS}, as -o {UNITS} does; then:"]
    lines = {
        "systemd": [
            *put,
            "systemctl --user daemon-reload",
            f"systemctl --user enable --now {night.name}.timer",
            "`loginctl enable-linger` lets it run while you are logged out",
        ],
        "cron": ["add the lines with `crontab -e`; cron mails what a night prints, and does not look at its exit code"],
        "github": [f"commit it as {GITHUB_FILE}; `gh secret set MATRIX_RUNNER_ALERTS` sets who gets alerts"],
        "gitlab": [f"commit it as {GITLAB_FILE}; its pipeline schedule has the interval `{minute} {hour} * * *`"],
    }[form]
    if night.secrets and form in ("systemd", "cron"):
        lines.append(f"{' and '.join(night.secrets)} may hold a password, so its value was left out")
    return "\n".join(lines)
