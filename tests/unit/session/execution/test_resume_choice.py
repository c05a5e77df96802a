"""Which run is resumed, and which is not: finished ones, those of others at work, and what may be typed beside it."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import NothingSelectedError, UsageError
from runner.core.locks import hold
from runner.core.model import Measurement
from runner.session.execution.header import read_header
from runner.session.execution.resume import resumed
from runner.session.options import Options
from runner.session.stored_options import of_stored_plan
from runner.store.header import RunHeader
from runner.store.run import Run
from tests.support.fake_runs import make

TEXTS: dict[str, Any] = dict.fromkeys(("at", "backend", "device", "device_name", "matrix", "harness"), "")


def typed(reports: Path, *selectors: str) -> Options:
    return Options(reports=reports, selectors=list(selectors) or None)


def take_up(options: Options) -> None:
    with resumed(options, print):
        pass


def test_no_unfinished_run_is_nothing_selected(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(NothingSelectedError, match="is unfinished"):
            take_up(typed(tmp_path))
        make(tmp_path, []).note("ended", how="done")


def test_a_finished_run_is_not_resumed(tmp_path: Path) -> None:
    run = make(tmp_path, [])
    run.note("ended", how="done")
    with pytest.raises(NothingSelectedError, match=f"run {run.id} is finished"):
        take_up(typed(tmp_path, run.id))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(rounds=3), "without --rounds"),
        (Options(pin=True), "without --pin"),
        (Options(pin=False), "without --no-pin"),
        (Options(backend="host", python="/bin/python"), "without --backend, --python"),
        (Options(selectors=["a", "b"]), "takes one run"),
    ],
)
def test_what_cannot_be_typed_with_resume(options: Options, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        take_up(options)


def test_a_run_that_is_held_is_not_resumed(tmp_path: Path) -> None:
    run = make(tmp_path, [])
    with run.hold(), pytest.raises(UsageError, match=f"run {run.id} is in use by process"):
        take_up(typed(tmp_path))


def foreign(reports: Path, later: int) -> Run:
    """Make an unfinished run that is refused when it is chosen: its plan was changed since it started."""
    run = make(reports, [], later=later)
    header = RunHeader(**TEXTS, plan="another", measurement=Measurement(), driver=None, python=None, digests={})
    run.note("begun", **header.event())
    return run


def test_a_run_of_the_host_goes_on_with_its_framework(tmp_path: Path) -> None:
    header = RunHeader(
        **{**TEXTS, "backend": "host"},
        plan="p",
        measurement=Measurement(),
        driver=None,
        python="/p",
        digests={},
        framework="jax",
    )
    options = of_stored_plan(header, ["here"], typed(tmp_path))
    assert (options.backend, options.python, options.framework, options.name) == ("host", "/p", "jax", "here")
    assert header.event()["framework"] == "jax"
    run = make(tmp_path, [])
    older = {name: value for name, value in header.event().items() if name != "framework"}
    run.note("begun", **older)
    assert read_header(run).framework is None  # of an older program, which measured the first


def test_without_a_name_a_running_run_is_passed_over_and_named(tmp_path: Path) -> None:
    older, newer = foreign(tmp_path, 0), foreign(tmp_path, 5)
    lines: list[str] = []

    def chosen() -> str:
        with pytest.raises(UsageError, match="the plan of run") as caught, resumed(typed(tmp_path), lines.append):
            pass
        return caught.value.problems[0].message.split()[4]

    assert chosen() == newer.id
    assert lines == []
    with newer.hold():
        assert chosen() == older.id
        assert lines == [f"run {newer.id} is in use by process {os.getpid()} on {platform.node()}"]
    assert chosen() == newer.id


def test_a_run_that_ends_while_it_is_chosen_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older, newer = foreign(tmp_path, 0), foreign(tmp_path, 5)

    @contextmanager
    def late(run: Run) -> Iterator[None]:
        if run.id == newer.id:
            run.note("ended", how="done")
        yield

    monkeypatch.setattr(Run, "hold", late)
    with pytest.raises(UsageError, match=f"the plan of run {older.id} was changed"):
        take_up(typed(tmp_path))


def test_a_running_run_is_not_resumed_by_its_name(tmp_path: Path) -> None:
    foreign(tmp_path, 0)
    newer = foreign(tmp_path, 5)
    with newer.hold(), pytest.raises(UsageError, match=f"run {newer.id} is in use by process"):
        take_up(typed(tmp_path, newer.id))


def test_each_running_run_is_named_where_all_are_running(tmp_path: Path) -> None:
    others = [foreign(tmp_path, later) for later in (0, 5)]
    make(tmp_path, [], later=9).note("ended", how="done")
    with others[0].hold(), others[1].hold(), pytest.raises(UsageError) as caught:
        take_up(typed(tmp_path))
    assert [problem.message.split()[1] for problem in caught.value.problems] == [others[1].id, others[0].id]


def test_a_lock_goes_with_its_block(tmp_path: Path) -> None:
    for _ in range(2):
        with hold(tmp_path / "lock", "it"):
            pass
