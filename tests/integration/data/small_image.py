"""Write a tar with what an image needs to run NumPy, and nothing else; the argument names the file.

The image has the interpreter with its libraries, and the C libraries of both.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "pip", "setuptools", "__pycache__"}


def imported(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return an entry of the tar, None for what no measurement imports."""
    parts = set(Path(entry.name).parts)
    return None if parts & LEFT_OUT or "/config-" in entry.name or entry.name.endswith(".a") else entry


def libraries(files: list[str], below: str) -> list[str]:
    """Return the C libraries that programs and extensions load, and the loader; without those below a folder."""
    listed = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False).stdout
    words = {os.path.normpath(word) for word in listed.split() if word.startswith("/") and not word.endswith(":")}
    return sorted(word for word in words if Path(word).is_file() and not word.startswith(below))


folder, program = sysconfig.get_path("stdlib"), os.path.realpath(sys.executable)
with tarfile.open(sys.argv[1], "w") as tar:
    tar.add(folder, filter=imported)
    paths = [program, *map(str, Path(folder).rglob("*.so*"))]
    for path in [program, *libraries(paths, folder), "/etc/passwd", "/etc/ld.so.cache", "/work", "/cache", "/tmp"]:
        tar.add(os.path.realpath(path), arcname=path, recursive=False)
    link = tarfile.TarInfo("usr/bin/python3")
    link.type, link.linkname = tarfile.SYMTYPE, program
    tar.addfile(link)
