"""Disks that are full or read-only, and folders of other users."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.bench import HOST, SMALL, Bench
from tests.faults.declared.disks import DISK_FAULTS
from tests.faults.fault import Fault

RUN = ("run", *SMALL, *HOST)
LONG = ("run", *SMALL, *HOST, "--seconds", "0.3")
NOBODY = 65534
ORDINARY = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
"""Takes from root what lets it read and write the files of others."""


@contextmanager
def disk(path: Path, options: str) -> Iterator[None]:
    """A small disk of its own at a folder."""
    path.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "faults", str(path)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(folder: Path) -> None:
    """Take all room of a disk, to the last byte."""
    with (folder / "filler").open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            return


def take_inodes(folder: Path) -> None:
    """Take all inodes of a disk."""
    (folder / "filler").mkdir()
    try:
        for number in range(10_000):
            (folder / "filler" / str(number)).touch()
    except OSError:
        return


def empty(folder: Path) -> None:
    """Give back what ``fill`` or ``take_inodes`` took."""
    filler = folder / "filler"
    shutil.rmtree(filler) if filler.is_dir() else filler.unlink()


def full_folder(bench: Bench) -> None:
    options = "size=8k" if bench.fault.id.startswith("disk") else "size=1m,nr_inodes=5"
    with disk(bench.reports, options):
        done = bench(*RUN)
        bench.check_seen(done)
        bench.check_cleaned()
    bench.check_kept(*RUN[1:])


def full_measure(bench: Bench) -> None:
    take = fill if bench.fault.id.startswith("disk") else take_inodes
    with disk(bench.reports, "size=8m,nr_inodes=500"):
        process = bench.start(*LONG)
        bench.measured(process)
        take(bench.reports)
        done = bench.end(process)
        bench.check_seen(done)
        bench.check_cleaned()
        empty(bench.reports)
        bench.check_kept()


def full_report(bench: Bench) -> None:
    with disk(bench.reports, "size=8m"):
        process = bench.start(*RUN, pause="runner.session.results:report")
        bench.paused(process)
        fill(bench.reports)
        bench.go_on()
        done = bench.end(process)
        bench.check_seen(done)
        bench.check_cleaned()
        empty(bench.reports)
        bench.check_kept()


def full_cache(bench: Bench) -> None:
    with disk(bench.cache / "references", "size=1m"):
        fill(bench.cache / "references")
        done = bench(*RUN)
        bench.check_seen(done)
        bench.check_cleaned()
        empty(bench.cache / "references")
        bench.check_kept()


def full_venv(bench: Bench) -> None:
    (bench.cache / "venvs").unlink()
    with disk(bench.cache / "venvs", "size=4m"):
        done = bench("run", *SMALL, "np-old", "--backend", "venv")
        bench.check_seen(done)
        bench.check_cleaned()
        assert not [path for path in (bench.cache / "venvs").iterdir() if path.is_dir()]
        bench.check_kept()


def full_pip(bench: Bench) -> None:
    """A build starts only if more than 1 GB stay free."""
    venvs = bench.cache / "venvs"
    venvs.unlink()
    with disk(venvs, "size=1300m"):
        process = bench.start("run", *SMALL, "np-old", "--backend", "venv")
        bench.reached(process, lambda: list(venvs.glob("*/bin/pip")))
        fill(venvs)
        done = bench.end(process)
        bench.check_seen(done)
        bench.check_cleaned()
        empty(venvs)
        assert not [path for path in venvs.iterdir() if path.is_dir()]
        bench.check_kept()


def full_image(bench: Bench) -> None:
    """A step writes to a disk of 64 MB: the disk of the engine is not ours to fill."""
    dockerfile = bench.folder / "docker" / "numpy.Dockerfile"
    step = f"RUN cat /dev/zero > /dev/shm/filler # {bench.folder}\nRUN useradd"
    text = dockerfile.read_text()
    dockerfile.write_text(text.replace("RUN useradd", step, 1))
    done = bench("run", *SMALL, "np-old", "--backend", "docker")
    bench.check_seen(done)
    bench.check_cleaned()
    dockerfile.write_text(text)
    bench.check_kept()


def full_tmp(bench: Bench) -> None:
    with disk(bench.temporary, "size=64k,nr_inodes=50"):
        fill(bench.temporary)
        done = bench(*RUN)
        bench.check_seen(done)
        bench.check_cleaned()
        empty(bench.temporary)
    bench.check_kept()


def readonly_reports(bench: Bench) -> None:
    with disk(bench.reports, "ro"):
        done = bench(*RUN)
        bench.check_seen(done)
        bench.check_cleaned()
    bench.check_kept(*RUN[1:])


def foreign(bench: Bench) -> None:
    path = bench.reports if bench.fault.id == "foreign-reports" else bench.folder / "foreign"
    path.mkdir()
    if path != bench.reports:
        bench.environment["XDG_CACHE_HOME"] = str(path)
    given_away(path)
    done = bench(*RUN, wrap=ORDINARY)
    bench.check_seen(done)
    path.chmod(0o777)
    bench.check_cleaned()
    bench.check_kept(*RUN[1:])


def foreign_run(bench: Bench, unfinished: Path) -> None:
    bench.take_over(unfinished)
    (run,) = bench.reports.glob("runs/[!.]*")
    before = sorted(run.rglob("*"))
    for path in (*run.rglob("*"), run):
        given_away(path, 0o755 if path.is_dir() else 0o644)
    done = bench("run", "--resume", run.name, wrap=ORDINARY)
    bench.check_seen(done)
    bench.check_cleaned()
    assert sorted(run.rglob("*")) == before


def given_away(path: Path, mode: int = 0o700) -> None:
    """Give a path to another user; skipped where that needs root."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    path.chmod(mode)
    os.chown(path, NOBODY, NOBODY)


def run_folder_removed(bench: Bench) -> None:
    process = bench.start(*LONG)
    bench.measured(process)
    (run,) = bench.reports.glob("runs/[!.]*")
    shutil.rmtree(run)
    bench.check(bench.end(process))


ACTIONS: Mapping[str, Callable[[Bench], None]] = {
    "disk-full-folder": full_folder,
    "inodes-full-folder": full_folder,
    "disk-full-measure": full_measure,
    "inodes-full-measure": full_measure,
    "disk-full-report": full_report,
    "disk-full-cache": full_cache,
    "disk-full-venv": full_venv,
    "disk-full-pip": full_pip,
    "disk-full-image": full_image,
    "disk-full-tmp": full_tmp,
    "readonly-reports": readonly_reports,
    "foreign-reports": foreign,
    "foreign-cache": foreign,
    "run-folder-removed": run_folder_removed,
}


@pytest.mark.parametrize("fault", DISK_FAULTS, ids=lambda fault: fault.id)
def test_a_disk(fault: Fault, bench: Bench, request: pytest.FixtureRequest) -> None:
    if fault.id == "foreign-run":
        foreign_run(bench, request.getfixturevalue("unfinished"))
    else:
        ACTIONS[fault.id](bench)
