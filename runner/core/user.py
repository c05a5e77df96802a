"""The name of a user."""

import getpass
import os


def login_name(user: int | None = None) -> str:
    """Return the login name of the user of this process; ``#UID`` without one, as in a container with another user.

    Args:
        user: the number to show without a name; by default that of this process.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        return f"#{os.getuid() if user is None else user}"
