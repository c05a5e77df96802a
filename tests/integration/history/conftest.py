"""Empty databases: a file of SQLite, and one on a real PostgreSQL server that lives as long as the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import postgresql


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[postgresql.Server]:
    """A PostgreSQL server; without its programs the test is skipped, or fails where --run-postgresql was given."""
    folder = postgresql.binaries()
    if folder is None:
        if request.config.getoption("--run-postgresql"):
            pytest.fail("--run-postgresql was given and there is no PostgreSQL server: apt-get install postgresql")
        pytest.skip("there is no PostgreSQL server")
    yield from postgresql.serve(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database: each test that takes it runs with both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/history.db"
    running: postgresql.Server = request.getfixturevalue("server")
    return running.new_schema()
