"""The size on disk of the packages of an environment.

It is counted in each server, in 0.1 s for TensorFlow: programs of users can write to every folder that outlives a server.
"""

import os
import sys
import sysconfig

FOLDERS = ("site-packages", "dist-packages")
BYTE_CODE = "__pycache__"  # not counted: its content depends on what has been imported


def facts() -> "dict":
    """Return ``installed_bytes``, the size of all files in the package folders; empty if they cannot be read."""
    try:
        size = sum(folder_bytes(folder) for folder in package_folders())
    except OSError:
        return {}
    return {"installed_bytes": size} if size else {}


def package_folders() -> "list":
    """Return the folders in which this interpreter finds packages, sorted, without folders that are inside another one."""
    known = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    known += [path for path in sys.path if os.path.basename(path) in FOLDERS]
    folders = sorted({os.path.realpath(path) for path in known if path and os.path.isdir(path)})
    return [path for path in folders if not any(path.startswith(other + os.sep) for other in folders)]


def folder_bytes(folder: "str") -> "int":
    """Return the size of the files in a folder and below it; symbolic links are not counted."""
    size = 0
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != BYTE_CODE]
        for name in names:
            full = os.path.join(path, name)
            if not os.path.islink(full):
                size += os.path.getsize(full)
    return size
