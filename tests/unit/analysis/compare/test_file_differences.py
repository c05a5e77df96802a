"""Sentences about the files in which two networks differ."""

import json

from runner.analysis.compare.file_differences import file_differences

NETWORK = json.dumps({"net.py": "aa", "layers.py": "bb"})


def test_each_file_that_differs_is_named() -> None:
    other = json.dumps({"net.py": "aa", "layers.py": "cc", "words.txt": "dd"})
    assert file_differences([NETWORK], [other], "torch-1.12", "torch-2.x") == (
        "the files of the network differ: layers.py (bb for torch-1.12, cc for torch-2.x), "
        "words.txt (only for torch-2.x)"
    )


def test_many_files_are_counted() -> None:
    other = json.dumps({f"{number}.py": "x" for number in range(9)})
    assert file_differences([""], [other], "a", "b").endswith("4.py (only for b), and 4 more")


def test_files_of_rounds_that_differ_among_themselves_are_unknown() -> None:
    assert "unknown" in file_differences([NETWORK, ""], [NETWORK], "a", "b")
