"""Nothing is installed without a hash: not even the pip that old interpreters need first."""

import re
import subprocess
from pathlib import Path

import pytest

from runner.backends import interpreters, venv
from runner.backends.docker.recipes import EXTENDED
from runner.backends.venv import PIP_FOR_OLD, VenvBackend
from runner.core.model import Spec

DOCKERFILES = sorted((Path(__file__).parents[3] / "docker").glob("*.Dockerfile"))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_every_installation_of_an_image_requires_hashes(path: Path) -> None:
    text = path.read_text("utf-8")
    installations = re.findall(r"pip install [^&|;]*", text)
    assert len(installations) == 1 + (path.name != EXTENDED)  # the image of the other environment has a newer pip
    assert all("--require-hashes" in installation for installation in installations)
    assert (PIP_FOR_OLD.strip() in text) == (path.name != EXTENDED)


@pytest.mark.parametrize(("python", "installations"), [("3.6", 2), ("3.11", 1)])
def test_the_first_pip_of_an_old_python_uses_no_cache_which_it_fails_to_switch_off_by_a_variable(
    python: str, installations: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run(_: VenvBackend, command: list[str], *_args: object) -> None:
        commands.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir()

    monkeypatch.setattr(VenvBackend, "_run", run)
    monkeypatch.setattr(interpreters, "find", lambda _: Path("/usr/bin/python"))
    lock = tmp_path / "lock.txt"
    lock.write_text(f"numpy==1.19.5 --hash=sha256:{'0' * 64}\n")
    spec = Spec(environment="np", framework="numpy", release="1.19.5", python=python, base="python:3.6", lock=lock)
    VenvBackend(tmp_path / "cache").provision(spec, lambda _: None)
    of_pip = [command for command in commands if "install" in command]
    assert len(of_pip) == installations
    assert all("--require-hashes" in command for command in of_pip)
    assert ["--no-cache-dir" in command for command in of_pip] == [True, False][-installations:]


def test_a_person_sees_how_pip_gets_on_and_not_all_that_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pip:
        """A process that has ended, with what pip prints."""

        stdout = (
            "Looking in indexes: https://i.test/simple\n",
            "Collecting numpy==2.4.0 (from -r lock.txt (line 3))\n",
            "  Downloading numpy-2.4.0-cp311-cp311-manylinux_2_27_x86_64.whl (16.8 MB)\n",
            "Installing collected packages: numpy\n",
            "Successfully installed numpy-2.4.0\n",
        )
        pid = 0

        def wait(self) -> int:
            return 0

        def communicate(self) -> None:
            """End."""

    monkeypatch.setattr(subprocess, "Popen", lambda *_args, **_options: Pip())
    monkeypatch.setattr(venv, "_kill", lambda _: None)
    messages: list[str] = []
    VenvBackend(tmp_path)._run(["pip"], messages.append)
    assert messages == ["downloading numpy 2.4.0, 16.8 MB", "installing 1 package"]


def test_the_hint_about_a_failed_pip_names_no_command_of_an_environment_that_is_gone(tmp_path: Path) -> None:
    pip = [str(tmp_path / "bin" / "python"), "-m", "pip", "install"]
    of_pip = venv._failure(pip, 2, ["ERROR: invalid wheel"], tmp_path / "pip.log").problems[0].hint
    of_venv = venv._failure(["/usr/bin/python3", "-m", "venv", "x"], 1, ["no ensurepip"], None).problems[0].hint
    assert of_pip == "the last lines of pip say why"
    assert of_venv == "run the command yourself: /usr/bin/python3 -m venv x"
