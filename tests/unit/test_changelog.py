"""What the next release brings: fragments that towncrier finds, and that somebody reads to the end."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
FOLDER = ROOT / SETTINGS["directory"]
TYPES = {kind["directory"] for kind in SETTINGS["type"]}
FRAGMENTS = sorted(path for path in FOLDER.iterdir() if path.name not in SETTINGS["ignore"])
MAX_WORDS = 60


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_has_a_name_that_towncrier_reads_and_is_short(fragment: Path) -> None:
    name, kind, suffix = fragment.name.rsplit(".", 2)
    assert (name.startswith("+"), kind in TYPES, suffix) == (True, True, "md"), "its name is +NAME.TYPE.md"
    assert len(fragment.read_text("utf-8").split()) <= MAX_WORDS, f"a fragment has at most {MAX_WORDS} words"


def test_towncrier_finds_where_the_next_release_begins() -> None:
    assert SETTINGS["start_string"] in (ROOT / SETTINGS["filename"]).read_text("utf-8")


def test_the_rule_names_every_type_and_the_number_of_words() -> None:
    rule = (FOLDER / "README.md").read_text("utf-8")
    assert all(f"`{kind}`: " in rule for kind in TYPES)
    assert f"at most {MAX_WORDS} words" in rule
