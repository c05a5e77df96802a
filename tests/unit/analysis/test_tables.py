"""Columns of text, and the records that tables are built of."""

import json

import pandas as pd
import pytest

from runner.analysis.tables import TableBuilder, Tables, _categories
from runner.core.model import Cell, Record
from runner.store.records import QUICK, StoredRecord, encode, record_of


def test_texts_are_those_of_each_value_even_of_values_that_are_equal() -> None:
    assert list(_categories(["b", None, "a", "b", ""])) == ["b", "", "a", "b", ""]
    assert list(_categories([1, True, 1.0, "1", None, {"b": 1}])) == ["1", "True", "1.0", "1", "", '{"b": 1}']
    assert list(_categories(["b", None, "a"]).categories) == ["", "a", "b"]


CELL = Cell(environment="torch-2.x", implementation="nn-lstm", workload="rnn-step", case="b1", phase="train")
MISSING: dict[str, object] = {}


@pytest.mark.parametrize("status", ["ok", "failed"])
@pytest.mark.parametrize(
    "facts",
    [
        MISSING,
        dict.fromkeys(("device", "precision", "release", "version", "framework", "host", "batch", "threads")),
        {"device": "cpu", "threads": 2, "cpus": [0, 1], "model_check": {"a": "b"}, "clock_mhz": [1, 2.5]},
        {"turns": [1, 2], "turns_with": "1/0", "version": "2.4", "precision": "tf32", "loss_error": 1e-7},
        {"turns": [1, 1], "turns_with": "1/0", "corpus": {"name": ["a", None]}, "held_sm_mhz": 1400},
    ],
)
def test_tables_are_the_same_of_a_quickly_read_record(status: str, facts: dict[str, object]) -> None:
    content = json.dumps(encode(record(status, facts), 1)).encode()
    quick = QUICK.decode(content)
    for of_quick, of_record in zip(tables(quick), tables(record_of(quick)), strict=True):
        pd.testing.assert_frame_equal(of_quick, of_record)
    good, bad = tables(quick)[1:]
    (row,) = (good if status == "ok" else bad).to_dict("records")
    assert row["device_name"] == ("a processor" if facts.get("device") == "cpu" else "")
    assert row["threads"] == str(facts.get("threads") or "")
    assert row["effective_precision"] == (facts.get("precision", "fp32") or "")


def record(status: str, facts: dict[str, object]) -> Record:
    return Record(
        cell=CELL,
        run="run",
        round=1,
        attempt=1,
        status="ok" if status == "ok" else "failed",
        failure=None if status == "ok" else "oom",
        reason=None,
        seconds=(0.5, 0.25, 0.25) if status == "ok" else (),
        warmup=(),
        compile_seconds=None,
        loss=(),
        reference_loss=(),
        facts=facts,
    )


def tables(stored: StoredRecord) -> Tables:
    builder = TableBuilder({"cpu": "a processor", "host": "a host"}, {"torch-2.x": {"release": "2.5"}})
    builder.add(stored)
    return builder.tables()
