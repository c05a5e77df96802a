"""A real PostgreSQL server in a private folder: it listens on a socket there only, and ends with the tests."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

BINARIES = ("initdb", "pg_ctl", "postgres")
USER = "postgres"
DEBIAN = "/usr/lib/postgresql"
SETTINGS = "-c listen_addresses= -c shared_buffers=16MB -c max_connections=40 -c fsync=off -k {folder}"
"""No test cuts the power, and without fsync the tests take half of the time."""


@dataclass
class Server:
    """A server that is running, or stopped for a test.

    Attributes:
        folder: a short path, for the path of its socket has 107 letters at most; ``binaries`` holds its programs.
    """

    folder: Path
    binaries: Path
    numbers: Iterator[int] = field(default_factory=count)

    def start(self) -> None:
        """Start it, and wait until it answers; after a crash it recovers first."""
        self._call("pg_ctl", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-w", *self._options, "start")

    def stop(self) -> None:
        """Stop it as a crash would: nothing is finished, and every connection is lost."""
        self._call("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "immediate", "stop")

    def new_schema(self) -> str:
        """Create an empty schema, which takes less time than a database, and return the URL of a history in it."""
        name = f"history_{next(self.numbers)}"
        with psycopg.connect(host=str(self.folder), user=USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return f"postgresql://{USER}@/postgres?host={self.folder}&options=-csearch_path%3D{name}"

    @property
    def _options(self) -> tuple[str, str]:
        return "-o", SETTINGS.format(folder=self.folder)

    def _call(self, program: str, *arguments: str) -> None:
        call(self.binaries, program, *arguments)


def binaries() -> Path | None:
    """Return the folder with the programs of a server, of the PATH or of Debian's package; None without."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    folders += sorted(Path(DEBIAN).glob("*/bin"), reverse=True)
    return next((folder for folder in folders if all((folder / name).exists() for name in BINARIES)), None)


def call(folder: Path, program: str, *arguments: str) -> None:
    """Run a program of the server; root runs it as the user of Debian's package, for the server refuses root."""
    as_user = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
    subprocess.run(
        [*as_user, str(folder / program), *arguments],
        check=True,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )


def serve(folder_of_programs: Path) -> Iterator[Server]:
    """Yield a running server; stop it and remove its folder afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        server = Server(folder, folder_of_programs)
        call(folder_of_programs, "initdb", "-D", f"{folder}/data", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
