"""Lock files: every package of an environment by version and hash, the same on every machine."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from uv import find_uv_bin

from runner.backends.lock_file import AS_OF, LOCK_BYTES, OVERRIDES, parse_lock, read_lock
from runner.core.errors import MatrixError, Problem, ProvisionError
from runner.core.files import read_bounded, write_whole
from runner.core.outages import is_outage
from runner.matrix.environments import package_name
from runner.releases.candidates import COMPANIONS
from runner.releases.index_client import had_no_memory, run_client
from runner.releases.lock_requests import (
    OWN_HEADER,
    LockRequest,
    kept_versions,
    lock_requests,
    of_architecture,
    target_problem,
)

ALWAYS = "2100-01-01"
"""A day before which every package was uploaded."""
_UV_SECONDS = 600.0
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
_OPTION = re.compile(r"^\s*(?:-i|-f|--index-url|--extra-index-url|--find-links|--trusted-host|--no-index)\b")
_OTHER_OPTION = re.compile(r"-(?!-hash=)")
_USER = re.compile(r"://[^/@\s]+@")
_REQUESTED = re.compile(r"-r -$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockResult:
    """What a lock holds.

    Attributes:
        path: the lock file.
        changed: whether the file was written; a new date alone does not change it.
        packages: name and version, in the order of the file.
    """

    path: Path
    changed: bool
    packages: tuple[tuple[str, str], ...]


def lock(request: LockRequest, today: date | None = None) -> LockResult:
    """Resolve an environment's requirements to versions and hashes, and write the lock if it changed.

    Args:
        request: what to resolve.
        today: the date for the header; the current one (UTC) if not given.

    Raises:
        ProvisionError: uv is missing or found no solution, or the lock would hold a path of this machine, a password
            or an option; class ``lock``, with uv's last lines.
    """
    text = resolved(request, today)
    changed = not same(text, request.out)
    if changed:
        write_whole(request.out, text)
    return LockResult(path=request.out, changed=changed, packages=pins(text))


def resolved(request: LockRequest, today: date | None = None) -> str:
    """Return the lock of an environment's requirements; see ``lock``. Nothing is written."""
    if request.index is not None and _USER.search(request.index):
        raise _error(request, "the address of the index contains a user name; use a public index")
    body = clean(_resolve(request), request)
    header = header_of(request, today or datetime.now(UTC).date())
    index = [f"--extra-index-url {request.index}"] if request.index else []
    of_day = f"{AS_OF}{request.as_of}" if request.as_of else ""
    overrides = OVERRIDES + ", ".join(request.overrides) if request.overrides else ""
    notes = [of_architecture(request), of_day, overrides, kept_versions(request)]
    text = "\n".join([header, *filter(None, notes), *index, body])
    parse_lock(text.encode(), str(request.out))
    return text


def header_of(request: LockRequest, today: date) -> str:
    """Return the first line of a lock: the command that wrote it, its requirements and its date."""
    requirements = ", ".join(request.requirements)
    return f"{OWN_HEADER}{request.name}` from: {requirements}, Python {request.python}, {today.isoformat()}"


def command_of(uv: str, request: LockRequest) -> list[str]:
    """Return uv's command line; it reads the requirements from stdin."""
    command = [uv, "pip", "compile", "-", "--quiet", "--generate-hashes", "--no-header", "--color", "never"]
    command += ["--no-emit-index-url", "--no-emit-find-links"]
    command += ["--python-version", request.python, "--python-platform", request.platform]
    if request.find_links is not None:
        command += ["--find-links", request.find_links]
    elif request.index is not None:
        # pip's strategy: the best version of all indexes. PyTorch's index holds old copies of NumPy and other packages.
        command += ["--index", request.index, "--index-strategy", "unsafe-best-match"]
    if request.as_of is not None:
        command += ["--exclude-newer", request.as_of.isoformat()]
        # wheels of jaxlib before 0.4.18 came to PyPI in December 2025 only, which their upload times say
        always = {name for names in COMPANIONS.values() for name in names} | set(map(package_name, request.exact))
        for name in sorted(always):
            command += ["--exclude-newer-package", f"{name}={ALWAYS}"]
    if request.upgrade:
        command += ["--upgrade-package", request.upgrade]
    return command


