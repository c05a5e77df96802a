"""The versions of a package that the package index has as wheels for an interpreter: what ``pip index versions`` lists.

pip has the settings of this machine: mirrors, proxies and credentials. It is the runner's, or one that uv starts.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from uv import find_uv_bin

from runner.core.architectures import Architecture, this_architecture
from runner.core.errors import Problem, ProvisionError
from runner.core.outages import is_outage, not_fetched
from runner.core.text import REASON_LENGTH, printable, without_credentials
from runner.releases.index_client import had_no_memory, run_client
from runner.releases.release_files import ANY_PATCH

SECONDS = 120.0
MAX_VERSIONS = 10_000
"""The newest ones that are looked at. Nightly builds of TensorFlow have some thousand."""
_LISTED = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.!+_-]{0,99}")

_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux2014", "linux")
"""Of wheels for Linux; pip adds older ones to manylinux2014 alone."""

Lister = Callable[[str, str, str], tuple[tuple[str, ...], str]]
"""Package, minor version of Python, and an index of nightly builds or nothing -> versions, and why there are none.

Raises ProvisionError where an outage is the reason.
"""


def versions(
    package: str, python: str, nightly: str = "", architecture: Architecture | None = None
) -> tuple[tuple[str, ...], str]:
    """Return the versions with a wheel for this platform and an interpreter, in pip's order, and why there are none.

    Args:
        package: its name on the index.
        python: minor version of the interpreter, ``3.6``; it need not be installed.
        nightly: list pre-releases, too: of the index with this address, or of the default one for ``default``.
        architecture: of the machine, where it is not this one.

    Raises:
        ProvisionError: an index does not answer, or as none does; which versions there are is unknown. Class ``index``.
    """
    arguments = ["index", "versions", package, "--python-version", f"{python}.{ANY_PATCH}"]
    arguments += ["--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    arguments += [*(["--pre"] if nightly else []), *(["--index-url", nightly] if "://" in nightly else [])]
    arguments += _platforms(architecture or this_architecture())
    try:
        done, silent_indexes = _listing(arguments)
    except subprocess.TimeoutExpired as error:
        raise _outage(package, printable(str(error), REASON_LENGTH)) from error
    except OSError as error:
        return (), printable(str(error), REASON_LENGTH)
    if had_no_memory(done):
        raise _outage(package, "the index answers with too much, or pip was ended")
    if is_outage(silent_indexes):
        raise _outage(package, silent_indexes.strip().splitlines()[-1])
    match = _LISTED.search(done.stdout)
    if done.returncode or match is None:
        if is_outage(done.stderr) and not os.environ.get("PIP_NO_INDEX"):  # of the index that uv gets pip from
            raise _outage(package, done.stderr.strip().splitlines()[-1])
        lines = done.stderr.strip().splitlines()
        last = next((line for line in reversed(lines) if "ERROR" in line), "pip lists none")
        if last == "ERROR: Exception:":  # an answer of another form, which says nothing of the package
            raise _outage(package, f"pip failed: {lines[-1]}")
        return (), printable(without_credentials(last.removeprefix("ERROR: ")), REASON_LENGTH)
    return tuple(islice(filter(_VERSION.fullmatch, match[1].split(", ")), MAX_VERSIONS)), ""


def _platforms(architecture: Architecture) -> list[str]:
    """Return what names the platforms of another architecture to pip, which knows those of this one by itself."""
    names = () if architecture == this_architecture() else _PLATFORMS
    return [word for name in names for word in ("--platform", f"{name}_{architecture}")]


def _listing(arguments: Sequence[str]) -> tuple["subprocess.CompletedProcess[str]", str]:
    """Run pip; return how it ended, and which indexes gave nothing, which only its log says."""
    with tempfile.TemporaryDirectory(prefix="matrix-runner-index-") as folder:
        log = Path(folder, "pip.log")
        done = run_client([*_pip(), "--log", str(log), *arguments], "", SECONDS)
        return done, not_fetched(log)


def _outage(package: str, reason: str) -> ProvisionError:
    reason = printable(without_credentials(reason.removeprefix("ERROR: ")), REASON_LENGTH)
    return ProvisionError("index", Problem(f"the versions of {package} cannot be listed: {reason}"), passing=True)


def _pip() -> list[str]:
    """Return the command that starts pip."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]
    return [os.fspath(find_uv_bin()), "tool", "run", "--quiet", "pip"]
