"""The steps of the GitHub action and of the GitLab component, run by bash as the two services do, without them.

``gh`` and ``curl`` are stand-ins that keep what they are asked; a run of NumPy is measured by the real program.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.analysis.analyse import analyse_run
from runner.session.results import write_report
from tests.integration.conftest import ROOT, Runner
from tests.integration.test_schedule import GITLAB, SCHEMA_CHECK, checked
from tests.support import golden_files
from tests.support.changed_runs import change_header
from tests.support.executables import write_executable
from tests.support.fake_runs import realistic

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
INPUTS, COMPONENT = yaml.safe_load_all((ROOT / "templates" / "matrix-runner.yml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}
(JOB,) = COMPONENT.values()
PULL_REQUEST = {"comment": "true", "name": "matrix-runner"}
RUNNER = """#!/bin/bash
printf '%s\\n' "$@" > "$ASKED"
echo "$PAGE_OF_RUN"
exit "${EXIT_CODE:-0}"
"""
REAL = """#!/bin/bash
exec {python} -m runner "$@"
"""
GH = """#!/bin/bash
printf '%s\\n' "$*" >> "$FOLDER_OF_TEST/gh"
if [ -n "$GH_FAILS" ]; then echo "HTTP 403" >&2; exit 1; fi
for word in "$@"; do if [[ $word == body=@* ]]; then cp "${word#body=@}" "$FOLDER_OF_TEST/comment.md"; fi; done
if [[ $* == *--paginate* ]]; then printf '%s' "$COMMENTS"; fi
"""
CURL = """#!/bin/bash
printf '%s\\n' "$*" >> "$FOLDER_OF_TEST/curl"
for word in "$@"; do if [[ $word == body@* ]]; then cp "${word#body@}" "$FOLDER_OF_TEST/note.md"; fi; done
if [[ $* == *per_page* ]]; then printf '%s' "$NOTES"; fi
"""


@dataclass
class Service:
    """A CI service that runs steps in a folder.

    Attributes:
        folder: of the checkout, and of what the service keeps.
        variables: what steps see.
    """

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def bash(self, script: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a script as both services do; its variables are those of the service and these."""
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **self.variables, **variables}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )

    def outputs(self) -> dict[str, str]:
        """Return what the steps have written to GITHUB_OUTPUT."""
        path = self.folder / "outputs"
        return dict(line.split("=", 1) for line in path.read_text().splitlines()) if path.exists() else {}

    def lines(self, name: str) -> list[str]:
        """Return the lines that a stand-in has kept."""
        return (self.folder / name).read_text().splitlines()


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """Return a service with a stored run, and stand-ins for the program, ``gh`` and ``curl``."""
    run = realistic(tmp_path / "reports")
    change_header(run, program="0.1.0", command=["torch-1.12", "torch-2.x"], seed=7)
    page = write_report(analyse_run(run, 0.02), run)
    (tmp_path / "bin").mkdir()
    (tmp_path / "matrix-runner" / "bin").mkdir(parents=True)
    write_executable(tmp_path / "bin" / "gh", GH)
    write_executable(tmp_path / "bin" / "curl", CURL)
    write_executable(tmp_path / "matrix-runner" / "bin" / "matrix-runner", RUNNER)
    names = {"RUNNER_TEMP": ".", "GITHUB_OUTPUT": "outputs", "GITHUB_STEP_SUMMARY": "summary.md", "ASKED": "asked"}
    variables = {name: str(tmp_path / value) for name, value in names.items()}
    run_page = str(page.relative_to(tmp_path))
    variables |= {"FOLDER_OF_TEST": str(tmp_path), "PAGE_OF_RUN": run_page, "GITHUB_REPOSITORY": "o/r", "GH_FAILS": ""}
    return Service(tmp_path, {**variables, "COMMENTS": "", "NOTES": "[]"})


def measure(service: Service, **inputs: str) -> list[str]:
    """Run the step that measures; return the words that the program got."""
    step = STEPS["Measure"]
    words = {name: inputs.get(name, "") for name in step["env"]}
    done = service.bash(step["run"], **words)
    assert done.returncode == 0, done.stderr
    return service.lines("asked")


