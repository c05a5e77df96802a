"""What an import takes: processor time of the process and its children, and not the time that it waits."""

import contextlib
import os
import shutil
import time
from pathlib import Path

import pytest

from runner.backends import harness_archive
from runner.backends.local_channel import ProcessChannel
from runner.harness import cpu as harness_cpu
from runner.measure.session import Session

COMPUTED = 0.3
LOAD = '    """Import nothing."""\n'
COMPUTES = f"""\
{LOAD}    import time
    end = time.process_time() + {COMPUTED}
    while time.process_time() < end:
        pass
"""


@pytest.mark.parametrize("forks", [True, False])
def test_an_import_has_its_time_whether_the_server_makes_it_or_each_child(
    python: str, tmp_path: Path, *, forks: bool
) -> None:
    shutil.copytree(harness_archive.FOLDER, tmp_path / "harness")
    adapter = Path(__file__).with_name("faulty.py").read_text("utf-8")
    assert LOAD in adapter
    assert "FORK_AFTER_IMPORT = True\n" in adapter
    adapter = adapter.replace(LOAD, COMPUTES).replace("FORK_AFTER_IMPORT = True\n", f"FORK_AFTER_IMPORT = {forks}\n")
    (tmp_path / "harness" / "adapters" / "numpy.py").write_text(adapter)
    channel = ProcessChannel(python, "cpu", harness_archive.pack(tmp_path / "harness"))
    with contextlib.closing(Session(channel, "test#1")) as session:
        assert session.hello("numpy", 1, "cpu", 60)["status"] == "ok"
    assert session.facts["import_cpu_seconds"] >= COMPUTED
    assert session.facts["import_seconds"] >= COMPUTED * 0.9


def test_the_processor_time_of_a_child_that_has_ended_counts() -> None:
    timer = harness_cpu.ImportTimer()
    pid = os.fork()
    if not pid:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
        os._exit(0)
    os.waitpid(pid, 0)
    assert timer.facts()["import_cpu_seconds"] >= 0.05


def test_time_asleep_is_no_processor_time() -> None:
    timer = harness_cpu.ImportTimer()
    time.sleep(0.05)
    facts = timer.facts()
    assert facts["import_cpu_seconds"] < 0.04 < facts["import_seconds"]