def clean(resolved: str, request: LockRequest) -> str:
    """Return uv's output without what belongs to this machine: indexes and folders.

    Raises:
        ProvisionError: a package is pinned to a path or an address instead of a version, or has no hash; or there is
            another option.
    """
    body = "\n".join(line for line in resolved.splitlines() if not _OPTION.match(line)).strip() + "\n"
    body = _REQUESTED.sub("(asked for)", body)
    for entry in re.split(r"^(?=[A-Za-z0-9])", body, flags=re.MULTILINE):
        first = entry.partition("\n")[0].strip(" \\")
        option = next((each for each in map(str.strip, entry.splitlines()) if _OTHER_OPTION.match(each)), None)
        if option is not None:
            raise _error(request, f"a lock has no option such as {_USER.sub('://', option)!r}")
        if not first or first.startswith("#"):
            continue
        if _PIN.match(entry) is None:
            raise _error(
                request, f"{_USER.sub('://', first)!r} is a path or an address; pin a version such as 'numpy==1.19.5'"
            )
        if "--hash=" not in entry:
            raise _error(request, f"{first!r} has no hash")
    return body


def pins(text: str) -> tuple[tuple[str, str], ...]:
    """Return the packages of a lock, name and version, in the order of the file."""
    return tuple((match[1], match[2]) for match in _PIN.finditer(text))


def same(text: str, path: Path) -> bool:
    """Return True where a file holds this lock already, whatever its date."""
    try:
        content = read_bounded(path, LOCK_BYTES)
    except OSError:  # there is none, or something that is no lock
        return False
    return _undated(content.decode("utf-8", "replace")) == _undated(text)


def useful_lines(stderr: str, limit: int = 12) -> str:
    """Return the last lines of uv's errors, without warnings and without passwords in addresses."""
    lines: list[str] = []
    warning = False
    for line in stderr.splitlines():
        if not line.strip():
            continue
        if not line.startswith((" ", "\t")):
            warning = line.startswith("warning:")
        if not warning:
            lines.append(_USER.sub("://", line.rstrip()))
    return "\n".join(lines[-limit:])


def _undated(text: str) -> str:
    header, _, rest = text.partition("\n")
    return re.sub(r", \d{4}-\d{2}-\d{2}$", "", header) + "\n" + rest


def _resolve(request: LockRequest) -> str:
    try:
        uv = os.fspath(find_uv_bin())
    except FileNotFoundError as error:
        raise _error(request, "uv is not installed beside the runner", "python -m pip install uv") from error
    command = command_of(uv, request)
    with tempfile.TemporaryDirectory(prefix="matrix-runner-lock-") as folder:
        if request.overrides:
            overrides = Path(folder, "overrides.txt")
            overrides.write_text("\n".join(request.overrides) + "\n")
            command += ["--overrides", str(overrides)]
        if request.versions is None or not request.versions.is_file():
            return _output_of(command, request)
        copy = Path(folder, "lock.txt")  # uv reads the versions that it keeps from the file that it writes
        copy.write_bytes(read_lock(request.versions)[0])
        _output_of([*command, "--output-file", str(copy)], request)
        return read_bounded(copy, LOCK_BYTES).decode("utf-8", "replace")


def _output_of(command: Sequence[str], request: LockRequest) -> str:
    """Return what uv printed; raises ProvisionError where it fails."""
    try:
        done = run_client(command, "\n".join(request.requirements) + "\n", _UV_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise _error(request, f"uv gave no answer within {_UV_SECONDS:.0f} s", passing=True) from error
    if done.returncode != 0:
        hint = "give a folder of wheels with --find-links where the index cannot be reached" if request.index else None
        message = f"uv ended with {done.returncode}:\n{useful_lines(done.stderr)}"
        raise _error(request, message, hint, passing=had_no_memory(done) or is_outage(done.stderr))
    return done.stdout


def _error(request: LockRequest, what: str, hint: str | None = None, *, passing: bool = False) -> ProvisionError:
    variant = f" ({request.variant})" if request.variant else ""
    problem = Problem(f"cannot lock {request.name}{variant}: {what}", hint=hint)
    return ProvisionError("lock", problem, passing=passing)


def lock_environments(path: Path, names: Sequence[str], find_links: str | None) -> Iterator[tuple[Path, bool]]:
    """Lock every variant of the named environments; yield each lock file and whether it changed.

    A variant without a ``lock`` gets ``docker/locks/<id>-<variant>.txt``; name that file in the matrix.

    Args:
        path: the matrix file, which the locks' paths are relative to.
        names: selectors of environments.
        find_links: a folder of wheels that replaces an extra index.

    Raises:
        MatrixError: a lock cannot be written; nothing is resolved.
        ProvisionError: the requirements of a variant cannot be resolved; the other variants are locked.
    """
    requests, problems = lock_requests(path, names, find_links), list[Problem]()
    refused = [problem for request in requests if (problem := target_problem(path, request)) is not None]
    if refused:
        raise MatrixError(*dict.fromkeys(refused))
    for request in requests:
        try:
            result = lock(request)
        except ProvisionError as error:
            problems += error.problems
            continue
        yield result.path, result.changed
    if problems:
        raise ProvisionError("lock", *problems)
