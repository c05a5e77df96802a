"""Each decision says whether it holds today, and what names a decision names one that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "decisions"
DECISIONS = {path.name[:4]: path for path in sorted(FOLDER.glob("*.md"))}
STATUS = re.compile(r"Status: (?:holds|changed by \[?(?P<by>\d{4})(?:\]\((?P<page>[^)]+)\))?: [a-z`0-9].*[^.])")
MENTION = re.compile(r"\bdecisions?[ /]\[?(\d{4})\b", re.IGNORECASE)
SEARCHED = ("runner", "benchmarks", "tests", "docs", "docker", "examples", "changelog.d")
SUFFIXES = (".md", ".py", ".toml", ".yaml", ".yml", ".j2")


def texts() -> list[Path]:
    """Return the files of the repository that may name a decision."""
    below = [path for folder in SEARCHED for path in (ROOT / folder).rglob("*")]
    return sorted(path for path in (*below, *ROOT.iterdir()) if path.suffix in SUFFIXES and path.is_file())


@pytest.mark.parametrize("page", DECISIONS.values(), ids=lambda page: page.name[:4])
def test_a_decision_has_a_status_below_its_title(page: Path) -> None:
    title, empty, status, *_ = page.read_text("utf-8").splitlines()
    assert re.fullmatch(rf"# {page.name[:4]}: .+", title)
    assert not empty
    match = STATUS.fullmatch(status)
    assert match, f"{status}: write `Status: holds`, or `Status: changed by NNNN: what it changed`"
    if match["by"]:
        assert match["by"] in DECISIONS
        assert match["by"] > page.name[:4], "a later decision changes an earlier one"
        assert not match["page"] or match["page"] == DECISIONS[match["by"]].name


def test_every_decision_that_is_named_exists() -> None:
    named = {(path, number) for path in texts() for number in MENTION.findall(path.read_text("utf-8", "replace"))}
    assert len(named) > len(DECISIONS), "the index alone names each"
    assert not [f"{path.relative_to(ROOT)}: {number}" for path, number in sorted(named) if number not in DECISIONS]


def test_the_index_has_every_decision_in_order() -> None:
    rows = re.findall(
        r"^\| \[(\d{4})\]\(decisions/([^)]+)\)", (ROOT / "docs" / "index.md").read_text("utf-8"), re.MULTILINE
    )
    assert rows == [(number, page.name) for number, page in DECISIONS.items()]
