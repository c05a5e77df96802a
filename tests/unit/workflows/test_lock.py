"""Locks are the same on every machine, and change only when a package does."""

import re
from datetime import date
from pathlib import Path

import pytest

from runner.core.errors import ProvisionError
from runner.workflows import lock
from runner.workflows.lock import LockRequest

HERE = Path(__file__).parents[3]
LOCKS = sorted((HERE / "docker" / "locks").glob("*.txt"))
PUBLIC_INDEX = "https://download.pytorch.org/whl/"
DAY = date(2026, 11, 20)
RESOLVED = """\
--index-url https://user:secret@mirror.example/simple
--find-links /somewhere/wheels
numpy==1.19.5 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via
    #   -r -
    #   torch
torch==1.0.0 \\
    --hash=sha256:cc
    # via -r -
"""


def request(path: Path = Path("lock.txt"), *, index: str | None = None, find_links: str | None = None) -> LockRequest:
    return LockRequest(
        name="torch-1.0",
        requirements=("torch==1.0.0", "numpy"),
        python="3.6",
        out=path,
        index=index,
        find_links=find_links,
    )


def test_the_header_says_how_to_make_the_lock_again() -> None:
    expected = "# made by `runner lock torch-1.0` from: torch==1.0.0, numpy, Python 3.6, 2026-11-20"
    assert lock.header_of(request(), DAY) == expected


def test_the_command_asks_for_hashes_and_the_target() -> None:
    command = lock.command_of("uv", request())
    assert command[:4] == ["uv", "pip", "compile", "-"]
    assert "--generate-hashes" in command
    assert command[command.index("--python-version") + 1] == "3.6"
    assert "--index" not in command
    assert "--find-links" not in command


def test_an_index_is_asked_beside_pypi_as_pip_would() -> None:
    command = lock.command_of("uv", request(index="https://index.example/cpu"))
    assert command[command.index("--index") + 1] == "https://index.example/cpu"
    assert command[command.index("--index-strategy") + 1] == "unsafe-best-match"


def test_a_folder_of_wheels_is_asked_instead_of_the_index() -> None:
    command = lock.command_of("uv", request(index="https://index.example/cpu", find_links="wheels"))
    assert command[command.index("--find-links") + 1] == "wheels"
    assert "--index" not in command


def test_nothing_of_this_machine_stays() -> None:
    body = lock.clean(RESOLVED, request())
    assert "example" not in body
    assert "somewhere" not in body
    assert "    #   (asked for)\n    #   torch\n" in body
    assert body.startswith("numpy==1.19.5 \\\n    --hash=sha256:aa \\\n")
    assert body.endswith("# via (asked for)\n")


def test_a_package_from_a_place_is_refused_without_showing_the_password() -> None:
    placed = "torch @ https://me:secret@mirror.example/torch.whl \\\n    --hash=sha256:cc\n"
    with pytest.raises(ProvisionError, match="is a path or an address") as caught:
        lock.clean(placed, request())
    assert "secret" not in str(caught.value)
    assert caught.value.code == "lock"


def test_an_index_with_a_password_is_refused_before_uv_starts() -> None:
    with pytest.raises(ProvisionError, match="use a public index") as caught:
        lock.lock(request(index="https://me:secret@mirror.example/simple"), DAY)
    assert "secret" not in str(caught.value)


def test_a_package_without_a_hash_is_refused() -> None:
    with pytest.raises(ProvisionError, match=r"'six==1\.17\.0' has no hash"):
        lock.clean("six==1.17.0\n    # via -r -\n", request())


def test_pins_are_names_and_versions() -> None:
    text = RESOLVED + "tensorflow[and-cuda]==2.21.0 \\\n    --hash=sha256:dd\nsix==1.17.0 ; python_version < '3'\n"
    assert lock.pins(text) == (
        ("numpy", "1.19.5"),
        ("torch", "1.0.0"),
        ("tensorflow", "2.21.0"),
        ("six", "1.17.0"),
    )


def test_the_date_alone_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "lock.txt"
    old = lock.header_of(request(), date(2020, 1, 1)) + "\n" + RESOLVED
    new = lock.header_of(request(), DAY) + "\n" + RESOLVED
    assert not lock.same(new, path)
    path.write_text(old)
    assert lock.same(new, path)


def test_other_requirements_or_another_hash_are_a_change(tmp_path: Path) -> None:
    path = tmp_path / "lock.txt"
    text = lock.header_of(request(), DAY) + "\n" + RESOLVED
    path.write_text(text)
    assert not lock.same(text.replace("from: torch", "from: torchvision, torch"), path)
    assert not lock.same(text.replace("sha256:cc", "sha256:cd"), path)


def test_of_uv_s_complaints_the_last_without_warnings_are_shown() -> None:
    stderr = (
        "warning: Failed to inspect an interpreter\n  cause: it answered 127\n\n     [stderr] noise\n"
        "error: No solution found\n  cause: only numpy<=2 is available at https://me:secret@mirror.example/simple\n"
    )
    assert lock.useful_lines(stderr) == (
        "error: No solution found\n  cause: only numpy<=2 is available at https://mirror.example/simple"
    )
    assert lock.useful_lines(stderr, limit=1).startswith("  cause:")


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_a_shipped_lock_is_complete_and_names_no_machine(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    names = (path.stem, re.sub(r"-(cpu|cuda)(-[0-9.]+)?$", "", path.stem))
    assert lines[0].startswith(tuple(f"# made by `runner lock {name}` from: " for name in names))
    options = [line for line in lines if line.startswith("-")]
    assert all(line.startswith(f"--extra-index-url {PUBLIC_INDEX}") for line in options)
    rest = "\n".join(line for line in lines if line not in options)
    assert "://" not in rest
    assert " @ " not in rest
    assert lock.clean(rest, request()) == rest + "\n"
