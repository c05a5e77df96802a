"""The file of anchors, as somebody left it: what to do with a damaged one, and with one of a newer program."""

from pathlib import Path

import pytest

from runner.core.errors import RunnerError
from runner.nights.anchors_file import FILE, HINT, read_anchors


@pytest.mark.parametrize("content", ["", "[1]", '{"version": 1, "devices": 3}', '{"version": 1, "devices"'])
def test_a_damaged_file_says_how_to_go_on(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(RunnerError) as caught:
        read_anchors(tmp_path, "cpu")
    assert {problem.hint for problem in caught.value.problems} == {HINT}


def test_a_file_of_a_newer_program_is_not_to_be_removed(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"version": 9, "devices": {}}')
    with pytest.raises(RunnerError) as caught:
        read_anchors(tmp_path, "cpu")
    assert "has version 9" in caught.value.problems[0].message
    assert HINT not in {problem.hint for problem in caught.value.problems}
