"""Hosts with ssh: several sshd on loopback, each with a folder as its home."""

import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.executables import write_executable
from tests.support.ports import free_port

SERVER = Path("/usr/sbin/sshd")
SFTP_SERVERS = (Path("/usr/lib/openssh/sftp-server"), Path("/usr/libexec/openssh/sftp-server"))


def missing() -> str:
    """Return why there can be no such hosts, as a sentence; empty if there can."""
    sftp = any(path.exists() for path in SFTP_SERVERS)
    if not SERVER.exists() or not sftp or not shutil.which("scp"):
        return "there is no sshd with scp: apt-get install openssh-server"
    return ""


@contextmanager
def hosts(folder: Path, names: Sequence[str], silent: Sequence[str] = ()) -> Iterator[Mapping[str, str]]:
    """Give the environment in which ``ssh`` and ``scp`` reach hosts by their names.

    Args:
        folder: empty; the home of a host is its folder ``NAME``.
        names: of hosts with an sshd.
        silent: of hosts that do not answer.
    """
    _make_key(folder / "user-key")
    (folder / "ssh_config").write_text("".join(_entry(folder, name, free_port()) for name in (*names, *silent)))
    programs = folder / "programs"
    programs.mkdir()
    for name in ("ssh", "scp"):
        _write_program(programs / name, f'exec {shutil.which(name)} -F {folder}/ssh_config "$@"')
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    ports = {name: _port_of(folder, name) for name in names}
    with ExitStack() as stack:
        for name, port in ports.items():
            stack.enter_context(_server(folder, name, port, path))
        yield {**os.environ, "PATH": path}


def _entry(folder: Path, name: str, port: int) -> str:
    return f"""
Host {name}
  HostName 127.0.0.1
  Port {port}
  User {getpass.getuser()}
  IdentityFile {folder}/user-key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known-hosts
  StrictHostKeyChecking accept-new
  LogLevel ERROR
"""


def _port_of(folder: Path, name: str) -> int:
    _, _, entry = (folder / "ssh_config").read_text().partition(f"Host {name}\n")
    return int(entry.split()[3])


@contextmanager
def _server(folder: Path, name: str, port: int, path: str) -> Iterator[None]:
    home = folder / name
    home.mkdir()
    _make_key(folder / f"{name}-key")
    sftp = next(path for path in SFTP_SERVERS if path.exists())
    _write_program(
        folder / f"{name}-shell",
        f"cd {home}\nexport HOME={home} XDG_CACHE_HOME={home}/cache PATH={path}\n"
        f'case "$SSH_ORIGINAL_COMMAND" in\nsftp) exec {sftp} ;;\n*) exec sh -c "$SSH_ORIGINAL_COMMAND" ;;\nesac',
    )
    configuration = folder / f"{name}-sshd"
    configuration.write_text(f"""
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/{name}-key
PidFile none
AuthorizedKeysFile {folder}/user-key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
Subsystem sftp sftp
ForceCommand {folder}/{name}-shell
""")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd separates its privileges
    with (folder / f"{name}-log").open("w") as log:
        server = subprocess.Popen([SERVER, "-D", "-e", "-f", configuration], stderr=log)
        try:
            yield
        finally:
            server.terminate()
            server.wait(10)


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, stdin=subprocess.DEVNULL)


def _write_program(path: Path, lines: str) -> None:
    write_executable(path, f"#!/bin/sh\n{lines}\n")
