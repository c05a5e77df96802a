"""The last step of building an environment that adds packages: imports them, so that a pair that does not fit fails there.

    python added.py LOCK_BEFORE LOCK PACKAGE...

LOCK_BEFORE is the lock of the environment that is extended, LOCK that of the new one. Packages that only LOCK_BEFORE has
are uninstalled first. This file runs alone, when an environment is built.
"""

import importlib
import re
import subprocess
import sys

NO_CODE = ("tests", "test", "testing", "docs", "doc", "examples", "benchmarks", "setup", "conftest", "scripts", "tools")
"""Modules that packages install by mistake, or for their own tests."""
OF_A_GPU = ("libcuda", "libnvidia", "CUDA driver", "NVIDIA driver", "no CUDA", "No CUDA")
"""In messages of packages that look for a GPU when they are imported: there is none where environments are built."""


def normalized(name: "str") -> "str":
    """Return the name of a package as PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(path: "str") -> "set":
    """Return the names of the packages of a lock."""
    with open(path, encoding="ascii") as file:
        return {normalized(name) for name in re.findall(r"^([A-Za-z0-9][A-Za-z0-9._-]*)", file.read(), re.MULTILINE)}


def files_of(package: "str") -> "list":
    """Return the paths of the installed files of a package, relative to where packages are."""
    try:
        metadata = importlib.import_module("importlib.metadata")  # Python 3.8
    except ImportError:
        distribution = importlib.import_module("pkg_resources").get_distribution(package)
        return [line.rpartition(",")[0].rpartition(",")[0] for line in distribution.get_metadata_lines("RECORD")]
    return [str(file) for file in metadata.distribution(package).files or ()]


def modules_of(package: "str", files: "list") -> "list":
    """Return the modules at the top level of a package: that of its own name, or else all that are not for its own use.

    >>> modules_of("torch-geometric", ["torch_geometric/__init__.py", "tests/__init__.py"])
    ['torch_geometric']
    >>> modules_of("pillow", ["PIL/__init__.py", "pillow.libs/libjpeg.so"])
    ['PIL']
    """
    parts = [file.split("/") for file in files]
    names = [each[0] for each in parts if len(each) == 2 and each[1] == "__init__.py"]
    names += [each[0].split(".")[0] for each in parts if len(each) == 1 and each[0].endswith((".py", ".so"))]
    names = sorted({name for name in names if name.isidentifier() and not name.startswith("_") and name not in NO_CODE})
    return [name for name in names if normalized(name) == normalized(package)] or names


def problem_of(name: "str") -> "str":
    """Import a module; return what is wrong with it, empty if nothing is."""
    try:
        importlib.import_module(name)
    except BaseException as error:  # a module may end the interpreter
        words = "{}: {}".format(type(error).__name__, " ".join(str(error).split())[:500])
        if any(sign in words for sign in OF_A_GPU):
            print("{} was not imported here, for it needs a GPU: {}".format(name, words))
            return ""
        return words
    return ""


def main(before: "str", lock: "str", *packages: "str") -> "int":
    """Remove what is too much, and import the packages; return the exit status."""
    removed = sorted(locked(before) - locked(lock) - {"pip", "setuptools", "wheel"})
    if removed:
        subprocess.check_call([sys.executable, "-m", "pip", "uninstall", "--yes"] + removed)
    problems = []
    for package in packages:
        for name in modules_of(package, files_of(package)):
            problem = problem_of(name)
            if problem:
                problems.append("ERROR: the package {} does not work here: import {}: {}".format(package, name, problem))
    sys.stdout.flush()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
