"""Empty databases: a file of SQLite, and one on a real PostgreSQL server that lives as long as the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import needs, postgresql


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[postgresql.Server]:
    """A PostgreSQL server; without its programs the test is skipped, or fails with ``--need postgresql``."""
    folder = postgresql.binaries()
    if folder is None:
        needs.missing(request.config, "postgresql", "there is no PostgreSQL server: apt-get install postgresql")
    yield from postgresql.serve(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database: each test that takes it runs with both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/history.db"
    running: postgresql.Server = request.getfixturevalue("server")
    return running.new_schema()
