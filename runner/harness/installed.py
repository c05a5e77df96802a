"""How many bytes the packages of an environment have on disk; counted once, and kept in a folder of the environment."""

import json
import os
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEPT = "installed-bytes.json"
FOLDERS = ("site-packages", "dist-packages")
LEFT_OUT = "__pycache__"  # its content depends on what has been imported


def facts(kept_in: "str") -> "dict":
    """Return ``installed_bytes``, the size of all files in the folders of packages; empty where they cannot be read.

    Args:
        kept_in: a folder for the number; empty for none. It holds until a package is added to the folders, or removed.
    """
    try:
        folders = package_folders()
        stamp = [[folder, int(os.stat(folder).st_mtime)] for folder in folders]
        size = kept(kept_in, stamp)
        if size is None:
            size = sum(folder_bytes(folder) for folder in folders)
            keep(kept_in, stamp, size)
    except OSError:
        return {}
    return {"installed_bytes": size} if size else {}


def package_folders() -> "list":
    """Return the folders in which this interpreter finds packages, sorted; none of them is in another."""
    known = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    known += [path for path in sys.path if os.path.basename(path) in FOLDERS]
    folders = sorted({os.path.realpath(path) for path in known if path and os.path.isdir(path)})
    return [path for path in folders if not any(path.startswith(other + os.sep) for other in folders)]


def folder_bytes(folder: "str") -> "int":
    """Return the size of the files in a folder and below it; links count as nothing."""
    size = 0
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != LEFT_OUT]
        for name in names:
            full = os.path.join(path, name)
            if not os.path.islink(full):
                size += os.path.getsize(full)
    return size


def kept(folder: "str", stamp: "list") -> "Any":
    """Return the number that was kept with a stamp; None where there is none."""
    try:
        with open(os.path.join(folder, KEPT), encoding="utf-8") as file:
            document = json.load(file)
        return int(document["bytes"]) if folder and document["stamp"] == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(folder: "str", stamp: "list", size: "int") -> "None":
    """Keep a number with a stamp, where the folder can be written to."""
    if not folder:
        return
    path = os.path.join(folder, KEPT)
    try:
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"stamp": stamp, "bytes": size}, file)
        os.replace(path + ".new", path)
    except OSError:
        pass
