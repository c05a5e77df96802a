"""The harness with code added to some of its files: what a figure is measured with."""

from collections.abc import Mapping
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

from runner.backends import harness_archive


def packed(added: Mapping[str, str]) -> bytes:
    """Return the harness in the form that a server reads.

    Args:
        added: path below ``runner/harness`` -> what is put behind the file.
    """
    if not added:
        return harness_archive.pack()
    with TemporaryDirectory() as folder:
        copy = Path(copytree(harness_archive.FOLDER, Path(folder) / "harness"))
        for name, text in added.items():
            with (copy / name).open("a", encoding="ascii") as file:
                file.write(text)
        return harness_archive.pack(copy)
