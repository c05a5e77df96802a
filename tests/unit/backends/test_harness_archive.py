"""The archive of the measuring code: it does not depend on the clock, and is small."""

import ast
import io
import os
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.backends import harness_archive


@pytest.mark.parametrize("year", [1970, 2060])
def test_the_archive_is_the_same_whatever_the_clock_says(year: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = harness_archive.pack.__wrapped__()
    monkeypatch.setattr(time, "localtime", lambda *_: time.struct_time((year, 1, 1, 0, 0, 0, 3, 1, 0)))
    packed = harness_archive.pack.__wrapped__()
    assert packed == before
    size, _, archive = packed.partition(b"\n")
    assert int(size) == len(archive)
    names = zipfile.ZipFile(io.BytesIO(archive)).namelist()
    assert {"harness/server.py", "harness/adapters/numpy.py"} <= set(names)


def test_the_archive_fits_into_the_buffer_of_a_socket() -> None:
    """Else sending it to a server that never reads blocks until it counts as ended."""
    assert len(harness_archive.pack()) < 208 << 10  # net.core.wmem_default of Linux, socket(7)


def test_lines_keep_their_numbers_without_docstrings() -> None:
    for path in sorted(harness_archive.FOLDER.rglob("*.py")):
        source = path.read_text("utf-8")
        sent = harness_archive.without_docstrings(source)
        before, after = ast.parse(source), ast.parse(sent)
        assert not any(ast.get_docstring(node) for node in ast.walk(after) if isinstance(node, ast.FunctionDef)), path
        assert lines(before) == lines(after), path


def test_a_docstring_becomes_an_empty_one() -> None:
    source = 'def add():\n    """Add.\n\n    Or not.\n    """\n    return """1"""\n'
    assert harness_archive.without_docstrings(source) == 'def add():\n    ""\n\n\n\n    return """1"""\n'


def lines(tree: ast.Module) -> list[tuple[str, int]]:
    """Return the kind of each statement, and the line in which it begins."""
    return [(type(node).__name__, node.lineno) for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def test_threads_that_need_the_modules_at_the_same_time_parse_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = tuple(tmp_path / f"{name}.py" for name in "abc")
    for path in paths:
        path.write_text("x = 1\n")
    parse, together, parsed = ast.parse, threading.Barrier(4), list[str]()

    def slowly(source: str) -> ast.Module:
        parsed.append(source)
        os.sched_yield()  # another thread may run
        return parse(source)

    def ask() -> tuple[harness_archive.Module, ...]:
        together.wait()
        return harness_archive.modules(paths)

    monkeypatch.setattr(ast, "parse", slowly)
    with ThreadPoolExecutor(4) as pool:
        answers = [each.result() for each in [pool.submit(ask) for _ in range(4)]]
    assert len(parsed) == len(paths)
    assert all(answer is answers[0] for answer in answers)
