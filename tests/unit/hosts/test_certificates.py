"""Certificates are written to a folder of this user alone, all of them or none."""

import os
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.hosts.certificates import FILES, check, make


def test_what_is_made_can_be_used(tmp_path: Path) -> None:
    make(tmp_path / "certificates")
    assert check(tmp_path / "certificates") == tuple(tmp_path / "certificates" / name for name in FILES)
    assert {(tmp_path / "certificates" / name).stat().st_mode & 0o777 for name in FILES} == {0o600}
    with pytest.raises(UsageError, match="is not empty"):
        make(tmp_path / "certificates")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(UsageError, match=f"has mode 0{mode:o}: others may write to it"):
        make(folder)
    assert not [*folder.iterdir()]
    folder.chmod(0o755)
    make(folder)


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(UsageError, match="belongs to another user"):
        make(folder)


def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fdopen = os.fdopen
    opened: list[int] = []

    def full(descriptor: int, mode: str) -> object:
        opened.append(descriptor)
        if len(opened) == 2:
            os.close(descriptor)
            raise OSError(28, "No space left on device")
        return fdopen(descriptor, mode)

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(UsageError, match="No space left on device"):
        make(tmp_path / "certificates")
    assert not [*(tmp_path / "certificates").iterdir()]


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "certificates")
    (tmp_path / "certificates" / "key.pem").chmod(0o640)
    with pytest.raises(UsageError, match=r"key\.pem cannot be used: its mode is 0640, so that others may use it"):
        check(tmp_path / "certificates")
    (tmp_path / "certificates" / "ca.pem").unlink()
    with pytest.raises(UsageError, match=r"there is no .*ca\.pem"):
        check(tmp_path / "certificates")
