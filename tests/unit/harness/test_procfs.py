"""The descendants of a process and their memory, as the kernel reports them."""

import os
from pathlib import Path

import pytest

from runner.harness import procfs


def write_children(folder: Path, children: dict[tuple[int, int], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Write what the kernel reports: the children that each thread of each process has started."""
    for (pid, thread), text in children.items():
        task = folder / str(pid) / "task" / str(thread)
        task.mkdir(parents=True)
        (task / "children").write_text(text + "\n")
    monkeypatch.setattr(procfs, "THREADS", str(folder / "{}/task"))
    monkeypatch.setattr(procfs, "CHILDREN", str(folder / "{}/task/{}/children"))


def test_descendants_are_listed_by_their_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children = {(1, 1): "2 3", (1, 9): "4", (2, 2): "5", (3, 3): "", (4, 4): "", (5, 5): ""}
    write_children(tmp_path, children, monkeypatch)
    assert sorted(procfs.descendants(1)) == [2, 3, 4, 5]
    assert procfs.descendants(3) == []


def test_excluded_processes_and_theirs_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children = {(1, 1): "2 3", (2, 2): "4", (3, 3): "5", (4, 4): "", (5, 5): ""}
    write_children(tmp_path, children, monkeypatch)
    assert procfs.descendants(1, {2}) == [3, 5]


def test_descendants_where_the_kernel_lists_no_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parents = {1: 0, 2: 1, 3: 1, 5: 2, 77: 0}
    for pid, parent in parents.items():
        (tmp_path / f"{pid}").write_text(f"{pid} (name) with ) S {parent} 1 1 0\n")
    monkeypatch.setattr(procfs, "CHILDREN", str(tmp_path / "{}/no/{}"))
    monkeypatch.setattr(procfs, "STATUS", str(tmp_path / "{}"))
    monkeypatch.setattr(os, "listdir", lambda _: ["self", "9", *map(str, parents)])
    assert sorted(procfs.descendants(1)) == [2, 3, 5]
    assert procfs.descendants(77) == []


def test_both_ways_to_list_children_agree_on_this_machine() -> None:
    parent = os.getppid()
    assert os.getpid() in procfs.descendants(parent)
    assert os.getpid() in procfs.children_by_parent()[parent]


def test_a_proportional_share_is_no_more_than_the_resident_set() -> None:
    assert 0 < procfs.proportional_bytes(os.getpid()) <= 1.05 * procfs.resident_bytes(os.getpid())
    assert procfs.proportional_bytes(2**22 + 1) == 0


def test_an_option_that_the_kernel_does_not_have_is_refused() -> None:
    assert not procfs.control(10**6, 1)
