"""A lock holds packages with versions and hashes, and nothing else that pip would obey."""

import os
from pathlib import Path

import pytest

from runner.backends.lock_file import LOCK_BYTES, lock_skip, locked_packages, parse_lock, read_lock
from runner.core.errors import ProvisionError
from runner.core.model import Spec

HASH = "--hash=sha256:" + "0a" * 32
GOOD = f"""\
# made by `runner lock np` from: numpy, Python 3.11, 2026-11-20
--extra-index-url https://example.org/wheels/cpu
NumPy[x]==2.4.6+cpu \\
    {HASH} \\
    {HASH.replace("0a", "0b")}
    # via torch
six==1.17.0 ; python_version < '3' {HASH}
"""


def refusal(text: str | bytes) -> tuple[str, int]:
    """Return message and line of a refused lock."""
    with pytest.raises(ProvisionError) as caught:
        parse_lock(text if isinstance(text, bytes) else text.encode(), "lock.txt")
    assert caught.value.code == "image-build"
    (problem,) = caught.value.problems
    assert problem.where is not None
    assert problem.hint
    assert str(problem).isprintable() or "\n" in str(problem)
    return problem.message, problem.where.line


def test_a_lock_names_the_packages_that_override_what_others_require() -> None:
    text = GOOD.replace("\n", "\n# overrides: six==1.17.0, numpy==2.4.6+cpu\n", 1)
    assert parse_lock(text.encode(), "lock.txt").overrides == ("six==1.17.0", "numpy==2.4.6+cpu")
    assert parse_lock(GOOD.encode(), "lock.txt").overrides == ()


@pytest.mark.parametrize("comment", ["overrides: six==1.17.0", "the packages of 2025-01-16"])
def test_a_lock_that_pip_would_resolve_otherwise_is_installed_as_it_is(comment: str) -> None:
    text = GOOD.replace("\n", f"\n# {comment}\n", 1)
    assert parse_lock(text.encode(), "lock.txt").needs_no_deps
    assert not parse_lock(GOOD.encode(), "lock.txt").needs_no_deps


def test_packages_are_read_with_their_hashes_and_markers() -> None:
    for text in (GOOD, GOOD.replace("\n", "\r\n")):
        lock = parse_lock(text.encode(), "lock.txt")
        assert lock.header == ("# made by `runner lock np` from: numpy, Python 3.11, 2026-11-20",)
        assert lock.indexes == ("https://example.org/wheels/cpu",)
        assert [(package.key, package.version, package.marker) for package in lock.packages] == [
            ("numpy", "2.4.6+cpu", ""),
            ("six", "1.17.0", "python_version < '3'"),
        ]
        assert lock.packages[0].hashes == ("sha256:" + "0a" * 32, "sha256:" + "0b" * 32)


@pytest.mark.parametrize(
    "line",
    [
        *("-e /path", "-r /etc/shadow", "-c x", "--index-url https://x", "--find-links /x", "--no-index", "--pre"),
        *(
            "--trusted-host x",
            "--extra-index-url https://x --trusted-host y",
            "--extra-index-url file:///x",
            "-i https://x",
        ),
        *(f"numpy==1 {HASH} -e /path", f"numpy==1 --global-option=x {HASH}", f"numpy==1 {HASH} --config-settings a=b"),
        *(
            f"numpy @ file:///x {HASH}",
            f"./numpy {HASH}",
            f"https://x/y.whl {HASH}",
            f"${{HOME}} {HASH}",
            f"numpy>=1 {HASH}",
        ),
        *(f"numpy==1.* {HASH}", f"numpy {HASH}", f"numpy==1 # x {HASH}", f"numpy==1; x {HASH}", f"-e numpy==1 {HASH}"),
        f"numpy==1 ; python_version < '-e /path' {HASH}",
    ],
)
def test_any_other_line_is_refused_with_its_number(line: str) -> None:
    for text in (f"# x\n\n{line}\n", GOOD + line + "\n"):
        message, number = refusal(text)
        assert message.startswith("the lock is refused: ")
        assert number == text.splitlines().index(line) + 1


@pytest.mark.parametrize(
    "line",
    [
        "numpy==1",
        "numpy==1 --hash=sha256:00",
        "numpy==1 --hash=md5:" + "0" * 32,
        f"numpy==1 {HASH[:-1]}",
        f"numpy==1 {HASH}x",
    ],
)
def test_a_package_without_a_strong_hash_is_refused(line: str) -> None:
    assert refusal(line)[1] == 1


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"# a\x0b-e /path",
            b"# a\x0c-e /path",
            b"# a\x1c-e /path",
            b"# a\r-e /path",
            b"# a\xc2\x85-e /path",
            b"# a\x00",
        ),
        *(
            "# a\u2028-e /path".encode(),
            "# a".encode("utf-16"),
            b"\xef\xbb\xbf# a",
            b"# \x1b[2J",
            b"numpy==1\t--hash=x",
        ),
    ],
)
def test_a_comment_ends_where_a_line_ends_and_nowhere_else(content: bytes) -> None:
    assert "beyond ASCII" in refusal(content)[0]


@pytest.mark.parametrize("text", ["# -*- coding: utf-7 -*-\n", "# x\n# coding=utf-7\n", "# x \\\n-e /path\n"])
def test_a_comment_that_pip_obeys_is_refused(text: str) -> None:
    assert "a comment that pip reads as something else" in refusal(text)[0]


def test_a_lock_that_is_no_regular_file_or_too_large_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_bytes(b"#" * (LOCK_BYTES + 1))
    for path in (tmp_path, tmp_path / "fifo", Path("/dev/zero"), tmp_path / "large", tmp_path / "missing"):
        with pytest.raises(ProvisionError, match="cannot read the lock") as caught:
            read_lock(path)
        assert caught.value.code == "image-build"


def test_an_environment_with_a_refused_lock_is_skipped_with_the_line(tmp_path: Path) -> None:
    lock = tmp_path / "np.txt"
    spec = Spec(environment="np", framework="numpy", release="2.0", lock=lock)
    assert "no lock yet" in str(lock_skip(spec))
    lock.write_text(GOOD)
    assert lock_skip(spec) is None
    lock.write_text(GOOD + "-e /path\n")
    skip = lock_skip(spec)
    assert skip is not None
    assert (skip.code, "np.txt, line 8" in skip.reason) == ("image-unavailable", True)


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[3] / "docker" / "locks").glob("*.txt")), ids=str)
def test_a_shipped_lock_has_hashes_for_every_package(path: Path) -> None:
    _, lock = read_lock(path)
    assert lock.packages
    assert all(package.hashes for package in lock.packages)
    assert len({package.key for package in lock.packages}) == len(lock.packages)


def test_the_packages_of_locks_that_can_be_read_are_known(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    (tmp_path / "bad.txt").write_text("-e .\n")
    locks = {
        "good": tmp_path / "good.txt",
        "bad": tmp_path / "bad.txt",
        "missing": tmp_path / "none.txt",
        "image": None,
    }
    specs = [Spec(environment=name, framework="numpy", release="2.0", lock=lock) for name, lock in locks.items()]
    assert locked_packages(specs) == {"good": {"numpy", "six"}}
