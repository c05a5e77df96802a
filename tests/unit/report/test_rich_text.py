"""Tables for a terminal."""

from rich.text import Text

from runner.report.rich_text import as_text, listed

COMMAND = "sudo apt-get install -y --no-install-recommends build-essential python3-dev"


def text(*details: str, width: int = 60) -> str:
    rows = [(Text("missing"), Text(f"tool{number}"), Text(detail)) for number, detail in enumerate(details)]
    return as_text(listed(rows, width), width)


def test_a_command_that_a_column_would_break_stands_below_in_one_line() -> None:
    for detail in (f"no compiler\nfix: {COMMAND}", f"no compiler\ninstall it: `{COMMAND}`"):
        shown = text(detail, "no engine", width=60)
        lines = shown.splitlines()
        assert lines[:2] == ["missing  tool0  no compiler", "missing  tool1  no engine"]
        assert lines[2].startswith("tool0: ")
        assert COMMAND in lines[2]
        assert len(lines) == 3


def test_a_command_that_fits_stays_and_long_text_is_folded() -> None:
    shown = text("none\nfix: apt install gcc", "a sentence that is longer than the column and has no command", width=40)
    assert "        fix: apt install gcc" in shown
    assert max(map(len, shown.splitlines())) <= 40


def test_no_rows_are_no_table() -> None:
    assert text() == ""
