"""Keep what a checkout answers, or show how two of them differ.

First ``python -m tests.behaviour --checkout TREE --python PYTHON --stored FOLDER --out FOLDER`` for the code before a
change and for the code after it, then ``python -m tests.behaviour --diff BEFORE AFTER``.
"""

import argparse
import gzip
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from difflib import unified_diff
from fnmatch import fnmatchcase
from pathlib import Path

from tests.behaviour.answers import Places, masked
from tests.behaviour.commands import Command, commands

MOST_LINES, MOST_LETTERS = 30, 240


def keep(places: Places, out: Path, only: str, workers: int) -> None:
    """Write the answer of each command into a file of its own."""
    chosen = [command for command in commands(places.stored, places.tree) if fnmatchcase(command.name, only)]

    def write(command: Command) -> None:
        path = out / f"{command.name.replace('/', '~')}.txt.gz"
        path.write_bytes(gzip.compress(places.answer(command).encode(), 3, mtime=0))
        sys.stderr.write(f"{command.name}\n")

    out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(write, chosen))


def differing(before: Path, after: Path) -> list[str]:
    """Print how the answers of two folders differ, and return the names of the commands."""
    names = sorted({path.name for folder in (before, after) for path in folder.glob("*.gz")})
    changed = []
    for name in names:
        first, second = (_lines(folder / name) for folder in (before, after))
        if first != second:
            changed.append(name.removesuffix(".txt.gz"))
            lines = (
                list(unified_diff(first, second, lineterm="", n=1))[2:] if len(first) + len(second) < 200_000 else []
            )
            shown = [line[:MOST_LETTERS] for line in lines[:MOST_LINES]]
            rest = f"... {len(lines) - len(shown)} more lines" if len(lines) > len(shown) else ""
            sys.stdout.write("\n".join([f"\n===== {changed[-1]}", *shown, rest]) + "\n")
    sys.stdout.write(f"\n{len(names)} commands, {len(changed)} differ: {' '.join(changed)}\n")
    return changed


def _lines(path: Path) -> list[str]:
    """Return the lines of an answer, without what an earlier version of this script did not mask."""
    return masked(gzip.decompress(path.read_bytes()).decode()).splitlines() if path.exists() else ["there is no answer"]


def main() -> int:
    """Read the command line; the exit code is 1 where answers differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.behaviour", description=__doc__)
    parser.add_argument("--checkout", type=Path)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--stored", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="*", help="a glob over the names of commands, such as 'plan/*'")
    parser.add_argument("--workers", type=int, default=2, help="how many commands run at the same time")
    parser.add_argument("--diff", type=Path, nargs=2)
    given = parser.parse_args()
    if given.diff:
        return int(bool(differing(*given.diff)))
    started = datetime.now(UTC).replace(microsecond=0)
    tree, stored = given.checkout.resolve(), given.stored.resolve()
    places = Places(tree, given.python.absolute(), stored, given.out.absolute() / "bytecode", started)
    keep(places, given.out, given.only, given.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
