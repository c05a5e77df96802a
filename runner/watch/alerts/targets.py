"""Where alerts are sent: addresses of apprise, which hold passwords and tokens.

They come from the environment or from a file that only this user may read, and from nowhere else. Everything outside of
``sending`` sees the name of a target, ``1 slack``, and never its address.
"""

import hashlib
import re
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
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
_ADDRESS = re.compile(r"(?:[A-Za-z0-9, \t_-]+=\s*)?(?P<address>(?P<service>[A-Za-z0-9+.-]{1,32})://\S.*)")
"""A line of apprise's text format: an address, which may have tags before it; they are not used."""


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver of alerts.

    Attributes:
        name: its number and the service of its address, ``1 slack``: what messages, logs and files call it.
        address: for apprise; a secret.
    """

    name: str
    address: str = field(repr=False)

    @property
    def key(self) -> str:
        """What stored nights call it: the service and 8 digits of the hash of its address, which stay if others go."""
        digits = hashlib.sha256(self.address.encode()).hexdigest()[:8]
        return f"{self.name.partition(' ')[2]} {digits}"


def read_targets(environ: MutableMapping[str, str]) -> tuple[Target, ...]:
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
    targets: list[Target] = []
    for where, text in numbered:
        match = _ADDRESS.fullmatch(text)
        if match is None:
            hint = "write addresses of apprise: mailto://..., slack://..., json://..."
            raise UsageError(Problem(f"{where} of {source} is no address for alerts", hint=hint))
        targets.append(Target(f"{len(targets) + 1} {match['service'].lower()}", match["address"]))
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
