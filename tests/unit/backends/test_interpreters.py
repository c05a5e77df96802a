"""Which folders are searched for interpreters, and which of several is chosen."""

import os
from pathlib import Path

import pytest
from python_discovery import PythonInfo

from runner.backends.interpreters import by_patch, is_usual, pyenv_root, search_path


def info(path: Path, micro: int, *, system: Path | None = None) -> PythonInfo:
    interpreter = PythonInfo()
    interpreter.version_info = interpreter.version_info._replace(major=3, minor=6, micro=micro, releaselevel="final")
    interpreter.executable = str(path)
    interpreter.system_executable = None if system is None else str(system)
    interpreter.architecture = 64
    interpreter.free_threaded = False
    return interpreter


def test_search_path_has_pyenv_versions_first_and_no_shims(tmp_path: Path) -> None:
    for release in ("3.6.15", "3.6.2", "3.60.1", "3.7.16", "2.7.18", "work"):
        (tmp_path / "versions" / release / "bin").mkdir(parents=True)
    path = os.pathsep.join(["/usr/bin", str(tmp_path / "shims"), "/root/plugins/pyenv-virtualenv/shims", "/bin"])
    folders = search_path("3.6", {"PATH": path}, tmp_path).split(os.pathsep)
    versions = tmp_path / "versions"
    assert sorted(folders[:2]) == [str(versions / "3.6.15" / "bin"), str(versions / "3.6.2" / "bin")]
    assert folders[2:] == ["/usr/bin", "/bin"]


def test_search_path_without_pyenv_is_path(tmp_path: Path) -> None:
    assert search_path("3.6", {"PATH": "/usr/bin"}, tmp_path / "missing") == "/usr/bin"


@pytest.mark.parametrize("version", ["3", "3.6.15", "", "python3", "3.6*", "../3.6"])
def test_search_path_refuses_anything_but_a_minor_version(version: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a minor version"):
        search_path(version, {}, tmp_path)


def test_pyenv_root_is_its_variable_or_in_the_home_folder() -> None:
    assert pyenv_root({"PYENV_ROOT": "/opt/pyenv", "HOME": "/home/me"}) == Path("/opt/pyenv")
    assert pyenv_root({"PYENV_ROOT": "", "HOME": "/home/me"}) == Path("/home/me/.pyenv")
    assert pyenv_root({}) == Path.home() / ".pyenv"


def test_by_patch_orders_releases_as_numbers(tmp_path: Path) -> None:
    old, new = tmp_path / "3.6.2", tmp_path / "3.6.15"
    assert by_patch([info(old, 2), info(new, 15)]) == (new, old)


def test_by_patch_keeps_the_order_of_equal_releases(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert by_patch([info(first, 15), info(second, 15)]) == (first, second)


def test_by_patch_resolves_links_and_virtual_environments(tmp_path: Path) -> None:
    real, link = tmp_path / "python3.6", tmp_path / "python"
    real.touch()
    link.symlink_to(real)
    assert by_patch([info(link, 15), info(tmp_path / "venv" / "python", 15, system=link)]) == (real,)


def test_is_usual_refuses_interpreters_without_wheels(tmp_path: Path) -> None:
    assert is_usual(info(tmp_path, 15))
    small, free_threaded, early = info(tmp_path, 15), info(tmp_path, 15), info(tmp_path, 15)
    small.architecture = 32
    free_threaded.free_threaded = True
    early.version_info = early.version_info._replace(releaselevel="candidate")
    assert not any(is_usual(interpreter) for interpreter in (small, free_threaded, early))


def test_by_patch_of_nothing_is_empty() -> None:
    assert by_patch([]) == ()
