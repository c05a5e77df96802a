"""The commands of the page about hosts with ssh, as they stand there, on hosts of which one does not answer."""

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from runner.store.run import runs
from tests.integration.conftest import PATIENCE, ROOT, wait_for
from tests.support import sshd
from tests.support.ports import free_port

PAGE = ROOT / "docs/how-to/several-hosts-ssh.md"
MATRIX = """
version: 1
environments:
  np: {framework: numpy, release: "2.*", python: "3.11", requirements: [numpy]}
workloads:
  rnn-step: {cases: [rnn-b32-h128], phases: [forward]}
measure: {rounds: 1, max_rounds: 1, seconds: 0.02, threads: 1, controls: false}
"""


@contextmanager
def _shell(script: str, folder: Path, log: str, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a script in a process group, as a terminal does, until the block ends."""
    with (folder / log).open("wb") as stream:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=environment,
            process_group=0,
        )
        try:
            yield shell
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()


def _processes(folder: Path) -> list[str]:
    """Return the command lines of processes that work in a folder or name it, without sshd."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if (str(folder) in line or (entry / "cwd").readlink().is_relative_to(folder)) and "sshd" not in line:
                lines.append(line)
        except OSError:
            continue
    return lines


@pytest.mark.skipif(bool(sshd.missing()), reason=sshd.missing())
def test_the_commands_of_the_page_measure_on_the_hosts_that_answer_and_leave_nothing_there(tmp_path: Path) -> None:
    head, far = tmp_path / "head", tmp_path / "far"
    head.mkdir()
    far.mkdir()
    (head / "matrix.yaml").write_text(MATRIX)
    text = PAGE.read_text().replace("gpu-head", "127.0.0.1").replace("8786", str(free_port()))
    start, workers, measure = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    workers = workers.replace("gpu1 gpu2 gpu3 gpu4", "gpu1 gpu2").replace("| sed", "| sed -u")
    first, second = (
        f"exec {measure.strip().replace('torch-1.12 torch-2.x', words)}" for words in ("--backend host", "--resume")
    )
    with sshd.hosts(far, ["gpu1"], silent=["gpu2"]) as environment:
        with ExitStack() as stack:
            scheduler = stack.enter_context(_shell(start, head, "scheduler.log", environment))
            wait_for(lambda: "Scheduler at:" in (head / "scheduler.log").read_text())
            loop = stack.enter_context(_shell(f"{workers}\nwait", head, "workers.log", environment))
            output = head / "workers.log"
            wait_for(lambda: "gpu1: offers cpu to tls://" in output.read_text())
            wait_for(lambda: "gpu2: ssh: connect to host 127.0.0.1 port" in output.read_text())
            with _shell(f"{first} --busy-ok", head, "first.log", environment) as driver:
                wait_for(lambda: any(run.journal().leases for run in runs(head / "reports")))
                os.killpg(driver.pid, signal.SIGINT)
                assert driver.wait(PATIENCE) == 130
            with _shell(second, head, "second.log", environment) as driver:
                assert driver.wait(240) == 0, (head / "second.log").read_text()
            os.killpg(scheduler.pid, signal.SIGINT)
            assert loop.wait(PATIENCE) == 0
        wait_for(lambda: not _processes(far))
    (run,) = runs(head / "reports")
    counts = Counter(entry.cell for entry in run.journal().counting())
    assert len(counts) == 1
    assert set(counts.values()) == {1}
    assert "Traceback" not in output.read_text()
    assert output.read_text().count("has ended") == 1
