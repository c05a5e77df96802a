"""What the kernel says about this machine, read from files that the test writes."""

from pathlib import Path

import pytest

from runner.core import machine


@pytest.mark.parametrize(
    ("text", "setting"), [("always [madvise] never\n", "madvise"), ("[always] madvise never", "always"), ("", None)]
)
def test_the_setting_of_huge_pages_is_the_word_in_brackets(
    text: str, setting: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "HUGE_PAGES", tmp_path / "enabled")
    assert machine.huge_pages() is None  # a kernel without them
    (tmp_path / "enabled").write_text(text)
    assert machine.huge_pages() == setting
    assert machine.describe([])["huge_pages"] == setting
