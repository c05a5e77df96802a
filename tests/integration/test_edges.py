"""The real program at its edges: readers that go, terminals that hang up, full disks, foreign folders, no home."""

import fcntl
import os
import pty
import shutil
import stat
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.conftest import PATIENCE, ROOT, Runner, journal_of, wait_for
from tests.support.fake_runs import cell, good, make, times
from tests.support.needs import slow

HOST = ("run", "--backend", "host", "--preset", "tiny", "--device", "cpu", "--threads", "1", "--busy-ok")
COMPARE = ("compare", "torch-1.0", "torch-2.x")
NO_USER = 54321
"""A number of a user that no system has in its list."""


def shell(
    script: str, *arguments: str, folder: Path, env: Mapping[str, str] | None = None, before: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[bytes]":
    """Run the command line as ``"$@"`` in a script of bash."""
    command = [*before, "bash", "-o", "pipefail", "-c", script, "bash", sys.executable, "-m", "runner", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=False, timeout=200)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose reports have a run that is quick to compare."""
    records = [
        good(cell(name), number, times(seconds))
        for number in (1, 2, 3)
        for name, seconds in (("torch-1.0", 1e-3), ("torch-2.x", 2e-3))
    ]
    make(tmp_path / "reports", records)
    return tmp_path


def ending(runner: Runner) -> object:
    """Return how the journal of the only run says that it ended."""
    (run,) = (runner.folder / "reports" / "runs").iterdir()
    return journal_of(run)[-1].get("how")


@pytest.mark.parametrize(
    "script",
    [
        '"$@" 2>&1 >/dev/null | head -n 1',
        *slow('"$@" 2>&-', '"$@" >&- 2>&-', '"$@" 2>/dev/full'),
    ],
)
def test_a_run_outlives_the_reader_of_its_messages(script: str, runner: Runner) -> None:
    done = shell(script, *HOST, folder=runner.folder)
    assert done.returncode == 0, done.stderr
    assert ending(runner) == "done"
    assert len(runner.records()) == 6


@pytest.mark.slow
def test_a_run_whose_terminal_hangs_up_ends_as_by_sigterm(runner: Runner) -> None:
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "runner", *HOST, "--rounds", "500"],
        cwd=runner.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  it makes a system call only
    )
    os.close(end)
    os.set_blocking(terminal, False)

    def measures() -> bool:
        with suppress(BlockingIOError):
            os.read(terminal, 1 << 16)
        return len(runner.records()) >= 3

    try:
        wait_for(measures)
        os.close(terminal)
        assert process.wait(PATIENCE) == 129
    finally:
        process.kill()
        process.wait()
    assert ending(runner) == "interrupted"


@pytest.mark.parametrize("arguments", [COMPARE, ("check",), ("--help",), ("compare", "--help"), ("schema",)])
def test_a_full_stdout_is_a_sentence(arguments: tuple[str, ...], folder: Path) -> None:
    done = shell('"$@" >/dev/full', *arguments, folder=folder)
    assert done.returncode == 1
    assert done.stderr.decode() == "error: stdout cannot be written: No space left on device\nhint: make room\n"


@pytest.mark.parametrize("script", ['"$@" | true', '"$@" | head -n 1 >/dev/null', '"$@" >&-', '"$@" >&- 2>&- <&-'])
@pytest.mark.parametrize("arguments", [COMPARE, ("list", "cases"), ("run", "--help")])
def test_a_reader_that_goes_is_no_error(arguments: tuple[str, ...], script: str, folder: Path) -> None:
    done = shell(script, *arguments, folder=folder)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("arguments", [COMPARE, (*COMPARE, "--format", "md"), ("check",), ("accuracy",)])
def test_narrow_encodings_get_what_they_can_print(arguments: tuple[str, ...], encoding: str, folder: Path) -> None:
    done = shell('"$@"', *arguments, folder=folder, env={"PYTHONIOENCODING": encoding})
    assert done.returncode in {0, 1}, done.stderr
    assert b"Traceback" not in done.stderr
    shown = done.stdout.decode(encoding)
    assert "2.x" in shown
    assert "?" not in shown.replace("can't tell", "").replace("?: serious", "") or encoding == "utf-8"


def test_a_device_stays_a_device(folder: Path) -> None:
    null = folder / "null"
    try:
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root may make a device")
    for name in ("null", str(null)):
        done = shell('"$@"', *COMPARE, "-o", name, folder=folder)
        assert done.returncode == 0, done.stderr
        assert stat.S_ISCHR(null.lstat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("script", ['"$@" | cat', '"$@" > out.txt; code=$?; cat out.txt; exit $code'])
def test_stdout_by_its_path_is_stdout(name: str, script: str, folder: Path) -> None:
    done = shell(script, *COMPARE, "--format", "json", "-o", name, folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b'{\n  "version"')
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 128 KiB; skipped where this user may not mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk")
    yield disk
    subprocess.run(["umount", disk], check=True)


def fill(disk: Path) -> None:
    """Leave no room on a disk."""
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 1024):
                continue
        except OSError:
            return


@pytest.mark.slow
def test_a_full_disk_is_named_with_the_command_that_goes_on(small_disk: Path, folder: Path) -> None:
    shutil.copytree(folder / "reports", small_disk / "reports")
    fill(small_disk)
    reports = ("--reports", str(small_disk / "reports"))
    for arguments, code, blamed in (
        (("report", *reports), 6, "/index.html cannot be written: No space left on device"),
        ((*COMPARE, "-o", str(small_disk / "x.md")), 2, f"{small_disk}/x.md cannot be written: No space"),
        (("export", "-o", str(small_disk / "x.csv")), 2, f"{small_disk}/x.csv cannot be written: No space"),
        (("report", "--site", str(small_disk / "site")), 6, f"{small_disk}/site"),
        (("schedule", "-o", str(small_disk)), 2, f"{small_disk}/"),
    ):
        shutil.copyfile(ROOT / "matrix.yaml", folder / "matrix.yaml")
        shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)  # networks that the matrix names
        done = shell('"$@"', *arguments, folder=folder)
        assert (done.returncode, b"Traceback" in done.stderr) == (code, False), (arguments, done.stderr)
        assert blamed in done.stderr.decode()
        assert b"make room" in done.stderr


def test_a_full_cache_is_blamed_and_no_reports_folder(small_disk: Path, runner: Runner) -> None:
    (small_disk / "matrix-runner").mkdir()
    for lock in ("in-use.lock", "measuring-cpu.lock"):
        (small_disk / "matrix-runner" / lock).touch()
    fill(small_disk)
    done = shell('"$@"', *HOST, folder=runner.folder, env={"XDG_CACHE_HOME": str(small_disk)})
    err = done.stderr.decode()
    assert done.returncode == 1, err
    assert "Traceback" not in err
    assert f"{small_disk}/matrix-runner/references" in err
    assert f"{runner.folder}/reports cannot" not in err
    assert "make room" in err


@pytest.mark.slow
def test_reports_of_another_user_are_read_and_not_written(folder: Path) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can give files to another user, and setpriv takes root's rights over them away")
    for path in (folder / "reports", *(folder / "reports").rglob("*")):
        os.chown(path, NO_USER, NO_USER)
    without_rights = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    for arguments in (COMPARE, ("check",), ("list",)):
        done = shell('"$@"', *arguments, folder=folder, before=without_rights)
        assert done.returncode == 0, (arguments, done.stderr)
    done = shell('"$@"', "report", folder=folder, before=without_rights)
    assert done.returncode == 6
    assert b"/index.html cannot be written: Permission denied\nhint: use a folder of yours" in done.stderr
    (folder / "reports").chmod(0o700)
    for arguments in (COMPARE, ("check",), ("list",), ("report",), ("export", "-o", "x.csv")):
        done = shell('"$@"', *arguments, folder=folder, before=without_rights)
        assert done.returncode in {0, 1, 2, 6}, (arguments, done.stderr)
        assert b"Traceback" not in done.stderr, arguments


@pytest.mark.slow
def test_a_user_without_a_home_folder_gets_a_sentence_and_can_name_a_cache(runner: Runner) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user")
    reader = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")  # for the interpreter's folder
    user = ("setpriv", "--reuid", str(NO_USER), "--regid", str(NO_USER), "--clear-groups", *reader)
    bare = (*user, "env", "-u", "HOME", "-u", "XDG_CACHE_HOME", "-u", "XDG_STATE_HOME", "PYTHONDONTWRITEBYTECODE=1")
    runner.folder.chmod(0o777)
    for arguments in (HOST, ("doctor",), ("clean",), ("plan",), ("list",), ("clocks",), ("tune",), ("schema",)):
        done = shell('"$@"', *arguments, folder=runner.folder, before=bare)
        assert done.returncode in {0, 2}, (arguments, done.stderr)
        assert b"Traceback" not in done.stderr, arguments
        assert done.returncode == 0 or b"has no home folder\nhint: set XDG_CACHE_HOME" in done.stderr
    for command in ("plan", "doctor", "clean"):
        done = shell('"$@"', command, folder=runner.folder, before=(*bare, f"XDG_CACHE_HOME={runner.folder}/cache"))
        assert done.returncode in {0, 1}, (command, done.stderr)
        assert b"error: " not in done.stderr, command
