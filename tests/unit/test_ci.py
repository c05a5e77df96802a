"""GitHub's workflow runs what .ci/run does: every folder of tests, and the same choice of frameworks' tests."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
RUN = (ROOT / ".ci" / "run").read_text("utf-8")
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
COMMANDS = [step["run"] for step in STEPS if "run" in step]


def test_jobs_run_the_sessions_of_the_script() -> None:
    sessions = set(re.findall(r"nox -s (\w+)", RUN))
    assert sessions == {"lint", "audit", "release", "tests", "frameworks"}
    assert set(re.findall(r"nox -s (\w+)", "\n".join(COMMANDS))) == sessions


def test_every_folder_of_tests_is_in_a_job() -> None:
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    in_jobs = set(re.findall(r"tests/(\w+)", "\n".join(COMMANDS)))
    assert folders - {"frameworks"} <= in_jobs


def test_what_a_job_leaves_out_is_in_another() -> None:
    left_out = {word for command in COMMANDS for word in re.findall(r"--ignore=(\S+)", command)}
    assert left_out
    assert all(any(f" {each}" in command for command in COMMANDS) for each in left_out)
    assert all((ROOT / each).exists() for each in left_out)


def test_the_needs_and_the_choice_of_framework_tests_are_those_of_the_script() -> None:
    def needs(texts: list[str]) -> set[str]:
        return {word for text in texts for words in re.findall(r"--need (\S+)", text) for word in words.split(",")}

    assert needs(COMMANDS) == needs([RUN])
    (choice,) = re.findall(r'-k "([^"]*)"', RUN)
    assert any(f'-k "{choice}"' in command for command in COMMANDS)


def test_a_job_may_only_read_the_repository_and_keeps_no_login() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in WORKFLOW["jobs"].values())
    actions = [step for step in STEPS if "uses" in step]
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in actions)
    checkouts = [step for step in actions if step["uses"].startswith("actions/checkout@")]
    assert len(checkouts) == len(WORKFLOW["jobs"])
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
