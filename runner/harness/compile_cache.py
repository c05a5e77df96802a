"""Which cells wait for a compiler: those whose implementation compiles for long, and has left nothing in the cache."""

import hashlib
import os

PHASES = ("forward", "gradient", "train")
LONG = 10.0  # seconds that one layer takes more with empty caches than with warm ones


def cold(implementations: "dict", cache: "str", threads: "int", cells: "list") -> "dict":
    """Return, by place among ``cells``, about how many seconds a cell will compile.

    Args:
        implementations: slug -> class, of those that may be asked for.
        cache: the folder that compilers keep things in.
        threads: of the server; compilers are told of them.
        cells: requests, each with ``key``, ``implementation``, ``phase``, ``precision``; those that time a cold start
            are left out, and so are original programs, which have to be run to their end.
    """
    found = {}
    for place, cell in enumerate(cells):
        chosen = implementations.get(cell["implementation"])
        if chosen is None or cell["phase"] not in PHASES or not long(chosen):
            continue
        if not os.path.exists(mark(cell, cache, threads)):
            found[str(place)] = chosen.compiling()[0]
    return found


def long(chosen: "type") -> "bool":
    """Say whether it is worth not to compile one after the other."""
    empty, warm = chosen.compiling()
    return empty - warm >= LONG


def made(chosen: "type", cell: "dict", cache: "str", threads: "int") -> "None":
    """Remember that a cell has been compiled; a cache that cannot be written to forgets it."""
    if not long(chosen):
        return
    path = mark(cell, cache, threads)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii"):
            pass
    except OSError:
        pass


def mark(cell: "dict", cache: "str", threads: "int") -> "str":
    """Return the path of the file that says that a cell has been compiled."""
    name = "/".join([cell[part] for part in ("key", "implementation", "phase", "precision")] + [str(threads)])
    return os.path.join(cache, "compiled", hashlib.sha256(name.encode("utf-8")).hexdigest()[:16])
