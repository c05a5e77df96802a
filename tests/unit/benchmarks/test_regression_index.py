"""The index of public regressions: what it has, and what it says of mistakes."""

from pathlib import Path

import pytest

from benchmarks.regression_index import INDEX, parse_index, read_index
from runner.core.errors import MatrixError
from runner.matrix.model_file import read_network

FILES = sorted(path.name for path in INDEX.parent.glob("*.py"))
ENTRIES = read_index()
TEXT = """\
slow-loop:
  source: jax-ml/jax#25190
  claim: A loop is slower.
  good: jax==0.4.31
  bad: jax==0.4.33
  file: loop.py
  case: default
  phase: forward
  metric: time
  sign: worse
  cpu: true
"""


def mistakes(folder: Path, text: str) -> list[str]:
    """Return ``LINE:COLUMN message; hint`` for each mistake of an index beside a file ``loop.py``."""
    (folder / "loop.py").touch()
    with pytest.raises(MatrixError) as caught:
        parse_index(text.encode(), "index.yaml", folder)
    return [
        f"{each.where.line}:{each.where.column} {each.message}; {each.hint}"
        for each in caught.value.problems
        if each.where is not None and each.where.file == "index.yaml"
    ]


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_of_an_entry_and_short_and_compiles(name: str) -> None:
    content = (INDEX.parent / name).read_text("utf-8")
    assert name in {entry.file for entry in ENTRIES.values()}
    assert len(content.splitlines()) <= 30
    compile(content, name, "exec")


@pytest.mark.parametrize("name", ENTRIES)
def test_the_file_of_an_entry_has_its_case_and_phase(name: str) -> None:
    entry = ENTRIES[name]
    network = read_network(INDEX.parent / entry.file)
    assert entry.case in network.cases
    assert entry.phase in network.timed


def test_the_releases_of_an_entry_differ_in_one_package() -> None:
    for name, entry in ENTRIES.items():
        differ = set(entry.good.split(",")) ^ set(entry.bad.split(","))
        assert len({word.partition("==")[0] for word in differ}) == 1, name


def test_an_index_without_mistakes_has_its_entries(tmp_path: Path) -> None:
    (tmp_path / "loop.py").touch()
    entry = parse_index(TEXT.encode(), "index.yaml", tmp_path)["slow-loop"]
    assert (entry.source, entry.good, entry.sign, entry.cpu) == ("jax-ml/jax#25190", "jax==0.4.31", "worse", True)
    assert entry.explained_by == ""


@pytest.mark.parametrize(
    ("written", "replaced", "expected"),
    [
        ("  claim:", "  clam:", "3:3 unknown key 'clam'; did you mean 'claim'?"),
        ("  cpu: true\n", "", "1:1 key 'cpu' is missing in slow-loop; add cpu:"),
        ("jax==0.4.31", "jax>=0.4", "4:9 good must name exact releases, found jax>=0.4; write it as numpy==1.26.4, "),
        (
            "jax-ml/jax#25190",
            "jax#1",
            "2:11 source must be a public report, found jax#1; write it as OWNER/NAME#NUMBER",
        ),
        ("metric: time", "metric: tim", "9:11 metric must be the name of a metric, found tim; did you mean 'time'?"),
        ("sign: worse", "sign: wors", "10:9 sign cannot be 'wors'; did you mean 'worse'?"),
        ("sign: worse", "sign: same", "10:3 a control has no source; "),
        ("  source: jax-ml/jax#25190\n", "", "9:3 a regression needs its source; source: OWNER/NAME#NUMBER "),
        ("loop.py", "lop.py", "6:9 there is no lop.py beside the index; write the model file, "),
        ("cpu: true", "cpu: 'true'", "11:8 cpu"),
        ("slow-loop:", "slow:", "1:1 slow cannot name an entry; two words or more"),
    ],
)
def test_a_mistake_has_its_place_and_a_hint(tmp_path: Path, written: str, replaced: str, expected: str) -> None:
    assert written in TEXT
    (mistake,) = mistakes(tmp_path, TEXT.replace(written, replaced))
    assert mistake.startswith(expected)


def test_all_mistakes_are_reported_in_their_order(tmp_path: Path) -> None:
    text = TEXT.replace("metric: time", "metric: tim").replace("jax==0.4.33", "jax")
    assert [mistake.partition(" ")[0] for mistake in mistakes(tmp_path, text)] == ["5:8", "9:11"]


def test_an_index_that_is_a_list_is_refused(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "- a\n") == ["1:1 the index must be a mapping; write NAME: and its keys below"]
