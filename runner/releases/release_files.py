"""The files of a release on the package index: when they were uploaded, and for which Pythons they are.

A release is resolved with the packages of its time, because today's break old releases: jax 0.4.13 gets a SciPy that it
cannot import, TensorFlow 2.16 a newer Keras. uv's ``--exclude-newer`` takes the packages as they were at a date.

References:
    https://packaging.python.org/en/latest/specifications/simple-repository-api/, "upload-time";
    https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/;
    https://docs.astral.sh/uv/concepts/resolution/#reproducible-resolutions.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import cache, partial

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version
from uv import find_uv_bin

from runner.core.architectures import Architecture, this_architecture
from runner.core.threads import within
from runner.releases.index_client import run_client

JSON = "application/vnd.pypi.simple.v1+json"
INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_EMPTY = ("pip", "compile", "-", "--quiet", "--offline", "--no-header", "--emit-index-url")
"""Has uv resolve nothing, and print the index that it would ask."""
_UV_SECONDS = 20.0
SECONDS = 10.0
"""How long a connection may be silent."""
ALL_SECONDS = 60.0
"""How long the whole answer may take."""
MAX_BYTES = 64 << 20
"""The largest answer that is read; that of torch has 2 MB."""
SETTLED = timedelta(weeks=6)
"""After the upload: the packages that a release needs are often fixed some weeks later."""


PYTHONS = tuple(f"3.{minor}" for minor in range(6, 15))
"""Versions of Python that a ``py3`` wheel can support, the oldest first."""
ANY_PATCH = 99
"""The patch release of Python that counts. pip reads 3.6 as 3.6.0, and packages ask for "3.6.1 or later"."""


def as_of(package: str, version: str, today: date, environ: Mapping[str, str] = os.environ) -> date | None:
    """Return the day whose packages a release is resolved with; None for a release of the last weeks.

    None, too, where the index does not say when it was uploaded.

    Args:
        package: its name on the index.
        version: of the release.
        today: the current date.
        environ: names the index.
    """
    uploaded = min(_uploads(package, Version(version), environ), default=None)
    return None if uploaded is None or uploaded >= today - SETTLED else uploaded + SETTLED


class IndexFile(msgspec.Struct):
    """A file of a package, as the index lists it."""

    filename: str
    upload_time: datetime | None = msgspec.field(default=None, name="upload-time")
    requires_python: str | None = msgspec.field(default=None, name="requires-python")
    yanked: bool | str = False


class _Files(msgspec.Struct):
    files: list[IndexFile]


def pythons_of(
    package: str, version: str, environ: Mapping[str, str] = os.environ, architecture: Architecture | None = None
) -> tuple[str, ...]:
    """Return the minor versions of Python that a release has wheels for on Linux, the oldest first.

    Of a wheel for every Python 3, those that it does not exclude. Nothing where the index does not say so.

    Args:
        package: its name on the index.
        version: of the release.
        environ: names the index.
        architecture: what the wheels are for; None is that of this machine.
    """
    minors = set[tuple[int, int]]()
    for file, tags in _wheels(package, Version(version), environ):
        for tag in tags:
            if not is_for_linux(tag, architecture or this_architecture()):
                continue
            if match := re.fullmatch(r"cp([23])([0-9]+)", tag.interpreter):
                minors.add((int(match[1]), int(match[2])))
            elif tag.interpreter == "py3":
                minors |= {(3, int(each[2:])) for each in PYTHONS if is_for(file, each)}
    return tuple(f"{major}.{minor}" for major, minor in sorted(minors))


def is_for_linux(tag: Tag, architecture: Architecture) -> bool:
    """Return whether what a wheel says it is for is Linux on an architecture, or any platform."""
    return tag.platform == "any" or ("linux" in tag.platform and tag.platform.endswith(f"_{architecture}"))


def has_wheel(
    package: str,
    version: str,
    python: str,
    environ: Mapping[str, str] = os.environ,
    architecture: Architecture | None = None,
) -> bool:
    """Return whether a release has a wheel for this platform and a Python; False, too, where the index does not say so.

    Args:
        package: its name on the index.
        version: of the release.
        python: minor version of the interpreter, ``3.6``; it need not be installed.
        environ: names the index.
        architecture: of the machine, where it is not this one.
    """
    minor = tuple(map(int, python.split(".")))
    platforms = [each.replace(this_architecture(), architecture or this_architecture()) for each in platform_tags()]
    interpreter = f"cp{minor[0]}{minor[1]}"
    supported = {*cpython_tags(minor, platforms=platforms), *compatible_tags(minor, interpreter, platforms)}
    return any(tags & supported and is_for(file, python) for file, tags in _wheels(package, Version(version), environ))


def is_for(file: IndexFile, python: str) -> bool:
    """Return whether a file does not exclude a minor version of Python by ``Requires-Python``."""
    try:
        return f"{python}.{ANY_PATCH}" in SpecifierSet(file.requires_python or "")
    except InvalidSpecifier:
        return False


def _uploads(package: str, version: Version, environ: Mapping[str, str]) -> Iterator[date]:
    """Yield when each wheel of a release was uploaded."""
    for file, _ in _wheels(package, version, environ):
        if file.upload_time is not None:
            yield file.upload_time.date()


def _wheels(package: str, version: Version, environ: Mapping[str, str]) -> Iterator[tuple[IndexFile, frozenset[Tag]]]:
    """Yield each wheel of a release, with what it is for."""
    for file in files_of(package, environ):
        with suppress(ValueError):  # it is no wheel, or has a number of more digits than int() takes
            _, of_file, _, tags = parse_wheel_filename(file.filename)
            if of_file.public == version.public:
                yield file, tags


def files_of(package: str, environ: Mapping[str, str]) -> list[IndexFile]:
    """Return the files of a package on the index; nothing where it does not answer in time, or in another form."""
    index = next(filter(None, map(environ.get, INDEX_VARIABLES)), None) or default_index()
    if not index:
        return []
    address = f"{index.rstrip('/')}/{canonicalize_name(package)}/"
    from urllib3.exceptions import HTTPError

    try:
        return msgspec.json.decode(within(partial(_content, address), ALL_SECONDS, "index"), type=_Files).files
    except (OSError, ValueError, HTTPError, msgspec.MsgspecError, RecursionError):
        return []


@cache
def default_index() -> str:
    """Return the address of the index that uv asks where no variable names one; empty where uv does not say it."""
    try:
        done = run_client([os.fspath(find_uv_bin()), *_EMPTY], "", _UV_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"^--index-url (\S+)$", done.stdout, re.MULTILINE)
    return match[1] if match else ""


def _content(address: str) -> bytes:
    """Return what an address answers; errors of requests are OSErrors, those of a body that breaks off urllib3's."""
    import requests

    with requests.get(address, headers={"Accept": JSON}, timeout=SECONDS, stream=True) as answer:
        answer.raise_for_status()
        content: bytes = answer.raw.read(MAX_BYTES, decode_content=True)
        return content
