"""A GPU has one guardian on a machine, whichever user's it is: they all set the same clocks.

The name that a guardian takes is one of its network namespace: one in a container without the host's network does not
meet those outside.
"""

import errno
import pwd
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

ADDRESS = (
    "\0matrix-runner/clocks/{}"  # abstract, unix(7): no file, so any user can take it, and it goes with its holders
)
ASKING_SECONDS = 1.0
PEER = struct.Struct("3i")  # struct ucred: process, user, group


@contextmanager
def sole(uuid: str) -> Iterator[str]:
    """Be the GPU's only guardian for the length of the block, and until the children forked in it have ended.

    Gives who already is, as the subject of a sentence; empty where this process has become it.
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
        yield ""


def holder(uuid: str) -> str:
    """Return who the guardian of a GPU is, as far as the kernel tells."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(ASKING_SECONDS)
            asking.connect(ADDRESS.format(uuid))
            pid, user, _ = PEER.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
    except OSError:  # it has just gone, or too many have asked
        return "another runner"
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = f"#{user}"
    return f"the guardian of a runner of {name}, process {pid}"
