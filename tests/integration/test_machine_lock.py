"""The lock of a GPU across users: who holds it, and whether that can be a trick."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runner.gpu.clocks.machine_lock import sole

UUID = f"GPU-{secrets.token_hex(4)}-test"
NOBODY = 65534
HOLD = """
import os, socket, sys
name, user, listen = sys.argv[1:]
if int(user) != os.geteuid():
    os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
taken = socket.socket(socket.AF_UNIX)
taken.bind("\\0matrix-runner/clocks/" + name)
if listen == "yes":
    taken.listen()
print("taken", flush=True)
sys.stdin.read()
"""


@contextmanager
def taken_by(user: int, listen: str = "yes") -> Iterator[int]:
    """Let a process of a user take the name of the GPU; yield its process id."""
    command = [sys.executable, "-c", HOLD, UUID, str(user), listen]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "taken\n"
        yield process.pid
        process.communicate("")


def test_a_free_lock_is_taken() -> None:
    with sole(UUID) as holder:
        assert holder is None
        with sole(UUID) as second:
            assert second
            assert second.trusted
            assert second.who.endswith(f"process {os.getpid()}")


def test_a_process_of_this_user_is_trusted() -> None:
    with taken_by(os.geteuid()) as pid, sole(UUID) as holder:
        assert holder
        assert holder.trusted
        assert holder.who.endswith(f"process {pid}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_named_and_not_trusted() -> None:
    with taken_by(NOBODY) as pid, sole(UUID) as holder:
        assert holder
        assert not holder.trusted
        assert holder.who.endswith(f"process {pid}")


def test_a_name_that_nobody_answers_at_is_not_trusted() -> None:
    with taken_by(os.geteuid(), listen="no"), sole(UUID) as holder:
        assert holder == ("another program", False)
