"""The check of refused words: what it reads of a file, and what it leaves alone."""

from pathlib import Path

import pytest

from tests.refused_words import refused


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('text = "3 cells failed"', ["cells"]),
        ('text = f"{count} cells of {name}"', ["cells"]),
        ('text = "measured in turns in there"', ["in turns"]),
        ('text = "1.08 times slower"', ["times slower"]),
        ('text = f"{row.ratio:.3f}"', ["row.ratio"]),
        ('text = f"{ratio - 1:+.1%} of it"', ["ratio - 1"]),
        ('text = "LSTM cell in Python"', []),
        ('key = "cells"', []),
        ('text = f"{share:.0%} of the tests"', ["share"]),
        ('text = f"{percent(share)} of the tests"', []),
    ],
)
def test_texts_of_the_program_are_looked_at(tmp_path: Path, line: str, expected: list[str]) -> None:
    file = tmp_path / "module.py"
    file.write_text(f'"""What cells are, in turns."""\n\n{line}\n')
    assert [text for _, text, _ in refused(file)] == expected


def test_templates_are_looked_at_without_their_tags(tmp_path: Path) -> None:
    file = tmp_path / "page.html.j2"
    file.write_text('<td class="bar-cell">{% for cell in row.cells %}{{ cell }}{% endfor %}</td>\n<p>Two cells.</p>\n')
    assert [(line, text) for line, text, _ in refused(file)] == [(2, "cells")]
