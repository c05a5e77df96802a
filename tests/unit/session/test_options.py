"""Options as arguments: what ``to_argv`` gives, the command line reads back as the same options."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from runner import cli
from runner.session.options import Options

VALUES: dict[str, Any] = {
    "selectors": ["torch-*", "!*/lstm-cell/*"],
    "matrix": Path("my matrix.yaml"),
    "reports": Path("elsewhere"),
    "workload": ["rnn-step", "asr-lstm"],
    "model": ["my_network.py", "nets.py:UNet(3, name='a b')"],
    "input": ["1x3x64x64", "8x128:int64<1000"],
    "preset": "quick",
    "phase": ["compile", "train"],
    "precision": ["fp32", "int8"],
    "device": "cuda:0,1",
    "backend": "host",
    "python": "/usr/bin/python3",
    "framework": "jax",
    "name": "laptop",
    "all": True,
    "rounds": 5,
    "max_rounds": 9,
    "budget": "30m",
    "seconds": 0.25,
    "threads": "1,2,4",
    "env": ["XLA_FLAGS=--a --b=/c", "EMPTY="],
    "protocol": "published",
    "process": "plain",
    "seed": 0,
    "corpus": Path("text.txt"),
    "allow_jit": True,
    "pin": False,
    "busy_ok": True,
    "profile": True,
    "upgrade": True,
    "traceback": True,
}


def read(arguments: list[str]) -> Options:
    """Return the options that `runner plan` takes from arguments."""
    command = vars(get_command(cli.app))["commands"]["plan"]
    parameters = command.make_context("runner plan", list(arguments)).params
    values = {field.name: parameters[field.name] for field in dataclasses.fields(Options)}
    lists = {name: list(value) or None for name, value in values.items() if isinstance(value, tuple)}
    return Options(**{**values, **lists})


def test_the_table_has_a_value_for_each_option() -> None:
    assert set(VALUES) == {field.name for field in dataclasses.fields(Options)}
    assert not [field.name for field in dataclasses.fields(Options) if VALUES[field.name] == field.default]


@pytest.mark.parametrize("name", VALUES)
def test_an_option_is_read_back(name: str) -> None:
    options = dataclasses.replace(Options(), **{name: VALUES[name]})
    assert options.to_argv()
    assert read(options.to_argv()) == options


@pytest.mark.parametrize(("pin", "arguments"), [(None, []), (True, ["--pin"]), (False, ["--no-pin"])])
def test_pinning_has_three_states(*, pin: bool | None, arguments: list[str]) -> None:
    assert Options(pin=pin).to_argv() == arguments
    assert read(arguments).pin is pin


def test_all_options_together_are_read_back() -> None:
    options = Options(**VALUES)
    assert read(options.to_argv()) == options


def test_defaults_give_no_arguments() -> None:
    assert Options().to_argv() == []
