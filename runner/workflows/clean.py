"""Find what this program has left on this machine and nothing needs any more, and remove it; runs are never touched."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.backends import interpreters
from runner.backends.venv import READY, VenvBackend
from runner.core.errors import EngineError
from runner.core.locks import alone_now
from runner.core.model import Device, Leftover, Spec
from runner.core.units import size
from runner.matrix import load
from runner.measure.references import code_hash
from runner.plan.environments import specs
from runner.workflows.context import IN_USE

DEVICES: tuple[Device, ...] = ("cpu", "cuda")
ON_ENGINE = ("container", "image", "volume")
PREFIX = "matrix-runner-"  # of a server's temporary folder
AT_WORK = "a runner is at work with this cache: what it may need stays; try again when it has ended"
NO_ENGINE = "no container engine answers: images, volumes and containers were not looked at"

_MADE_UP = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")  # what tempfile.mkdtemp makes of it
_MADE = re.compile(r".+-[0-9a-f]{12}")  # what VenvBackend.home calls a folder


@dataclass(frozen=True, slots=True)
class Found:
    """What may go, and what the user should know about the search."""

    leftovers: tuple[Leftover, ...]
    notes: tuple[str, ...]


@contextmanager
def leftovers(matrix: Path, cache: Path, *, everything: bool) -> Iterator[Found]:
    """Find what may go; no other runner of this cache begins before the block ends.

    Args:
        matrix: the matrix file, which says what is needed.
        cache: what ``setup.cache_folder`` returns.
        everything: what the matrix needs may go as well; it can be made again.
    """
    read = load(matrix)
    wanted = [spec for device in DEVICES for spec in specs(read, tuple(read.environments), device, matrix.parent)[0]]
    with alone_now(cache / IN_USE) as alone:
        found: list[Leftover] = []
        notes = [] if alone else [AT_WORK]
        try:
            found += _on_engine(matrix.parent / "docker", wanted, alone=alone, everything=everything)
        except EngineError:
            notes.append(NO_ENGINE)
        if alone:
            found += [*_in_cache(cache, wanted, everything=everything), *_temporary()]
        yield Found(tuple(found), tuple(notes))


def listing(found: Found) -> str:
    """Return what may go as text: size, kind, name and reason."""
    if not found.leftovers:
        return "nothing is left behind"
    rows = [(size(left.size), left.kind, left.name, left.reason) for left in found.leftovers]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(f"{row[0]:>{widths[0]}}  {row[1]:{widths[1]}}  {row[2]:{widths[2]}}  {row[3]}" for row in rows)


def remove(found: Sequence[Leftover]) -> tuple[tuple[Leftover, str], ...]:
    """Remove things; return those that stay, each with the reason."""
    stay: list[tuple[Leftover, str]] = []
    engine = [left for left in found if left.kind in ON_ENGINE]
    if engine:
        stay += _remove_from_engine(engine)
    for left in found:
        if left.kind not in ON_ENGINE:
            try:
                _remove_path(Path(left.name))
            except OSError as error:
                stay.append((left, str(error)))
    return tuple(stay)


def summary(found: Found, stay: Sequence[tuple[Leftover, str]], *, dry: bool) -> str:
    """Return how it ended, in a sentence."""
    kept = {left for left, _ in stay}
    gone = [left for left in found.leftovers if left not in kept]
    verb = "would be removed" if dry else "removed"
    things = "1 thing" if len(gone) == 1 else f"{len(gone)} things"
    return f"{things} {verb}, {size(sum(left.size for left in gone))}"


def _on_engine(folder: Path, wanted: Sequence[Spec], *, alone: bool, everything: bool) -> list[Leftover]:
    from runner.backends.docker.backend import DockerBackend
    from runner.backends.docker.cleanup import dead, unneeded
    from runner.backends.docker.client import connect, talking

    backend = DockerBackend(folder)
    with closing(connect()) as client, talking("the container engine stopped answering"):
        found = [*dead(client)]
        if alone:
            found += unneeded(client, backend.tags(wanted), everything=everything)
        return found


def _remove_from_engine(found: Sequence[Leftover]) -> Iterator[tuple[Leftover, str]]:
    from runner.backends.docker.cleanup import discard
    from runner.backends.docker.client import FOREIGN, connect, sentence

    with closing(connect()) as client:
        for left in found:
            try:
                discard(client, left)
            except FOREIGN as error:
                yield left, sentence(error)


def _in_cache(cache: Path, wanted: Sequence[Spec], *, everything: bool) -> Iterator[Leftover]:
    venvs = VenvBackend(cache)
    needed = {venvs.home(spec).name for spec in wanted if spec.lock and spec.python}
    going = {left.name: left for left in _venvs(venvs.folder, needed, wanted, everything=everything)}
    yield from going.values()
    staying = {path.name for path in _entries(venvs.folder) if str(path) not in going}
    for path in _entries(venvs.caches):
        if everything:
            yield _left("cache", path, "--all; compilers fill it again")
        elif _MADE.fullmatch(path.name) and path.name not in staying:
            yield _left("cache", path, "no environment is left for it")
    for path in _entries(cache / "references"):
        if path.name.startswith("."):
            yield _left("reference", path, "half-written")
        elif everything:
            yield _left("reference", path, "--all; it can be computed again")
        elif not path.name.endswith(f"-{code_hash()}.json"):
            yield _left("reference", path, "it was computed by older code")


def _venvs(folder: Path, needed: set[str], wanted: Sequence[Spec], *, everything: bool) -> Iterator[Leftover]:
    known = {spec.environment for spec in wanted}
    # Whose interpreter is not found just now: what their venvs should be called cannot be said.
    unknown = {spec.environment for spec in wanted if spec.python and interpreters.find(spec.python) is None}
    for path in _entries(folder):
        if not path.is_dir() or not _idle(path):
            continue
        environment = path.name.rpartition("-")[0]
        if not (path / READY).exists():
            yield _left("venv", path, "half-made")
        elif environment in unknown and not everything:
            continue
        elif path.name not in needed:
            changed = f"the lock or the interpreter of {environment} has changed"
            yield _left("venv", path, changed if environment in known else f"the matrix makes no venv of {environment}")
        elif everything:
            yield _left("venv", path, f"--all; {environment} can be made again")


def _idle(home: Path) -> bool:
    """Say whether nobody makes this venv just now."""
    lock = home.with_name(f"{home.name}.lock")
    if not lock.exists():
        return True
    with alone_now(lock) as alone:
        return alone


def _temporary() -> Iterator[Leftover]:
    """Yield the folders of servers that are gone: a server works in its own."""
    at_work = set()
    for process in Path("/proc").glob("[0-9]*/cwd"):
        try:
            at_work.add(process.readlink())
        except OSError:
            continue  # it has ended, or is somebody else's
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _of_a_server(path) and not any(path == folder or path in folder.parents for folder in at_work):
            yield _left("folder", path, "its server is gone")


def _of_a_server(path: Path) -> bool:
    """Say whether a folder is one that a channel made: its name is made up, and it holds what the server wrote."""
    try:
        mine = not path.is_symlink() and path.stat().st_uid == os.getuid()
        return mine and bool(_MADE_UP.fullmatch(path.name)) and (path / "stderr").is_file()
    except FileNotFoundError:
        return False  # it has just gone


def _entries(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.iterdir())) if folder.is_dir() else ()


def _left(kind: str, path: Path, reason: str) -> Leftover:
    return Leftover(kind=kind, name=str(path), reason=reason, size=_size(path))


def _size(path: Path) -> int:
    """Return the bytes of a file or of all files in a folder; links count as nothing."""
    if not path.is_dir():
        return path.lstat().st_size
    return sum((Path(root) / name).lstat().st_size for root, _, names in os.walk(path) for name in names)


def _remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        (path / READY).unlink(missing_ok=True)  # first: what is left of a venv must not pass for one
        shutil.rmtree(path)
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    else:
        path.unlink(missing_ok=True)
