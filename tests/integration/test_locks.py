"""Two runners never measure on one device at the same time."""

import subprocess
import sys
from pathlib import Path

from runner.core.locks import alone
from tests.integration.conftest import ROOT, wait_for

HOLDER = """
import sys
from pathlib import Path
from runner.core.files import alone
with alone(Path(sys.argv[1]), print):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_waited_for_and_goes_with_the_process_that_held_it(tmp_path: Path) -> None:
    lock = tmp_path / "folder" / "a.lock"
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        said: list[str] = []

        def told(text: str) -> None:
            said.append(text)
            holder.kill()

        with alone(lock, told):
            assert wait_for(lambda: holder.poll() is not None)
    assert len(said) == 1
    assert "another runner measures" in said[0]
