"""Whether this user may start the guardian as root, and the command that allows it.

``sudo`` is tried only where its rule for the guardian is visible. Asking sudo would not do: it logs what it denies, and
reports users without a rule to the administrator by mail (sudoers(5): log_denied, mail_no_user), and ``sudo -l`` is
treated like a command. The rule itself is in a folder that only root can enter on most distributions. So the command
that allows it writes a second copy of the rule, which every user can read.
"""

import os
import shlex
import shutil
import stat
import sys
import sysconfig
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from runner.core.user import login_name
from runner.gpu.clocks.protocol import COMMAND

SUDO = ("sudo", "-n", *COMMAND)
SUDOERS = Path("/etc/sudoers.d/matrix-runner")
COPY = Path("/etc/matrix-runner.sudoers")
"""What is in SUDOERS, for everybody to read; sudo ignores it."""
CODE = (Path(sys.executable), *map(Path, (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), __file__)))
"""What the rule starts as root."""
ADVICE = "install the program where only root can write, and run it from there"


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
    return f"{login_name(user)} ALL=(root) NOPASSWD: {' '.join(map(sudoers_word, COMMAND))}"


def allow(user: int, environ: Mapping[str, str] = os.environ) -> str:
    """Return the command that allows a user to hold clocks, as the end of a sentence.

    Args:
        user: the number of the user.
        environ: the environment; in a job of Slurm, the user is not the one who can enter the command.
    """
    if user == 0:
        return "root needs the capability SYS_ADMIN: run on the host, or start the container with --cap-add SYS_ADMIN"
    command = f"echo {shlex.quote(rule(user))} | sudo tee -a {SUDOERS} {COPY}"
    writable = writable_code(user)
    warning = f"; careful: this rule makes everybody root who can write to {writable}, as you can: {ADVICE}"
    who = "an administrator of the cluster can allow it, on each node" if "SLURM_JOB_ID" in environ else "to allow it"
    return f"{who}: {command}{warning if writable else ''}"


def writable_code(user: int, groups: Collection[int] | None = None) -> Path | None:
    """Return what of the code that the rule starts as root a user can change, None if nothing.

    Looked at are the interpreter, its packages and this program, as named and with their links followed, and each
    folder above, in which they could be replaced. Rights beyond owner, group and others (ACLs) are not looked at.

    Args:
        user: the number of the user.
        groups: the numbers of the user's groups; those of this process by default.
    """
    groups = os.getgroups() if groups is None else groups
    for path in dict.fromkeys(each for code in CODE for each in (code.absolute(), code.resolve())):
        for each in (path, *path.parents):
            with suppress(OSError):
                if _may_change(each.stat(), user, groups):
                    return each
    return None


def _may_change(status: os.stat_result, user: int, groups: Collection[int]) -> bool:
    """Return whether a user may write to a file, or replace what is in a folder."""
    if status.st_uid == user:
        return True
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:  # as /tmp: only owners replace what is in it
        return False
    by_group = status.st_mode & stat.S_IWGRP and status.st_gid in groups
    return bool(status.st_mode & stat.S_IWOTH or by_group)


def sudoers_word(word: str) -> str:
    """Return a word of a command, escaped for sudoers(5)."""
    return "".join(f"\\{sign}" if sign in " ,:=\\" else sign for sign in word)
