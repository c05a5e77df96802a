"""The name of a user."""

import getpass
import os
import pwd


def login_name(user: int | None = None) -> str:
    """Return the login name of the user of this process, or ``#UID`` if the system has no name for the user.

    Containers that run as an arbitrary user have no name for it.

    Args:
        user: the UID to return if there is no name; by default that of this process.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        return f"#{os.getuid() if user is None else user}"


def name_of(user: int) -> str:
    """Return the login name of a user by the UID, or ``#UID`` if the system has no name for it."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"#{user}"