def comment(service: Service, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the step that writes the comment of pull request 7."""
    page = "https://github.com/o/r/actions/runs/1"
    known = {"FOLDER": str(Path(service.variables["PAGE_OF_RUN"]).parent), "NUMBER": "7", "PAGE": page}
    return service.bash(
        STEPS["Keep one comment on the pull request"]["run"],
        **known,
        GH_TOKEN="t",
        MARKER="<!-- matrix-runner: matrix-runner -->",
        **variables,
    )


def test_inputs_become_the_words_of_the_command(service: Service) -> None:
    words = measure(
        service,
        RELEASES="torch==2.9.1\n torch==2.13.0 ",
        MODEL="nets.py:UNet(3, 'a b')",
        INPUT="1x3x64x64\n8:int64<2\n",
        FAIL_ON="slower:5%",
        BUDGET="30m",
        OPTIONS="--env 'A=b c' --rounds 5",
    )
    assert words == [
        *("run", "torch==2.9.1", "torch==2.13.0", "--model", "nets.py:UNet(3, 'a b')"),
        *("--input", "1x3x64x64", "--input", "8:int64<2", "--fail-on", "slower:5%", "--budget", "30m"),
        *("--env", "A=b c", "--rounds", "5"),
    ]
    assert service.outputs()["code"] == "0"
    assert (service.folder / service.outputs()["folder"] / "report.md").exists()


def test_nothing_in_an_input_is_run(service: Service) -> None:
    evil = "$(touch harm) `touch harm` ;touch harm"
    words = measure(service, RELEASES=evil, MODEL=evil, INPUT=evil, OPTIONS=evil, FAIL_ON=evil)
    assert "$(touch" in words
    assert not (service.folder / "harm").exists()


def test_text_that_the_shell_cannot_split_ends_the_step(service: Service) -> None:
    step = STEPS["Measure"]
    done = service.bash(step["run"], **{**dict.fromkeys(step["env"], ""), "OPTIONS": "--env 'A=b"})
    assert done.returncode != 0
    assert not (service.folder / "asked").exists()


def test_no_line_of_the_program_becomes_another_output(service: Service) -> None:
    page = service.variables["PAGE_OF_RUN"]
    service.variables["PAGE_OF_RUN"] = f"code=0\nfolder=elsewhere\n{page}"
    service.variables["EXIT_CODE"] = "8"
    measure(service, RELEASES="torch==2.13.0")
    assert service.outputs() == {"code": "8", "folder": str(Path(page).parent)}


@pytest.mark.parametrize("code", ["0", "1", "8"])
def test_the_job_ends_as_the_measurement_did(service: Service, code: str) -> None:
    service.variables["EXIT_CODE"] = code
    measure(service, RELEASES="torch==2.13.0")
    assert service.outputs()["code"] == code
    assert service.bash(STEPS["End as the measurement did"]["run"], CODE=code).returncode == int(code)
    assert service.bash(STEPS["End as the measurement did"]["run"], CODE="").returncode == 1  # nothing was measured


def test_the_answer_is_on_the_page_of_the_job(service: Service) -> None:
    path = service.folder / "matrix-runner" / "bin" / "matrix-runner"
    write_executable(path, REAL.format(python=sys.executable))
    folder = str(Path(service.variables["PAGE_OF_RUN"]).parent)
    done = service.bash(STEPS["Show the answer on the page of the job"]["run"], FOLDER=folder)
    assert done.returncode == 0, done.stderr
    assert (service.folder / "summary.md").read_text().startswith("# On average PyTorch 2.x is ")


def test_a_first_comment_is_the_kept_one(service: Service) -> None:
    done = comment(service)
    assert (done.returncode, done.stdout) == (0, "")
    listed, posted = service.lines("gh")
    assert listed.startswith("api --paginate repos/o/r/issues/7/comments?per_page=100 --jq ")
    assert posted.startswith("api --silent --method POST repos/o/r/issues/7/comments -F body=@")
    golden_files.check("comment.md", (service.folder / "comment.md").read_text())


def test_a_further_comment_replaces_the_first(service: Service) -> None:
    comment(service, COMMENTS="123\n456\n")
    _, patched = service.lines("gh")
    assert patched.startswith("api --silent --method PATCH repos/o/r/issues/comments/123 -F body=@")


def test_a_token_that_may_not_write_is_a_warning(service: Service) -> None:
    done = comment(service, GH_FAILS="1")
    assert done.returncode == 0
    assert done.stdout.startswith("::warning title=matrix-runner::no comment was written")


def test_steps_name_no_expression_in_their_scripts() -> None:
    for step in STEPS.values():
        assert "${{" not in step.get("run", "")
    assert not any("$[[" in line for line in JOB["script"])


def test_both_services_take_the_same_inputs() -> None:
    of_gitlab = INPUTS["spec"]["inputs"]
    assert set(ACTION["inputs"]) - {"comment", "token"} == set(of_gitlab) - {"package", "stage"}
    for name in set(of_gitlab) & set(ACTION["inputs"]) - {"name"}:
        assert of_gitlab[name].get("default") == ACTION["inputs"][name].get("default")
        assert of_gitlab[name]["description"] == ACTION["inputs"][name]["description"]
    lines = [line.strip() for line in JOB["script"][1].splitlines()]
    shared = [line.strip() for line in STEPS["Measure"]["run"].splitlines()]
    assert lines[1:] == shared[1 : len(lines)], "both measure by the same lines"


def job(service: Service, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the job of the component, but for its installation."""
    (service.folder / ".matrix-runner").symlink_to("matrix-runner")
    names = {name: value["value"] for name, value in JOB["variables"].items()}
    of_pipeline = {
        "CI_API_V4_URL": "https://gitlab.example/api/v4",
        "CI_PROJECT_ID": "5",
        "CI_JOB_URL": "https://gitlab.example/o/r/-/jobs/1",
    }
    inputs = {name: "" if "inputs." in value else value for name, value in names.items()}
    inputs |= {"MARKER": "<!-- matrix-runner: matrix-runner -->", "RELEASES": "torch==2.9.1 torch==2.13.0"}
    return service.bash("\n".join(JOB["script"][1:]), **{**of_pipeline, **inputs, **variables})


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_gitlab_keeps_one_note_and_ends_as_the_measurement_did(service: Service, method: str) -> None:
    mark = "<!-- matrix-runner: matrix-runner -->"
    notes = [{"id": 3, "body": "hi"}, {"id": 4, "body": f"{mark} x"}] if method == "PUT" else []
    of_request = {"CI_MERGE_REQUEST_IID": "7", "MATRIX_RUNNER_NOTE_TOKEN": "t", "NOTES": json.dumps(notes)}
    done = job(service, EXIT_CODE="8", **of_request)
    assert done.returncode == 8, done.stderr
    assert service.lines("asked") == ["run", "torch==2.9.1", "torch==2.13.0"]
    listed, written = service.lines("curl")
    address = "https://gitlab.example/api/v4/projects/5/merge_requests/7/notes"
    assert f"{address}?per_page=100" in listed
    assert f"--request {method}" in written
    assert written.endswith(f"{address}/4" if method == "PUT" else address)
    assert (service.folder / "note.md").read_text().startswith(f"{mark}\n# On average")


def test_gitlab_writes_no_note_without_a_merge_request_and_a_token(service: Service) -> None:
    assert job(service).returncode == 0
    assert not (service.folder / "curl").exists()


@pytest.mark.skipif(SCHEMA_CHECK is None, reason="check-jsonschema is not installed")
def test_the_job_of_the_component_fits_gitlab_s_schema(tmp_path: Path) -> None:
    assert SCHEMA_CHECK
    text = (ROOT / "templates" / "matrix-runner.yml").read_text("utf-8").partition("\n---\n")[2]
    for name, given in INPUTS["spec"]["inputs"].items():
        text = text.replace(f"$[[ inputs.{name} ]]", str(given.get("default", "torch==2.13.0")) or "x")
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text(text)
    done = checked(SCHEMA_CHECK, *GITLAB, str(path))
    assert done.returncode == 0, done.stdout
    path.write_text(text.replace("when: always", "when: {}"))
    assert checked(SCHEMA_CHECK, *GITLAB, str(path)).returncode == 1, "it reads the settings"


@pytest.mark.skipif(SCHEMA_CHECK is None, reason="check-jsonschema is not installed")
def test_the_action_fits_github_s_schema(tmp_path: Path) -> None:
    assert SCHEMA_CHECK
    schema = ("--builtin-schema", "vendor.github-actions")
    done = checked(SCHEMA_CHECK, *schema, str(ROOT / "action.yml"))
    assert done.returncode == 0, done.stdout
    changed = tmp_path / "action.yml"
    changed.write_text((ROOT / "action.yml").read_text("utf-8").replace("using: composite", "using: {}"))
    assert checked(SCHEMA_CHECK, *schema, str(changed)).returncode == 1, "it reads the settings"


def test_a_real_run_passes_the_gate_or_ends_with_8(runner: Runner) -> None:
    words = ("--preset", "tiny", "--device", "cpu", "--threads", "1", "--backend", "venv")
    done = runner("run", *words, "--fail-on", "slower:900%")
    assert done.returncode == 0, done.stderr
    page = Path(runner.folder, done.stdout.strip())
    assert page.exists()
    sides = ("compare", "np-old", "np-new")
    undecided = runner.json(*sides, "--format", "json", "--fail-on", "slower:900%")
    assert undecided["gate"] == {"fail_on": ["slower:900%"], "passed": True, "compared": 2, "broken": []}
    alone = runner("run", "np-old", *words, "--rounds", "1", "--fail-on", "slower")
    assert alone.returncode == 8
    assert "--fail-on: no test was measured in two releases" in alone.stderr
    assert Path(runner.folder, alone.stdout.strip()).exists(), "the page is printed all the same"


@pytest.mark.slow
def test_the_text_of_an_issue_and_the_exports_are_of_a_real_run(runner: Runner) -> None:
    words = ("--preset", "tiny", "--device", "cpu", "--threads", "1", "--backend", "venv", "--rounds", "2")
    assert runner("run", *words).returncode == 0
    issue = runner("compare", "np-old", "np-new", "--issue")
    assert issue.returncode == 0, issue.stderr
    assert "\n## How to repeat it\n" in issue.stdout
    assert "matrix-runner run np-old/numpy-loop/rnn-step/rnn-b32-h128/" in issue.stdout  # both have the same release
    assert "The environments are those of the matrix file of the run." in issue.stdout
    for name in ("pytorch-benchmark", "bencher", "github-action-benchmark"):
        assert runner("export", "--format", name, "-o", "times.json").returncode == 0
        assert len(json.loads((runner.folder / "times.json").read_text())) == 4


def test_the_action_measures_a_real_run(runner: Runner) -> None:
    folder = runner.folder
    service = Service(folder, {"GITHUB_OUTPUT": str(folder / "outputs"), "RUNNER_TEMP": str(folder)})
    (folder / "matrix-runner" / "bin").mkdir(parents=True)
    write_executable(folder / "matrix-runner" / "bin" / "matrix-runner", REAL.format(python=sys.executable))
    options = "--preset tiny --device cpu --threads 1 --backend venv --busy-ok --rounds 2"
    inputs = {"RELEASES": "np-old np-new", "FAIL_ON": "slower:900%", "OPTIONS": options}
    done = service.bash(STEPS["Measure"]["run"], **{**dict.fromkeys(STEPS["Measure"]["env"], ""), **inputs})
    assert done.returncode == 0, done.stderr
    assert service.outputs()["code"] == "0", done.stderr
    assert (service.folder / service.outputs()["folder"] / "report.md").exists()
