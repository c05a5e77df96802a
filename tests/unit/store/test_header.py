"""Tests of the header of a run: the journal refuses a field of a wrong type, whichever it is."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from runner.core.model import Measurement
from runner.core.model.devices import ClockPolicy
from runner.store.header import RunHeader, header_of
from runner.store.journal import read
from runner.store.journal_writer import append
from tests.support.wrong_types import confused

HEADER = RunHeader(
    at="2026-11-20T10:45:00Z",
    plan="0123456789ab",
    measurement=Measurement(rounds=5, seconds=0.5, budget=60.0),
    backend="venv",
    device="GPU-1",
    device_name="H200",
    driver="580.65",
    matrix="matrix.yaml",
    python="/usr/bin/python3",
    clocks=ClockPolicy("base", 1593, force=True),
    pin=True,
    harness="9f3c",
    digests={"torch-1.0": "sha256:ab"},
    command=("torch-*", "--rounds", "5"),
    program="0.1.0",
    framework="torch",
    profile=True,
    locks={"torch-1.0": "/tmp/torch.lock"},
    executor="dask:host:8786",
    metrics=("memory", "import"),
)
EVENT: dict[str, Any] = json.loads(json.dumps(HEADER.event()))


def journal_with(folder: Path, fields: dict[str, Any]) -> Path:
    """Write a journal with a header, and a sound line after it."""
    path = folder / "journal.jsonl"
    path.unlink(missing_ok=True)
    append(path, "begun", fields)
    append(path, "ended", {"how": "done"})
    return path


def test_a_header_comes_back_as_it_was(tmp_path: Path) -> None:
    journal = read(journal_with(tmp_path, {**EVENT, "of_a_newer_program": [1]}))
    assert journal.warnings == ()
    assert header_of(journal.header) == HEADER


@pytest.mark.parametrize(
    "changed",
    [
        {"matrix": "a\0b"},
        {"python": "/usr/bin/python\0"},
        {"command": ["--model", "hf:a\0"]},
        {"locks": {"torch-1.0": "\0"}},
        {"as_is": {"mine": "python:\0"}},
        {"metrics": ["memory", "minutes"]},
    ],
)
def test_a_path_or_an_argument_with_a_nul_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    assert read(journal_with(tmp_path, {**EVENT, **changed})).header == {}


def test_each_field_of_a_wrong_type_is_refused(tmp_path: Path) -> None:
    refused = set()
    for name, changed in confused(EVENT):
        journal = read(journal_with(tmp_path, changed))
        assert journal.header == {}, name
        assert "1 line of the journal is damaged" in journal.warnings[0], name
        refused.add(name.partition(".")[0])
    assert refused == {field.name for field in fields(RunHeader)}


def test_a_header_without_a_field_is_read_but_is_no_whole_header(tmp_path: Path) -> None:
    journal = read(journal_with(tmp_path, {name: EVENT[name] for name in EVENT if name != "plan"}))
    assert journal.warnings == ()
    with pytest.raises(ValueError, match="plan is missing"):
        header_of(journal.header)
