"""Which folders are looked through, and which of several interpreters is taken."""

import os
from pathlib import Path

import pytest
from python_discovery import PythonInfo

from runner.backends.interpreters import by_patch, is_usual, pyenv_root, search_path


def info(path: Path, micro: int, *, system: Path | None = None) -> PythonInfo:
    made = PythonInfo()
    made.version_info = made.version_info._replace(major=3, minor=6, micro=micro, releaselevel="final")
    made.executable = str(path)
    made.system_executable = None if system is None else str(system)
    made.architecture = 64
    made.free_threaded = False
    return made


def test_pyenv_s_versions_come_first_and_shims_are_left_out(tmp_path: Path) -> None:
    for release in ("3.6.15", "3.6.2", "3.60.1", "3.7.16", "2.7.18", "work"):
        (tmp_path / "versions" / release / "bin").mkdir(parents=True)
    path = os.pathsep.join(["/usr/bin", str(tmp_path / "shims"), "/root/plugins/pyenv-virtualenv/shims", "/bin"])
    folders = search_path("3.6", {"PATH": path}, tmp_path).split(os.pathsep)
    versions = tmp_path / "versions"
    assert sorted(folders[:2]) == [str(versions / "3.6.15" / "bin"), str(versions / "3.6.2" / "bin")]
    assert folders[2:] == ["/usr/bin", "/bin"]


def test_a_machine_without_pyenv_has_its_path_searched(tmp_path: Path) -> None:
    assert search_path("3.6", {"PATH": "/usr/bin"}, tmp_path / "missing") == "/usr/bin"


@pytest.mark.parametrize("version", ["3", "3.6.15", "", "python3", "3.6*", "../3.6"])
def test_only_a_minor_version_is_a_version(version: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a minor version"):
        search_path(version, {}, tmp_path)


def test_pyenv_is_where_its_variable_says_or_at_home() -> None:
    assert pyenv_root({"PYENV_ROOT": "/opt/pyenv", "HOME": "/home/me"}) == Path("/opt/pyenv")
    assert pyenv_root({"PYENV_ROOT": "", "HOME": "/home/me"}) == Path("/home/me/.pyenv")
    assert pyenv_root({}) == Path.home() / ".pyenv"


def test_the_newest_patch_release_wins_as_a_number_not_as_a_word(tmp_path: Path) -> None:
    old, new = tmp_path / "3.6.2", tmp_path / "3.6.15"
    assert by_patch([info(old, 2), info(new, 15)]) == (new, old)


def test_of_equals_the_first_found_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert by_patch([info(first, 15), info(second, 15)]) == (first, second)


def test_links_and_virtual_environments_are_the_interpreter_behind_them(tmp_path: Path) -> None:
    real, link = tmp_path / "python3.6", tmp_path / "python"
    real.touch()
    link.symlink_to(real)
    assert by_patch([info(link, 15), info(tmp_path / "venv" / "python", 15, system=link)]) == (real,)


def test_an_interpreter_that_wheels_are_not_made_for_is_left_out(tmp_path: Path) -> None:
    assert is_usual(info(tmp_path, 15))
    small, unlocked, early = info(tmp_path, 15), info(tmp_path, 15), info(tmp_path, 15)
    small.architecture = 32
    unlocked.free_threaded = True
    early.version_info = early.version_info._replace(releaselevel="candidate")
    assert not any(is_usual(each) for each in (small, unlocked, early))


def test_no_interpreter_is_no_answer() -> None:
    assert by_patch([]) == ()
