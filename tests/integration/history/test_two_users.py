"""A history in a folder that two users may see: who only reads it leaves nothing that locks the owner out."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.history.database import History
from tests.support.histories import night

ROOT = Path(__file__).parents[3]
NOBODY = 65534
READER = """
import sys
from runner.history.database import History
with History.open(sys.argv[1], only_reads=True) as history:
    print(len(history.runs()))
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def runs_seen_by_nobody(path: Path) -> int:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", READER, f"sqlite:///{path}"]
    done = subprocess.run(
        command, user=NOBODY, group=NOBODY, extra_groups=(), env=environ, cwd="/", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_another_user_reads_and_the_owner_still_writes(mode: int, folder: Path) -> None:
    folder.chmod(mode)
    path = folder / "history.db"
    with History.open(f"sqlite:///{path}") as history:
        history.add(night(1))
    path.chmod(0o644)
    assert runs_seen_by_nobody(path) == 1
    assert [each.name for each in folder.iterdir()] == ["history.db"]
    with History.open(f"sqlite:///{path}") as history:
        history.add(night(2))
        assert runs_seen_by_nobody(path) == 2, "what its writer has not moved into the file yet"
    assert all(each.stat().st_uid == 0 for each in folder.iterdir())
