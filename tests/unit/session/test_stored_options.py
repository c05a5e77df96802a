"""The way back from a run to its options: what is proposed after a run repeats all that was typed for it."""

import dataclasses
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.paths import shortened
from runner.session.options import Options
from runner.session.stored_options import of_stored_plan, typed
from runner.session.suggest import RunAgain
from runner.store.header import header_of

CELL = "torch-1.0/lstm/rnn-step/lstm-b32-h128/train/fp32"
PROPOSED = {"selectors", "workload", "rounds", "max_rounds", "seconds"}
"""What a proposed command is about: the cells to measure again, and for how long."""
WORDS = st.text("abz09 '-:.,é", min_size=1).map(lambda text: f"x{text}")
BY_TYPE: Mapping[object, st.SearchStrategy[Any]] = {
    str: WORDS,
    Path: WORDS.map(lambda text: Path("some folder", text)),
    int: st.integers(min_value=0, max_value=1 << 40),
    float: st.floats(min_value=0.01, max_value=1e5),
    bool: st.booleans(),
}
NAMES: Mapping[str, st.SearchStrategy[Any]] = {
    "model": st.lists(
        st.sampled_from(["my_network.py", "nets/encoder.py", "nets.py:UNet(3, n='a b')", "timm:resnet18"]), min_size=1
    ),
    "input": st.lists(st.sampled_from(["1x3x64x64", "8x128:int64<1000", "8:bool"]), min_size=1),
}


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a type; an option of a new type needs a line in BY_TYPE."""
    if annotation in BY_TYPE:
        return BY_TYPE[annotation]
    if annotation is type(None):
        return st.none()
    parts = get_args(annotation)
    if get_origin(annotation) is list:
        return st.lists(values(parts[0]), min_size=1)
    if str(annotation).startswith("typing.Literal"):
        return st.sampled_from(parts)
    return st.one_of(*map(values, parts))


OPTIONS = st.builds(
    Options,
    **{
        field.name: st.none() | NAMES[field.name] if field.name in NAMES else values(get_args(field.type)[0])
        for field in dataclasses.fields(Options)
    },
)


def header(options: Options, **fields: object) -> dict[str, Any]:
    """Return what the header of a run has of the options that were typed for it."""
    command = list(map(shortened, options.to_argv()))
    return {"program": "0.1.0", "command": command, "matrix": str(options.matrix.absolute()), **fields}


def proposed(options: Options, header: Mapping[str, Any], **plan: object) -> Options:
    """Return the options of the command that measures a cell of a run again, as a shell would read it."""
    document = {"rounds": 3, "seconds": 0.5, "cells": [{"environment": "torch-1.0"}], **plan}
    program, command, *words = shlex.split(RunAgain(document, header, options.reports).command([CELL], rounds=9))
    assert (program, command) == ("runner", "run")
    return Options.of_argv(words)


@given(OPTIONS)
def test_options_are_read_back_from_arguments(options: Options) -> None:
    assert Options.of_argv(options.to_argv()) == options


@given(OPTIONS)
def test_what_is_proposed_after_a_run_repeats_all_that_was_typed(options: Options) -> None:
    again = proposed(options, header(options))
    for field in dataclasses.fields(Options):
        if field.name not in {*PROPOSED, "upgrade"}:
            before, after = getattr(options, field.name), getattr(again, field.name)
            assert after == before or field.name == "matrix", field.name
    assert again.matrix.absolute() == options.matrix.absolute()
    assert (again.rounds, again.seconds, again.selectors) == (9, 0.5, [CELL])
    assert not again.upgrade  # the cell is that of the locks of the run


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("--max-rounds 3", None),
        ("--max-rounds 40", 40),
    ],
)
def test_the_limit_of_rounds_is_repeated_where_it_is_above_the_proposed_rounds(words: str, kept: int | None) -> None:
    options = Options.of_argv(words.split())
    assert proposed(options, header(options)).max_rounds == kept


@pytest.mark.parametrize("words", ["", "--process fork"])
def test_a_way_of_starting_is_proposed_once(words: str) -> None:
    options = Options.of_argv(words.split())
    document = {"rounds": 3, "seconds": 0.5, "cells": [{"environment": "torch-1.0"}]}
    again = RunAgain(document, header(options), options.reports).in_plain_processes([CELL])
    assert again.split().count("--process") == 1
    assert Options.of_argv(shlex.split(again)[2:]).process == "plain"


def test_files_of_the_home_folder_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    options = Options(corpus=Path("/home/ann/text.txt"), python="/home/ann/venv/bin/python")
    known = header(options)
    assert "~/text.txt" in known["command"]
    assert typed(known, []) == options


def test_a_workload_of_the_matrix_is_selected_beside_a_network() -> None:
    options = Options(model=["my_network.py"], workload=["rnn-step"])
    assert proposed(options, header(options)).workload == ["rnn-step"]  # --model alone selects the network alone


def test_a_workload_that_is_named_after_a_class_is_selected_by_its_name() -> None:
    options = Options(model=["nets.py:UNet(3)"], input=["1x3x64x64", "8:int64<2"])
    cell = "torch-1.0/model/unet/1x3x64x64_8-int64/train/fp32"
    document = {"rounds": 3, "seconds": 0.5, "cells": [{"environment": "torch-1.0"}]}
    command = RunAgain(document, header(options), options.reports).command([cell])
    assert "--model 'nets.py:UNet(3)' --input 1x3x64x64 --input '8:int64<2'" in command
    assert Options.of_argv(shlex.split(command)[2:]).workload is None


def test_what_was_chosen_and_not_typed_is_proposed() -> None:
    assert proposed(Options(), header(Options(), python="/p"), backend="host").python == "/p"
    assert proposed(Options(), header(Options()), backend="venv").backend == "venv"
    assert proposed(Options(), header(Options()), backend="docker").backend == "auto"


OLDER: tuple[Callable[[dict[str, Any]], object], ...] = (
    lambda fields: fields.update(program="", command=[]),
    lambda fields: fields.update(command=["--an-option-that-is-gone", "1"]),
    lambda fields: fields.update(command=["--rounds", "many"]),
)


@pytest.mark.parametrize("change", OLDER)
def test_a_run_without_options_of_this_program_is_measured_again_by_its_facts(
    change: Callable[[dict[str, Any]], object],
) -> None:
    fields = header(Options(threads="1"), backend="host", python="/p", framework="jax")
    change(fields)
    expected = Options(backend="host", python="/p", framework="jax", name="here")
    assert typed(fields, ["here@twin", "here"]) in (expected, dataclasses.replace(expected, name="here~twin"))


@given(OPTIONS)
def test_a_stored_plan_is_measured_without_the_files_and_the_selection_that_it_has(options: Options) -> None:
    fields: dict[str, Any] = {
        "at": "",
        "plan": "",
        "measurement": {},
        "device_name": "",
        "driver": None,
        "harness": "",
        "digests": {},
    }
    stored = header_of({**fields, **header(options), "backend": "venv", "device": "cpu", "python": None})
    again = of_stored_plan(stored, ["torch-1.0"], Options(reports=Path("here"), busy_ok=True))
    assert (again.model, again.input, again.corpus, again.preset, again.rounds) == (None, None, None, None, None)
    assert (again.selectors, again.device, again.backend) == (["torch-1.0"], "cpu", "venv")
    first = options.threads and options.threads.partition(",")[0]  # further counts are environments of the plan
    assert (again.threads, again.allow_jit, again.pin) == (first, options.allow_jit, options.pin)
    assert (again.reports, again.busy_ok, again.matrix) == (Path("here"), True, options.matrix.absolute())
    assert not again.upgrade


def test_what_exists_is_named_again_by_what_it_is() -> None:
    fields: dict[str, Any] = {
        **header(Options(selectors=["python:/opt/a/bin/python", "numpy==2.3.0"], framework="jax", threads="1,2")),
        **dict.fromkeys(("at", "plan", "device_name", "harness"), ""),
        "measurement": {},
        "digests": {},
        **dict.fromkeys(("driver", "python")),
        "backend": "venv",
        "device": "cpu",
        "as_is": {"a": "python:/opt/a/bin/python"},
    }
    again = of_stored_plan(header_of(fields), ["a@env:A=1", "a", "numpy-2.3.0", "a@twin"], Options())
    word = "a=python:/opt/a/bin/python"
    assert again.selectors == [f"{word}@env:A=1", word, "numpy==2.3.0"]
    assert (again.framework, again.threads) == ("jax", "1")


def test_a_proposed_command_names_what_no_matrix_file_has() -> None:
    options = Options(selectors=["python:/opt/a/bin/python", "numpy==2.3.0", "torch-1.0"])
    fields = header(options, as_is={"a": "python:/opt/a/bin/python"})
    cells = [f"{name}/numpy-loop/rnn-step/c{number}/train/fp32" for name in ("a", "numpy-2.3.0") for number in (1, 2)]
    document = {"rounds": 3, "seconds": 0.5, "cells": [{"environment": "a"}, {"environment": "numpy-2.3.0"}]}

    def words(*cells: str) -> list[str] | None:
        command = RunAgain(document, fields, options.reports).command(cells)
        return Options.of_argv(shlex.split(command)[2:]).selectors

    tail = cells[0].removeprefix("a/")
    assert words(cells[0], cells[2]) == [f"a=python:/opt/a/bin/python/{tail}", f"numpy==2.3.0/{tail}"]
    many = [cell.replace("/c1/", f"/c{number}/") for number in range(20) for cell in (cells[0], cells[2])]
    assert words(*many) == ["a=python:/opt/a/bin/python", "numpy==2.3.0"]
    assert words("torch-1.0/nn-lstm/rnn-step/c1/train/fp32") == ["torch-1.0/nn-lstm/rnn-step/c1/train/fp32"]
