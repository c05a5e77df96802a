"""The folders of the compilers' caches."""

import os
from pathlib import Path

import pytest

from runner.harness import compile_cache


def test_a_folder_that_another_server_makes_meanwhile_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment and its twin start at the same time, with an empty cache."""
    mkdir = os.mkdir

    def second(path: str, mode: int = 0o777) -> None:
        mkdir(path, mode)
        raise FileExistsError(17, "File exists", path)

    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(os, "mkdir", second)
    for _ in range(2):
        compile_cache.use(str(tmp_path / "cache"))
    assert all(Path(os.environ[name]).is_dir() for name in compile_cache.FOLDER_VARIABLES)
