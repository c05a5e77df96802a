"""The checksums of many files at once."""

import os
from pathlib import Path

import pytest

from runner.store.checksums import PIECE_BYTES, file_checksum, have_checksums

LIMIT = 3 * PIECE_BYTES


def stored(folder: Path, *sizes: int) -> dict[str, str]:
    """Write files of these sizes, and return their checksums."""
    (folder / "records").mkdir()
    checksums = {}
    for number, size in enumerate(sizes):
        content = bytes(index % 251 for index in range(size))
        (folder / f"records/{number}").write_bytes(content)
        checksums[f"records/{number}"] = file_checksum(content)
    return checksums


@pytest.mark.parametrize("size", [0, 10, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, LIMIT])
def test_unchanged_files_have_their_checksums_and_a_changed_byte_is_noticed(tmp_path: Path, size: int) -> None:
    checksums = stored(tmp_path, 1000, size)
    assert have_checksums(tmp_path, checksums, LIMIT)
    with (tmp_path / "records/1").open("r+b") as stream:
        stream.seek(max(0, size - 1))
        stream.write(b"\xff")
    assert not have_checksums(tmp_path, checksums, LIMIT)


def test_a_file_above_the_limit_does_not_count(tmp_path: Path) -> None:
    checksums = stored(tmp_path, LIMIT + 1)
    assert not have_checksums(tmp_path, checksums, LIMIT)
    assert have_checksums(tmp_path, checksums, LIMIT + 1)


def test_what_cannot_be_read_does_not_count(tmp_path: Path) -> None:
    checksums = stored(tmp_path, 0)
    for name in ("missing", "nul\0", "records"):
        assert not have_checksums(tmp_path, {name: file_checksum(b"")}, LIMIT)
    assert not have_checksums(tmp_path / "missing", checksums, LIMIT)


def test_devices_and_pipes_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "endless"):
        assert not have_checksums(tmp_path, {name: file_checksum(b"a record")}, LIMIT)
