"""Workflows of CI services, for a runner of theirs on the machine that measures.

The reports stay on that machine, outside of the checkout: the nights of a history have to outlive the job.
"""

import shlex
from collections.abc import Sequence

from runner.watch.schedule.job import SECRETS, Job

GITHUB_FILE = ".github/workflows/nightly.yml"
GITLAB_FILE = ".gitlab-ci.yml"
REPORTS = '"$HOME/.local/share/matrix-runner/{name}/reports"'

GITHUB = """\
# {file}: a night on a self-hosted runner with the label gpu, which has the runner installed as {python}.
name: nightly
on:
  schedule:
    - cron: "{minute} {hour} * * *" # UTC
  workflow_dispatch:
permissions:
  contents: read
concurrency: # nights never overlap: a second one waits
  group: {name}
  cancel-in-progress: false
jobs:
  nightly:
    runs-on: [self-hosted, gpu]
    timeout-minutes: 1440
    steps:
      - uses: actions/checkout@v4
        with:
          persist-credentials: false
      - name: Measure, compare with the last good run, and confirm changes
        shell: bash
        env: # secrets of the repository; one that is not set is empty, and means none
{secrets}
        run: |
{command}
      - name: Reset the clocks of the GPU
        if: always()
        run: |
{after}
"""
GITLAB = """\
# {file}: a night on a runner of the type shell with the tag gpu, which has the runner installed as {python}.
# Start it by a pipeline schedule (Build > Pipeline schedules): {minute} {hour} * * *
# Set {names} as masked CI/CD variables of the project; the job gets them by name.
nightly:
  rules:
    - if: $CI_PIPELINE_SOURCE == "schedule"
  tags: [gpu]
  resource_group: {name}
  timeout: 24 hours
  script:
    - |
{command}
  after_script:
    - |
{after}
"""


def github(job: Job) -> str:
    """Return a workflow for GitHub Actions."""
    return GITHUB.format(
        file=GITHUB_FILE,
        secrets="\n".join(f"          {name}: ${{{{ secrets.{name} }}}}" for name in SECRETS),
        command=_indented(_literal(_with_reports(job)), 10),
        after=_indented(_literal(shlex.join(job.after)), 10),
        **_fields(job),
    )


def gitlab(job: Job) -> str:
    """Return a job for GitLab CI."""
    return GITLAB.format(
        file=GITLAB_FILE,
        names=" and ".join(SECRETS),
        command=_indented(_with_reports(job), 6),
        after=_indented(shlex.join(job.after), 6),
        **_fields(job),
    )


def _fields(job: Job) -> dict[str, object]:
    hour, minute = job.at
    return {"name": job.name, "python": job.python, "hour": hour, "minute": minute}


def _with_reports(job: Job) -> str:
    """Return the command for a shell, with a folder for the reports unless the options name one."""
    command = shlex.join(job.command)
    return command if _names_reports(job.words) else f"{command} --reports {REPORTS.format(name=job.name)}"


def _names_reports(words: Sequence[str]) -> bool:
    return any(word.partition("=")[0] == "--reports" for word in words)


def _literal(command: str) -> str:
    """Return a command in which GitHub sees no expression: it would replace it before the shell quotes anything."""
    return command.replace("${{", "${{ '${{' }}")


def _indented(command: str, columns: int) -> str:
    return "\n".join(f"{' ' * columns}{line}" for line in command.splitlines())
