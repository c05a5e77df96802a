"""Text from outside is printed without control characters."""

import pytest

from runner.core.text import printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, ünïcödé, 漢字, 🎉", "plain, ünïcödé, 漢字, 🎉"),
        ("\x1b]0;pwned\x07\x1b[2J", "\\x1b]0;pwned\\x07\\x1b[2J"),
        ("\x9b31m\x7f\x00\x08", "\\x9b31m\\x7f\\x00\\x08"),
        ("a\u202egnp.exe\u2066", "a\\u202egnp.exe\\u2066"),
        ("half \ud800 pair", "half \\ud800 pair"),
        ("one\r\ntwo\rthree\nfour\tfive", "one two three four five"),
        ("a\u2028b", "a\\u2028b"),
    ],
)
def test_control_characters_become_escapes_on_a_line(text: str, expected: str) -> None:
    assert printable(text) == expected
    assert printable(text).encode()  # every encoding of Unicode can write it


def test_multiline_text_keeps_line_ends_and_tabs() -> None:
    assert printable("one\r\ntwo\rthree\n\tfour\x1b[0m", multiline=True) == "one\ntwo\nthree\n\tfour\\x1b[0m"


def test_long_text_is_cut_to_the_limit() -> None:
    assert printable("x" * 500, 500) == "x" * 500
    assert printable("x" * 501, 500) == "x" * 499 + "…"
    assert len(printable("\x1b" * 10_000, 500)) == 500
