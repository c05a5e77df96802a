"""Where alerts are sent: addresses of apprise, which hold passwords and tokens.

They come from the environment or from a file that only this user may read, and from nowhere else. Everything outside of
``sending`` sees the name of a target, ``1 slack``, and never its address.

Nights have to recognise a receiver when others come and go, so they store a key of it: its service and some digits that
depend on its address and on a salt. The salt is a random value in a private file of this user, so nobody who reads the
nights can test guesses of an address (decision 0048).
"""

import contextlib
import errno
import hashlib
import hmac
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.core.errors import Problem, UsageError
from runner.core.files import read_private
from runner.core.paths import PROGRAM, home

VARIABLE = "MATRIX_RUNNER_ALERTS"
FILE_VARIABLE = "MATRIX_RUNNER_ALERTS_FILE"
FILE = "alerts"
MAX_BYTES = 1 << 16
"""The largest file of addresses."""
MAX_TARGETS = 20
SALT_FILE = "alerts.salt"
SALT_BYTES = 32
KEY_DIGITS = 12
_ADDRESS = re.compile(r"(?:[A-Za-z0-9, \t_-]+=\s*)?(?P<address>(?P<service>[A-Za-z0-9+.-]{1,32})://\S.*)")
"""A line of apprise's text format: an address, which may have tags before it; they are not used."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver of alerts.

    Attributes:
        name: its number and the service of its address, ``1 slack``: what messages and logs call it.
        address: for apprise; a secret.
        salt: makes the key of the address useless to others; a secret. Empty if it cannot be kept.
    """

    name: str
    address: str = field(repr=False)
    salt: bytes = field(default=b"", repr=False)

    @property
    def service(self) -> str:
        """The scheme of its address: ``slack``."""
        return self.name.partition(" ")[2]

    @property
    def key(self) -> str:
        """What nights store: the service and digits that stay if others come and go; without a salt, the name."""
        if not self.salt:
            return self.name
        return f"{self.service} {hmac.digest(self.salt, self.address.encode(), 'sha256').hex()[:KEY_DIGITS]}"

    def is_stored_as(self, key: str) -> bool:
        """Return True if a night has this receiver by this key, also one of before there was a salt."""
        earlier = f"{self.service} {hashlib.sha256(self.address.encode()).hexdigest()[:8]}"
        return key in (self.key, earlier)


def read_targets(environ: MutableMapping[str, str]) -> tuple[Receiver, ...]:
    """Return the receivers, and take the variable with their addresses out of the environment of later processes.

    Args:
        environ: the environment. MATRIX_RUNNER_ALERTS has addresses separated by white space. Without it, the file that
            MATRIX_RUNNER_ALERTS_FILE names, or ``alerts`` in the folder of settings, has an address in each line.

    Returns:
        No receivers if there is neither.

    Raises:
        UsageError: the file cannot be read or is not private, or a text is no address. The message has no address.
    """
    addresses = environ.pop(VARIABLE, "").split()
    source = f"the variable {VARIABLE}"
    numbered: Iterator[tuple[str, str]] = ((f"address {number}", text) for number, text in enumerate(addresses, 1))
    if not addresses:
        path = targets_file(environ)
        if path is None or not (path.exists() or environ.get(FILE_VARIABLE)):
            return ()
        source = str(path)
        numbered = _lines(path)
    targets: list[Receiver] = []
    for where, text in numbered:
        match = _ADDRESS.fullmatch(text)
        if match is None:
            hint = "write addresses of apprise: mailto://..., slack://..., json://..."
            raise UsageError(Problem(f"{where} of {source} is no address for alerts", hint=hint))
        targets.append(Receiver(f"{len(targets) + 1} {match['service'].lower()}", match["address"]))
    if len(targets) > MAX_TARGETS:
        raise UsageError(Problem(f"{source} has {len(targets)} addresses, and at most {MAX_TARGETS} get alerts"))
    return tuple(targets)


def targets_file(environ: MutableMapping[str, str]) -> Path | None:
    """Return the path of the file with addresses; None for a user without a home folder."""
    if environ.get(FILE_VARIABLE):
        return Path(environ[FILE_VARIABLE])
    if environ.get("XDG_CONFIG_HOME", "").startswith("/"):
        return Path(environ["XDG_CONFIG_HOME"]) / PROGRAM / FILE
    try:
        return home(environ, FILE_VARIABLE) / ".config" / PROGRAM / FILE
    except UsageError:
        return None


def salted(targets: tuple[Receiver, ...], environ: Mapping[str, str]) -> tuple[Receiver, ...]:
    """Return receivers with the salt of this user, which is made if there is none yet.

    Raises:
        UsageError: this user has no home folder.
        OSError: the salt cannot be read or kept, or its file is not private.
    """
    path = salt_file(environ)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{SALT_FILE}-") as new:
            new.write(secrets.token_bytes(SALT_BYTES))
            new.flush()
            os.fsync(new.fileno())
            with contextlib.suppress(FileExistsError):  # of two nights that start together, one makes it
                os.link(new.name, path)
    salt = read_private(path, SALT_BYTES)
    if len(salt) != SALT_BYTES:
        raise OSError(errno.EINVAL, "it is damaged: remove it", str(path))
    return tuple(replace(target, salt=salt) for target in targets)


def salt_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the salt: below ``XDG_STATE_HOME`` or ``~/.local/state``; raises UsageError."""
    state = environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else home(environ, "XDG_STATE_HOME") / ".local/state"
    return folder / PROGRAM / SALT_FILE


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file of addresses without comments; raises UsageError."""
    try:
        content = read_private(path, MAX_BYTES).decode()
    except OSError as error:
        hint = f"it holds passwords: `chmod 600 {path}`" if path.exists() else "check the path"
        message = f"the addresses for alerts in {path} cannot be used: {error.strerror or error}"
        raise UsageError(Problem(message, hint=hint)) from error
    except UnicodeDecodeError:
        raise UsageError(Problem(f"the addresses for alerts in {path} cannot be used: it is not UTF-8")) from None
    for number, line in enumerate(content.splitlines(), 1):
        text = line.strip()
        if text and not text.startswith(("#", ";")):
            yield f"line {number}", text
