"""The text of an issue: its sections, its length, and the command that repeats the measurement elsewhere."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import UsageError
from runner.core.model import ModelFiles
from runner.report.markdown import LIMIT
from runner.session.issue import issue_text, named_environments
from runner.session.options import Options
from runner.session.results import comparison
from runner.store.documents import CASES, VERSION, sealed
from runner.store.model_files import write_models
from runner.store.profile_files import write_profile
from runner.store.run import Run
from tests.support import golden_files
from tests.support.changed_runs import change_header
from tests.support.fake_runs import cell, make, realistic, rounds
from tests.unit.report.test_profile_section import profile

NOWHERE = Path("nowhere.yaml")
BASE = [0.1, 0.1001, 0.0999, 0.10005, 0.09995]


def slower(reports: Path, **parts: str) -> Run:
    """Make a run in which a test is 10 % slower in the second release."""
    sides = cell("torch-1.12", **parts), cell("torch-2.x", **parts)
    factors = (1.0, 1.1)
    records = [each for of, k in zip(sides, factors, strict=True) for each in rounds(of, [k * s for s in BASE])]
    return make(reports, records)


def text(reports: Path, *sides: str) -> str:
    return issue_text(NOWHERE, reports, sides or ("torch-1.12", "torch-2.x"), best=False)[1]


def command(issue: str) -> Options:
    """Return the options of the command in an issue, as a shell would read it."""
    (line,) = re.findall(r"```sh\n(.*)\n```", issue)
    program, word, *words = shlex.split(line)
    assert (program, word) == ("matrix-runner", "run")
    return Options.of_argv(words)


def test_the_issue_of_a_run_is_the_kept_one(tmp_path: Path) -> None:
    run = realistic(tmp_path)
    change_header(run, program="0.1.0", command=["torch-1.12", "torch-2.x", "--rounds", "5"], seed=7)
    for name, step in (("torch-1.12", 0.1), ("torch-2.x", 0.2)):
        of = cell(name, "lstm-cell-fused", phase="forward")
        write_profile(run.path, of.id, profile(step, mm=0.6 * step, tanh=0.03))
    golden_files.check("issue.md", text(tmp_path))


def test_the_command_names_releases_and_few_tests(tmp_path: Path) -> None:
    run = slower(tmp_path)
    words = ["torch-1.12", "torch-2.x", "--preset", "quick", "--reports", "~/r", "--budget", "1h", "--device", "cpu"]
    change_header(run, program="0.1.0", command=words)
    again = command(text(tmp_path))
    test = "nn-lstm/asr-lstm/1x320-ce-short/train/fp32"
    assert again.selectors == [f"torch==1.12/{test}", f"torch-2.x/{test}"]  # 2.x is no version that pip knows
    assert (again.preset, again.budget, again.reports, again.device) == (None, None, Path("reports"), "cpu")


def test_a_release_that_was_named_is_named_as_it_was(tmp_path: Path) -> None:
    compared = comparison(NOWHERE, slower(tmp_path).reports, ["torch-1.12", "torch-2.x"], best=False)
    facts: dict[str, Any] = {"torch-1.12": {"packages": {"timm": "1.0.3"}}}
    words = named_environments(["torch-1.12", "torch-2.x"], ["torch==2.9.1@py3.12"], compared, facts, ["timm"])
    assert words == ["torch==1.12,timm==1.0.3", "torch-2.x"]
    ids = ["torch-2.9.1-py3.12@env:A=1", "torch-1.12@threads:2"]
    words = named_environments(ids, ["torch==2.9.1@py3.12@env:A=1"], compared, facts)
    assert words[0] == "torch==2.9.1@py3.12@env:A=1"


def keep_files(run: Run, files: dict[str, bytes], entry: str) -> None:
    """Store the files of a network in a run, as a run with ``--model`` does."""
    model = ModelFiles.of(entry, files)
    write_models(run.path, [model])
    cases = {"unet/1x3": {"files": model.digest}}
    (run.path / CASES).write_text(sealed({"version": VERSION, "cases": cases}), "utf-8")


@pytest.mark.parametrize(
    ("typed", "files", "entry", "model"),
    [
        ("~/code/nets.py:UNet(3)", {"nets.py": b"class UNet: ```"}, "unet_wrapper.py", "nets.py:UNet(3)"),
        ("small=pkg/nets.py:UNet", {"pkg/nets.py": b"class UNet: ```"}, "unet_wrapper.py", "small=pkg/nets.py:UNet"),
        ("~/my_network.py", {}, "my_network.py", "my_network.py"),
        ("~/unet", {}, "model.py", "unet=model.py"),
    ],
)
def test_the_files_of_a_network_are_in_the_issue(
    tmp_path: Path, typed: str, files: dict[str, bytes], entry: str, model: str
) -> None:
    run = slower(tmp_path, workload="unet", case="1x3", implementation="model")
    keep_files(run, {**files, entry: b"ENTRY = '```'"}, entry)
    words = ["torch-1.12", "torch-2.x", "--model", typed, "--input", "1x3"]
    change_header(run, program="0.1.0", command=words)
    issue = text(tmp_path)
    again = command(issue)
    assert (again.model, again.input) == ([model], ["1x3"])
    assert (again.selectors, again.workload) == (["torch==1.12", "torch-2.x"], None)
    shown = next(iter(files), entry)
    content = files.get(shown, b"ENTRY = '```'").decode()
    assert f"<details><summary>{shown}</summary>\n\n````python\n{content}\n````" in issue
    assert ("ENTRY" in issue) == (not files)  # a wrapper is written anew
    assert f"In an empty folder with {shown}:".replace("_", "\\_") in issue


def test_a_file_that_is_too_long_is_to_be_attached(tmp_path: Path) -> None:
    run = slower(tmp_path, workload="unet", case="1x3", implementation="model")
    keep_files(run, {"big.py": b"x = 1\n" * 5000, "entry.py": b"import big"}, "entry.py")
    change_header(run, program="0.1.0", command=["torch-1.12", "torch-2.x", "--model", "entry.py"])
    issue = text(tmp_path)
    assert "Attach big.py: it is too long to be shown." in issue
    assert "import big" in issue


def test_profiles_are_a_section(tmp_path: Path) -> None:
    run = slower(tmp_path)
    for name, step in (("torch-1.12", 0.1), ("torch-2.x", 0.11)):
        write_profile(run.path, cell(name).id, profile(step, mm=0.6 * step, tanh=0.03))
    assert "| mm | +6.00 ms |" in text(tmp_path)


def test_an_issue_is_no_longer_than_a_comment(tmp_path: Path) -> None:
    tests = [f"case-{number}" for number in range(200)]
    sides = ("torch-1.12", "torch-2.x")
    make(tmp_path, [each for case in tests for name in sides for each in rounds(cell(name, case=case), [1.0] * 3)])
    issue = text(tmp_path)
    assert len(issue) < LIMIT
    assert issue.startswith("# PyTorch 2.x against 1.12: no test is slower\n")


def test_sides_of_different_runs_have_no_issue(tmp_path: Path) -> None:
    first = make(tmp_path, rounds(cell("torch-1.12"), [1.0] * 3))
    second = make(tmp_path, rounds(cell("torch-2.x"), [1.0] * 3), later=5)
    with pytest.raises(UsageError, match="an issue is about releases that one run has measured"):
        text(tmp_path, f"torch-1.12@{first.id}", f"torch-2.x@{second.id}")
