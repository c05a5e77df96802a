"""The names of images: which registry they lead to, and the digests that they are pinned to."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, UsageError
from runner.core.files import read_bounded
from runner.core.text import REASON_LENGTH, printable

BUILT = "matrix-runner/"  # how the names of images start that were built here
UNPINNED = "unpinned"
MAX_PINS = 1 << 20  # bytes
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_IMAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,511}")  # the letters of references, no grammar
_DOTS = re.compile(r"(?:^|/)\.{1,2}(?:/|$)|//")  # steps of a path, which an address resolves


def pins(path: Path) -> dict[str, str]:
    """Return image name -> digest from ``pins.toml``; empty if the file does not exist.

    Raises:
        UsageError: the file cannot be read, is not TOML, or a pin is not a digest.
    """
    hint = "correct it, or remove it and run `nox -s pins`, which writes it anew"
    images = image_table(path, hint)
    for name, digest in images.items():
        if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
            message = f"{path} pins {printable(name, REASON_LENGTH)!r} to something that is not sha256:..."
            raise UsageError(Problem(message, hint=hint))
    return images


def image_table(path: Path, hint: str) -> dict[str, Any]:
    """Return the table ``[images]`` of a TOML file; empty if the file does not exist.

    Args:
        path: the file.
        hint: what to do about a file that cannot be used.

    Raises:
        UsageError: the file cannot be read, is not TOML, or ``images`` is no table.
    """
    try:
        images = tomllib.loads(read_bounded(path, MAX_PINS).decode("utf-8")).get("images", {})
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(Problem(f"{path} cannot be read: {error.strerror or error}", hint=hint)) from error
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and TOMLDecodeError are ValueErrors
        message = f"{path} is not TOML: {printable(str(error), REASON_LENGTH)}"
        raise UsageError(Problem(message, hint=hint)) from error
    if not isinstance(images, dict):
        raise UsageError(Problem(f"{path} needs a table [images]", hint=hint))
    return images


def is_pinned_image(name: object) -> bool:
    """Return True for ``repository@digest``."""
    return isinstance(name, str) and is_image_name(name) and _DIGEST.fullmatch(name.partition("@")[2]) is not None


def pinned(name: str, digests: Mapping[str, str]) -> str:
    """Return ``repository@digest`` if an image name has a pin, else the name."""
    digest = digests.get(name)
    return f"{repository(name)}@{digest}" if digest else name


def is_image_name(name: str) -> bool:
    """Return True if a name can be that of an image; any other could lead the engine to something that is no image.

    >>> is_image_name("nvcr.io/nvidia/pytorch:24.01-py3"), is_image_name("x/../../containers/some")
    (True, False)
    """
    return _IMAGE_NAME.fullmatch(name) is not None and not _DOTS.search(name)


def repository(name: str) -> str:
    """Return an image's name without its tag or digest."""
    name = name.partition("@")[0]
    head, colon, tag = name.rpartition(":")
    return head if colon and "/" not in tag else name


def familiar(name: str) -> str:
    """Return an image's name as engines list it: without the registry that is the default."""
    return name.removeprefix("docker.io/")


def registry(name: str) -> str:
    """Return the host of the registry of an image name."""
    first, slash, _ = name.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"


def by_registry(names: Sequence[str]) -> dict[str, list[str]]:
    """Group image names by registry, each once, in order."""
    names_by_host: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        names_by_host.setdefault(registry(name), []).append(name)
    return names_by_host
