"""The folder in which compilers keep their results, and which cells still have to be compiled there.

An environment has one folder for each device. A cell that times a cold start gets an empty folder instead.
"""

import hashlib
import os

from . import variables

FOLDER_VARIABLES = (
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "JAX_COMPILATION_CACHE_DIR",
    "XDG_CACHE_HOME",
)
PHASES = ("forward", "gradient", "train")
LONG_SECONDS = 10.0  # that one layer takes more with empty caches than with warm ones


DRIVER_VARIABLE = "CUDA_CACHE_PATH"  # where the driver keeps GPU code that it has compiled


def use(folder: "str", driver_folder: "object" = None) -> "None":
    """Point every compiler cache into ``folder``; call it before a framework compiles anything.

    The cache of the GPU's driver is in ``driver_folder``, if given.
    """
    for name in FOLDER_VARIABLES:
        path = os.path.join(driver_folder if driver_folder and name == DRIVER_VARIABLE else folder, name.lower())
        os.makedirs(path, exist_ok=True)  # other servers of the environment start at the same time
        os.environ[name] = path
    os.environ["CUDA_CACHE_MAXSIZE"] = str(4 << 30)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no worker processes that outlive a child
    flags = [os.environ.get("THEANO_FLAGS", "")] if "THEANO_FLAGS" in variables.CHOSEN else []
    os.environ["THEANO_FLAGS"] = ",".join(flags + ["base_compiledir=" + os.path.join(folder, "theano")])


def cold_cells(implementations: "dict", folder: "str", threads: "int", cells: "list") -> "dict":
    """Return index in ``cells`` (as text) -> about how many seconds that cell will compile.

    Args:
        implementations: slug -> class.
        folder: the folder of the compiler caches.
        threads: of the server; compiled code depends on them.
        cells: requests, each with ``key``, ``implementation``, ``phase``, ``precision``. Cells that time a cold start
            are left out, and so are original programs, which have to be run to their end.
    """
    seconds = {}
    for index, cell in enumerate(cells):
        implementation = implementations.get(cell["implementation"])
        if implementation is None or cell["phase"] not in PHASES or not compiles_long(implementation):
            continue
        if not os.path.exists(marker(cell, folder, threads)):
            seconds[str(index)] = implementation.compiling()[0]
    return seconds


def compiles_long(implementation: "type") -> "bool":
    """Return whether an implementation compiles so long that several should compile at a time."""
    empty, warm = implementation.compiling()
    return empty - warm >= LONG_SECONDS


def mark_compiled(implementation: "type", cell: "dict", folder: "str", threads: "int") -> "None":
    """Record in the cache that a cell has been compiled; a cache that cannot be written to records nothing."""
    if not compiles_long(implementation):
        return
    path = marker(cell, folder, threads)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii"):
            pass
    except OSError:
        pass


def marker(cell: "dict", folder: "str", threads: "int") -> "str":
    """Return the path of the empty file that records that a cell has been compiled."""
    name = "/".join([cell[key] for key in ("key", "implementation", "phase", "precision")] + [str(threads)])
    return os.path.join(folder, "compiled", hashlib.sha256(name.encode("utf-8")).hexdigest()[:16])
