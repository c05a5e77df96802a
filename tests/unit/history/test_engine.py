"""What to do about a database that cannot be used: nothing that belongs to another program is to be removed."""

from pathlib import Path

import pytest

from runner.core.errors import HistoryError
from runner.history.database import History


def hint_of(url: str) -> str:
    """Return the hint of the error with which a history cannot be opened."""
    with pytest.raises(HistoryError) as caught:
        History.open(url)
    return caught.value.problems[0].hint or ""


def test_a_file_that_is_no_history_is_not_to_be_removed(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n" * 100)
    hint = hint_of(f"sqlite:///{tmp_path / 'passwd'}")
    assert "remove" not in hint
    assert "is no history, and nothing of it was changed" in hint
    assert (tmp_path / "passwd").read_text().startswith("root:x")


def test_a_damaged_history_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "history.db").write_text("damaged" * 1000)
    assert "then `runner history rebuild` makes it of the stored runs" in hint_of(f"sqlite:///{tmp_path}/history.db")
