"""Whether this user may start the guardian as root, and the command that allows it.

``sudo`` is tried only where its rule for the guardian is visible. Asking sudo would not do: it logs what it denies, and
reports users without a rule to the administrator by mail (sudoers(5): log_denied, mail_no_user), and ``sudo -l`` is
treated like a command. The rule itself is in a folder that only root can enter on most distributions. So the command
that allows it writes a second copy of the rule, which every user can read.
"""

import getpass
import os
import shlex
import shutil
from pathlib import Path

from runner.gpu.clocks.protocol import COMMAND

SUDO = ("sudo", "-n", *COMMAND)
SUDOERS = Path("/etc/sudoers.d/matrix-runner")
COPY = Path("/etc/matrix-runner.sudoers")
"""What is in SUDOERS, for everybody to read; sudo ignores it."""


def may_lock() -> bool:
    """Return whether this user is root, or may start the guardian as root."""
    return os.geteuid() == 0 or sudo_usable()


def sudo_usable() -> bool:
    """Return whether this user is not root, and sudo has a rule that lets it start the guardian as root."""
    return os.geteuid() != 0 and shutil.which("sudo") is not None and _rule_exists(os.geteuid())


def _rule_exists(user: int) -> bool:
    """Return whether the copy has the rule for a user and this interpreter; without a copy, whether there is a rule."""
    try:
        return rule(user) in COPY.read_text().splitlines()
    except (OSError, ValueError):  # an earlier version of the command wrote no copy
        pass
    try:
        SUDOERS.stat()
    except OSError:
        return False
    return True


def rule(user: int) -> str:
    """Return the rule of sudoers(5) that lets a user start the guardian as root."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"#{user}"
    return f"{name} ALL=(root) NOPASSWD: {' '.join(map(sudoers_word, COMMAND))}"


def allow(user: int) -> str:
    """Return the command that allows a user to hold clocks, as the end of a sentence."""
    if user == 0:
        return "root needs the capability SYS_ADMIN: run on the host, or start the container with --cap-add SYS_ADMIN"
    return f"to allow it: echo {shlex.quote(rule(user))} | sudo tee -a {SUDOERS} {COPY}"


def sudoers_word(word: str) -> str:
    """Return a word of a command, escaped for sudoers(5)."""
    return "".join(f"\\{sign}" if sign in " ,:=\\" else sign for sign in word)
