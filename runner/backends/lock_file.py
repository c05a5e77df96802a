"""Read locks: packages by version and hash, and nothing that pip would take for an option."""

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import InvalidMarker, Marker
from packaging.utils import canonicalize_name

from runner.core.errors import Problem, ProvisionError, Where
from runner.core.files import read_bounded
from runner.core.model import Skip, Spec
from runner.core.outages import is_passing_error

LOCK_BYTES = 4 << 20  # the largest of the shipped locks has 76 KB
LOCK_AGAIN = "write it again with `runner lock`"
OVERRIDES = "# overrides: "
"""Begins the line of the header that names the packages whose versions count instead of what others require."""

AS_OF = "# the packages of "
"""Begins the line of the header with the date as of which the packages were chosen."""

_PACKAGE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[A-Za-z0-9._, -]*\])?==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")
_HASH = re.compile(r"--hash=(sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})")
_INDEX = re.compile(r"--extra-index-url (https?://[A-Za-z0-9\[][A-Za-z0-9._~:/?#\[\]@!&()*+,;=%-]*)")
_ENCODING = re.compile(r"coding[:=]\s*[-\w.]")  # pip decodes a file by such a comment, pip/_internal/utils/encoding.py
_UNUSUAL = re.compile(r"[^\n\x20-\x7e]")


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """A package of a lock.

    Attributes:
        name: as the lock spells it.
        version: the one version that is installed.
        hashes: of its files, ``sha256:`` and 64 hexadecimal digits.
        marker: the condition under which it is installed, PEP 508; empty without one.
    """

    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""

    @property
    def key(self) -> str:
        """The normalized name: small letters, with dashes."""
        return canonicalize_name(self.name)


@dataclass(frozen=True, slots=True)
class LockFile:
    """The content of a lock.

    Attributes:
        header: the comments above the packages, line by line.
        indexes: the package indexes that are asked in addition to the default one.
        packages: in the order of the file.
    """

    header: tuple[str, ...]
    indexes: tuple[str, ...]
    packages: tuple[LockedPackage, ...]

    @property
    def overrides(self) -> tuple[str, ...]:
        """The packages whose versions count instead of what others require, ``nvidia-cudnn-cu12==9.15.1.9``."""
        lines = [line.removeprefix(OVERRIDES) for line in self.header if line.startswith(OVERRIDES)]
        return tuple(package for line in lines for package in line.split(", "))

    @property
    def needs_no_deps(self) -> bool:
        """Whether pip has to ignore what the packages require (``--no-deps``), all of which the lock has.

        It refuses a version that contradicts what another package requires. And pip 23.2 takes the newest release of
        what another package requires with an extra, such as ``etils[epy]``, which a lock as of an earlier date lacks.
        """
        return any(line.startswith((OVERRIDES, AS_OF)) for line in self.header)


def read_lock(path: Path) -> tuple[bytes, LockFile]:
    """Return the content of a lock, as bytes and read.

    Raises:
        ProvisionError: it cannot be read, is no regular file, is larger than ``LOCK_BYTES``, or has a line that is not
            a package with a version and hashes; class ``image-build``.
    """
    try:
        content = read_bounded(path, LOCK_BYTES)
    except OSError as error:
        problem = Problem(f"cannot read the lock {path}: {error.strerror}", hint=LOCK_AGAIN)
        raise ProvisionError("image-build", problem, passing=is_passing_error(error)) from error
    return content, parse_lock(content, str(path))


def locked_packages(specs: Iterable[Spec]) -> dict[str, frozenset[str]]:
    """Return environment -> the normalized names in its lock, of those whose lock can be read."""
    names = {}
    for spec in specs:
        with contextlib.suppress(ProvisionError):  # ``lock_skip`` says why
            if spec.lock is not None:
                names[spec.environment] = frozenset(package.key for package in read_lock(spec.lock)[1].packages)
    return names


def lock_skip(spec: Spec) -> Skip | None:
    """Return why an environment has no lock that can be installed, None if it has one."""
    if spec.lock is None or not spec.lock.is_file():
        return Skip("image-unavailable", spec.missing_lock)
    try:
        read_lock(spec.lock)
    except ProvisionError as error:
        problem = error.problems[0]
        line = f", line {problem.where.line}" if problem.where else ""
        reason = f"{problem.message} ({spec.lock.name}{line}): {problem.hint}"
        return Skip("image-unavailable", reason, passing=error.passing)
    return None


def parse_lock(content: bytes, name: str) -> LockFile:
    """Return the packages of a lock from its content.

    Allowed are comments, ``--extra-index-url`` with an address, and packages as ``name==version``, a marker, and at
    least one ``--hash``. Nothing else is: pip would also take paths, addresses, and options that read other files or
    install without hashes.

    Args:
        content: the bytes of the file.
        name: what messages call the file.

    Raises:
        ProvisionError: a line is something else; class ``image-build``.
    """
    text = content.replace(b"\r\n", b"\n").decode("latin-1")
    if match := _UNUSUAL.search(text):
        number = text.count("\n", 0, match.start()) + 1
        raise _refusal(name, number, "", "a lock has no control characters and no characters beyond ASCII")
    header: list[str] = []
    indexes: list[str] = []
    packages: list[LockedPackage] = []
    number = 1
    for entry in re.sub(r"\\\n", "\\\\\0", text).split("\n"):  # a line that ends with a backslash goes on in the next
        line = entry.strip()
        if line.startswith("#"):
            if "\0" in line or (number <= 2 and _ENCODING.search(line)):
                raise _refusal(name, number, line, "a comment that pip reads as something else")
            header += [line] if not packages else []
        elif match := _INDEX.fullmatch(line):
            indexes.append(match[1])
        elif line:
            packages.append(_package(name, number, line))
        number += 1 + entry.count("\0")
    return LockFile(tuple(header), tuple(indexes), tuple(packages))


def _package(name: str, number: int, line: str) -> LockedPackage:
    """Return the package of a line, with the lines that continue it."""
    head, *options = re.split(r"\s--", line.replace("\\\0", " "))
    requirement, semicolon, marker = (part.strip() for part in head.partition(";"))
    match = _PACKAGE.fullmatch(requirement)
    hashes = [_HASH.fullmatch(f"--{option.strip()}") for option in options]
    if match is None or (semicolon and not _is_marker(marker)):
        raise _refusal(name, number, line, "this is not a package with a version")
    if not hashes or None in hashes:
        raise _refusal(name, number, line, f"{match[1]} has {'an option' if hashes else 'no hash'}")
    return LockedPackage(match[1], match[2], tuple(each[1] for each in hashes if each), marker)


def _is_marker(text: str) -> bool:
    """Return True if a text is a marker of PEP 508 in which pip sees no option."""
    try:
        Marker(text)
    except InvalidMarker:
        return False
    return not any(word.strip("'\"").startswith("-") for word in text.split()) and not set(text) & set("\\#$")


def _refusal(name: str, number: int, line: str, message: str) -> ProvisionError:
    shown = re.sub(r"\\?\0.*", "", line)[:120]
    where = Where(name, number, 1, shown, max(1, len(shown)))
    return ProvisionError("image-build", Problem(f"the lock is refused: {message}", where, LOCK_AGAIN))
