"""The last step of building an extended environment: which modules it imports, and what it says of a broken one."""

import subprocess
import sys
from pathlib import Path

import pytest

from runner.harness import added


def test_a_package_is_imported_by_its_own_name_or_by_all_its_modules() -> None:
    cases = {
        "scikit-learn": (["sklearn/__init__.py", "sklearn/x.py", "scikit_learn.libs/a.so"], ["sklearn"]),
        "timm": (["timm/__init__.py", "tests/__init__.py", "../../bin/timm", "timm-1.dist-info/RECORD"], ["timm"]),
        "six": (["six.py"], ["six"]),
        "attrs": (["attr/__init__.py", "attrs/__init__.py"], ["attrs"]),
        "two": (["b/__init__.py", "_c.abi3.so", "a.cpython-311.so"], ["a", "b"]),
        "typed": (["typed-stubs/__init__.pyi"], []),
    }
    for package, (files, expected) in cases.items():
        assert added.modules_of(package, files) == expected


def test_the_names_in_a_lock_are_normalized(tmp_path: Path) -> None:
    (tmp_path / "lock.txt").write_text("# made\nNumPy==2 \\\n    --hash=sha256:aa\nty_ping==1 --hash=sha256:bb\n")
    assert added.locked(str(tmp_path / "lock.txt")) == {"numpy", "ty-ping"}


def test_a_module_that_cannot_be_imported_fails_with_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken_pair.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')\n")
    (tmp_path / "on_gpus.py").write_text("raise ImportError('libcuda.so.1: cannot open shared object file')\n")
    lock = tmp_path / "lock.txt"
    lock.write_text("a==1\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(added, "files_of", lambda package: [f"{package.replace('-', '_')}.py"])
    assert added.main(str(lock), str(lock), "broken-pair", "on-gpus") == 1
    printed = capsys.readouterr()
    line = "ERROR: the package broken-pair does not work here: import broken_pair: RuntimeError: operator "
    assert printed.err == f"{line}torchvision::nms does not exist\n"
    assert printed.out.startswith("on_gpus was not imported here, for it needs a GPU")
    assert added.main(str(lock), str(lock), "on-gpus") == 0


def test_what_the_lock_has_no_more_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "check_call", commands.append)
    before, after = tmp_path / "before.txt", tmp_path / "after.txt"
    before.write_text("b==1\na==1\npip==2\n")
    after.write_text("b==2\n")
    assert added.main(str(before), str(after)) == 0
    assert [command[1:] for command in commands] == [["-m", "pip", "uninstall", "--yes", "a"]]
