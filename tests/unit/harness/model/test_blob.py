"""Arrays of references in files, and copies outside of the heap."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.harness.model import blob

GROUPS = {
    "outputs": [("mask", np.array([True, False, True])), ("empty", np.zeros((0, 4), np.float32))],
    "state": [("weight", np.arange(12.0).reshape(3, 4)), ("count", np.array(7))],
}


def test_what_is_read_is_what_was_written_and_cannot_be_changed(tmp_path: Path) -> None:
    path = str(tmp_path / "arrays")
    blob.write(path, GROUPS)
    read = blob.read(path, blob.index(GROUPS))
    assert {group: [name for name, _ in arrays] for group, arrays in read.items()} == {
        "outputs": ["mask", "empty"],
        "state": ["weight", "count"],
    }
    for group, arrays in read.items():
        for (_, array), (_, expected) in zip(arrays, GROUPS[group], strict=True):
            assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
            assert array.tolist() == expected.tolist()  # those after the mask are not aligned
    with pytest.raises(ValueError, match="read-only"):
        read["state"][0][1][0, 0] = 1.0


def test_a_file_that_is_too_short_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "arrays"
    blob.write(str(path), GROUPS)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="buffer"):
        blob.read(str(path), blob.index(GROUPS))
    assert blob.read(str(path), []) == {}
    path.write_bytes(b"")
    assert blob.read(str(path), []) == {}


@pytest.mark.parametrize("count", [0, 3, blob.HEAP_BYTES // 8, 1 << 17])
def test_a_copy_is_another_array_that_can_be_written(count: int) -> None:
    array = np.arange(float(count))
    for given in (array, array[::2]):
        copy: Any = blob.copied(given)
        assert copy.tolist() == given.tolist()
        copy += 1.0
        assert copy.sum() == given.sum() + len(given)
