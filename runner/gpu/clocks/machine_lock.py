"""Lock a GPU for one guardian per machine, across users: all of them would set the same clocks.

The lock is a name in the network namespace: a guardian in a container without the host's network does not see those
outside.
"""

import errno
import os
import pwd
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

ADDRESS = (
    "\0matrix-runner/clocks/{}"  # abstract, unix(7): no file, so any user can bind it, and it vanishes with its holders
)
ASKING_SECONDS = 1.0
PEER = struct.Struct("3i")  # struct ucred: process, user, group


class Holder(NamedTuple):
    """A process that holds a GPU's lock.

    Attributes:
        who: the subject of a sentence.
        trusted: it belongs to root or to this user, so its name is no trick of somebody who wants others to wait.
    """

    who: str
    trusted: bool


@contextmanager
def sole(uuid: str) -> Iterator[Holder | None]:
    """Hold the GPU's lock for the length of the block, and until the children forked in it have ended.

    Yields who already holds it; None if this process holds it now.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(ADDRESS.format(uuid))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            yield holder(uuid)
            return
        listener.listen()
        yield None


def holder(uuid: str) -> Holder:
    """Return who holds the lock of a GPU, from the credentials that the kernel gives."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(ASKING_SECONDS)
            asking.connect(ADDRESS.format(uuid))
            pid, user, _ = PEER.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
    except OSError:  # it has just ended, or its queue of connections is full
        return Holder("another program", trusted=False)
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = f"#{user}"
    return Holder(f"the guardian of a runner of {name}, process {pid}", trusted=user in {0, os.getuid(), os.geteuid()})
