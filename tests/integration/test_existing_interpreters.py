"""Interpreters as they are, in turns with each other and with an environment of the matrix, by the real program."""

import json
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from runner.store.run import Run
from tests.integration.conftest import Runner, journal_of

TINY = ("--preset", "tiny", "--device", "cpu", "--threads", "1", "--rounds", "2", "--max-rounds", "2")


@pytest.fixture
def interpreters(tmp_path: Path) -> tuple[Path, Path]:
    """Two environments with the NumPy of this one, of which the second says that it is another release."""
    return environment(tmp_path / "envs" / "a"), environment(tmp_path / "envs" / "b", "+b")


def environment(folder: Path, local: str = "") -> Path:
    """Make a virtual environment with the NumPy of this one; ``local`` is added to its version."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "numpy").mkdir()
    for path in Path(np.__file__).parent.iterdir():
        if path.name not in {"version.py", "__pycache__"}:
            (packages / "numpy" / path.name).symlink_to(path)
    set_version(folder, local)
    return folder / "bin" / "python"


def set_version(folder: Path, local: str) -> None:
    """Have the NumPy of an environment say another version."""
    (packages,) = folder.glob("lib/python*/site-packages")
    text = Path(np.version.__file__).read_text()
    (packages / "numpy" / "version.py").write_text(f"{text}\n__version__ = version = {np.__version__ + local!r}\n")


def test_two_interpreters_and_a_venv_are_compared_resumed_and_reproduced(
    runner: Runner, interpreters: tuple[Path, Path]
) -> None:
    words = [f"python:{path}" for path in interpreters]
    done = runner("run", words[0], f"other={words[1]}", "np-new", *TINY)
    assert done.returncode == 0, done.stderr
    run = Path(runner.folder, done.stdout.strip()).parent
    records = runner.records()
    assert {record["status"] for record in records} == {"ok"}
    assert {record["cell"].split("/")[0] for record in records} == {"a", "other", "np-new"}
    assert {record["facts"]["turns_with"].partition("/")[0] for record in records} == {"1", "2"}
    header = journal_of(run)[0]
    assert (header["backend"], header["as_is"]) == ("venv", {"a": words[0], "other": words[1]})
    assert header["digests"]["other"].endswith("+b")

    compared = runner.json("compare", words[0], f"other={words[1]}", "--format", "json")
    assert compared["rows"]
    assert all(row["ratio_low"] < row["ratio"] < row["ratio_high"] for row in compared["rows"])

    lines = (run / "journal.jsonl").read_text().splitlines()
    kept = [line for line in lines if json.loads(line)["event"] != "ended"]
    last = max(index for index, line in enumerate(kept) if json.loads(line)["event"] == "measured")
    (run / "journal.jsonl").write_text("\n".join(kept[:last]) + "\n")
    done = runner("run", "--resume", run.name)
    assert done.returncode == 0, done.stderr
    assert journal_of(run)[-1]["event"] == "ended"

    done = runner("reproduce", f"{run.name}/other", "--busy-ok")
    assert done.returncode in {0, 1}, done.stderr
    assert "cannot be built again" not in done.stderr


@pytest.mark.slow
def test_an_interpreter_that_has_changed_is_not_measured_on(runner: Runner, interpreters: tuple[Path, Path]) -> None:
    done = runner("run", f"python:{interpreters[1]}", *TINY)
    assert done.returncode == 0, done.stderr
    run = Path(runner.folder, done.stdout.strip()).parent
    lines = [line for line in (run / "journal.jsonl").read_text().splitlines() if '"ended"' not in line]
    (run / "journal.jsonl").write_text("\n".join(lines) + "\n")
    set_version(interpreters[1].parents[1], "+c")
    done = runner("run", "--resume", run.name)
    assert done.returncode == 2
    assert "b has changed since the run started" in done.stderr


def test_what_is_not_there_and_what_does_not_fit_is_refused(runner: Runner, interpreters: tuple[Path, Path]) -> None:
    for words, message in (
        (["python:/no/such/python"], "there is no interpreter '/no/such/python'"),
        ([f"np-old=python:{interpreters[0]}"], "another has it"),
        ([f"python:{interpreters[0]}", "--framework", "torch"], "cannot import torch"),
    ):
        done = runner("plan", *words)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr


@pytest.mark.slow
@pytest.mark.docker
def test_an_image_is_measured_as_it_is_and_stays(runner: Runner) -> None:
    import docker

    done = runner("build", "np-new", "--backend", "docker")
    assert done.returncode == 0, done.stderr
    client = docker.from_env()
    try:
        built, *_ = client.images.list("matrix-runner/np-new")  # of all, others may be removed meanwhile
        repository = f"as-it-is.test/{secrets.token_hex(4)}/net"
        name = f"{repository}:1"
        built.tag(repository, "1")
        try:
            done = runner("run", f"image:{name}", "np-old", *TINY)
            assert done.returncode == 0, done.stderr
            run = Path(runner.folder, done.stdout.strip()).parent
            header = journal_of(run)[0]
            assert header["as_is"] == {"net-1": f"image:{name}"}
            assert header["digests"]["net-1"] == built.id
            facts = Run.open(run).environments()["net-1"]
            assert (facts["image"], facts["pin"], facts["pulled"]) == (name, "unpinned", True)
            done = runner("reproduce", f"{run.name}/net-1", "--busy-ok")
            assert done.returncode in {0, 1}, done.stderr
        finally:
            client.images.remove(name)
        done = runner("plan", f"image:{name}")
        assert f"this engine has no image {name}" in done.stderr
    finally:
        client.close()
