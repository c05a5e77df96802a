"""What a server may send, and the sentence about anything else."""

import json
import math
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from runner.core import facts
from runner.core.bounds import open_dict
from runner.core.fact_types import STORED, typed_facts
from runner.core.facts import Fact, FactType
from runner.core.text import REASON_LENGTH
from runner.harness import protocol
from runner.measure import replies
from runner.measure.replies import with_facts
from runner.measure.reply_fields import LOG_LENGTH, SENT

MEASURED: dict[str, Any] = {
    "id": 3,
    "reply": "result",
    "status": "ok",
    "settles": True,
    "seconds": [0.5, 1],
    "warmup": [1.0],
    "turns": [1, 1],
    "leads": [0.6],
    "compile_seconds": 2.0,
    "loss": [3.0, None],
    "gradient_errors": {"a": 0.1, "b": None},
    "digest": "d1",
    "checked_case": {"hidden": 8},
    "cpus": [0, 1],
    "clock_mhz": [1000.0, 2000.0, 3000.5],
    "steady": True,
    "log": "one\ntwo",
}


def test_a_sound_reply_keeps_the_fields_that_are_known() -> None:
    checked = replies.check({**MEASURED, "turns_with": "1/0", "new": [1]}, "measure")
    assert checked == {name: value for name, value in MEASURED.items() if name != "id"}


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("status", "tired", "status = 'tired', expected 'ok' or 'failed'"),
        ("seconds", 5, "seconds = 5, expected a list"),
        ("seconds", ["0.5"], "seconds.0 = '0.5', expected a number"),
        ("seconds", [True], "seconds.0 = True, expected a number"),
        ("seconds", [-1.0], "seconds.0 = -1.0, expected greater than or equal to 0"),
        ("seconds", [float("nan")], "seconds.0 = nan, expected a finite number"),
        ("seconds", [float("inf")], "seconds.0 = inf, expected a finite number"),
        ("seconds", [0.5, None], "seconds.1 = None, expected a number"),
        ("loss", 5, "loss = 5, expected a list"),
        ("compile_seconds", "x", "compile_seconds = 'x', expected a number"),
        ("forward_error", "boo", "forward_error = 'boo', expected a number"),
        ("gradient_errors", {"a": "b"}, "gradient_errors.a = 'b', expected a number"),
        ("throttled", "text", "throttled = 'text', expected a integer"),
        ("turns", [[1]], "turns.0 = [1], expected a integer"),
        ("batch", 0, "batch = 0, expected greater than or equal to 1"),
        ("log", {"a": 1}, "log = {'a': 1}, expected a string"),
        ("settles", "yes", "settles = 'yes', expected a boolean"),
        ("clock_mhz", [1.0], "clock_mhz = [1.0], expected List should have at least 3 items after"),
    ],
)
def test_a_wrong_shape_is_refused_with_the_field_and_what_is_expected(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        replies.check({**MEASURED, field: value}, "measure")
    assert str(caught.value).startswith(sentence)


def test_numbers_that_no_float_holds_are_refused() -> None:
    huge = int("9" * 400)
    with pytest.raises(ValueError, match=r"seconds\.0 = 9999.*, expected a number"):
        replies.check({**MEASURED, "seconds": [huge]}, "measure")
    with pytest.raises(ValueError, match="expected numbers that are not too large"):
        replies.check({"status": "ok", "facts": {"a": [huge]}}, "hello")


@pytest.mark.parametrize("missing", ["status", "class", "reason"])
def test_a_failure_has_a_status_a_class_and_a_reason(missing: str) -> None:
    failed = {"status": "failed", "class": "oom", "reason": "too large", "log": ""}
    assert replies.check(failed, "measure") == failed
    with pytest.raises(ValueError, match=f"without {missing}|without a class and a reason"):
        replies.check({name: value for name, value in failed.items() if name != missing}, "measure")


@pytest.mark.parametrize("kind", ["image-build", "engine", "tired", ["x"], None])
def test_a_class_that_no_server_knows_of_is_refused(kind: object) -> None:
    with pytest.raises(ValueError, match="class"):
        replies.check({"status": "failed", "class": kind, "reason": "why"}, "measure")


def test_reason_log_and_names_are_printable_and_bounded() -> None:
    failed = {"status": "failed", "class": "oom", "reason": "\x1b[2J" + "r" * 10**6, "log": "l" * 10**6 + "\n\x07"}
    checked = replies.check({**failed, "gradient_errors": {"\x1b[0m": 1.0}}, "measure")
    assert len(checked["reason"]) == REASON_LENGTH
    assert checked["reason"].startswith("\\x1b[2Jrrr")
    assert checked["log"].endswith("lll\n\\x07")
    assert len(checked["log"]) < 2 * LOG_LENGTH
    assert checked["gradient_errors"] == {"\\x1b[0m": 1.0}


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


FACTS = {"version": "1.0", "blas": "MKL\x1b", "n": {"a": [1, None, True, 0.5]}}
HELLO = {"status": "ok", "facts": FACTS, "packages": {"numpy": "2.0", "odd": None}, "bytes": 5, "python": "3.6.1"}


def test_a_sound_hello_is_kept() -> None:
    assert replies.check(HELLO, "hello") == {**HELLO, "facts": {**FACTS, "blas": "MKL\\x1b"}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("facts", 3),
        ("facts", {"a": nested(900)}),
        ("facts", {"a": "x" * 1000, "b": [1] * 10**6}),
        ("facts", {"version": 5}),
        ("facts", dict.fromkeys(map(str, range(10**5)))),
        ("bytes", "x"),
        ("bytes", -1),
        ("packages", {"a": 1}),
        ("python", 3),
        ("import_seconds", None),
        ("import_cpu_seconds", -1.0),
    ],
)
def test_a_hello_has_facts_of_bounded_depth_and_size(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{field}"):
        replies.check({**HELLO, field: value}, "hello")


@pytest.mark.parametrize("cold", [{"x": 1.0}, {"0": "x"}, {"-1": 1.0}, [1.0], {"0": float("inf")}])
def test_cold_cells_have_indices_and_seconds(cold: object) -> None:
    assert replies.check({"status": "ok", "cold": {"12": 5}}, "cold")["cold"] == {"12": 5.0}
    with pytest.raises(ValueError, match=r"^cold"):
        replies.check({"status": "ok", "cold": cold}, "cold")


def test_only_a_request_with_turns_is_answered_by_one() -> None:
    turn = {"id": "3", "reply": "turn", "stage": "built"}
    assert replies.check(turn, "measure", turns=True) == turn
    with pytest.raises(ValueError, match="reply = 'turn', expected 'result'"):
        replies.check(turn, "measure")
    with pytest.raises(ValueError, match="stage"):
        replies.check({**turn, "stage": "tired"}, "measure", turns=True)


@pytest.mark.parametrize(
    "changes",
    [{"calls": -1}, {"calls": 1.5}, {"batch": 0}, {"batch": 1001}, {"step": 0.0}, {"step": 1e9}, {"step": math.nan}],
)
def test_the_pace_of_a_child_is_one_that_can_be_planned_with(changes: dict[str, float]) -> None:
    warm = {"id": "3", "reply": "turn", "stage": "warm", "pace": {"calls": 30, "batch": 1, "step": 0.001}}
    assert replies.check(warm, "measure", turns=True) == warm
    with pytest.raises(ValueError, match=r"^pace"):
        replies.check({**warm, "pace": {**warm["pace"], **changes}}, "measure", turns=True)  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "line", [b"", b"hello", b"[1]", b'"x"', b"\xff", b"[" * 200_000, b'{"a": ' + b"9" * 5000 + b"}"]
)
def test_what_is_no_json_object_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="something that is not its protocol"):
        replies.parse(line)


@pytest.mark.parametrize("item", [b"0", b"[]", b"{}", b'{"a":0}'])
def test_a_line_of_many_values_is_not_parsed(item: bytes) -> None:
    line = b'{"seconds": [' + b",".join([item] * (replies.MAX_VALUES + 1)) + b"]}"
    with pytest.raises(ValueError, match="more than 1500000 values"):
        replies.parse(line)


WORDS = st.text("ab0\x1b\n\u202e\ud800", max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
MEASURED_REPLY = replies.RESULTS["measure"]
FIELDS = sorted({*MEASURED_REPLY.model_fields, *replies.Hello.model_fields, "cold", "class", "stage", "reply"})


def answer(reply: dict[str, Any], op: str) -> str:
    """Return what was wrong with a reply; of one that was accepted, its line."""
    try:
        return protocol.encode(replies.check(reply, op)).decode().rstrip()
    except ValueError as error:
        return str(error)[:REASON_LENGTH]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6), st.sampled_from(sorted(replies.RESULTS)))
def test_any_reply_is_either_checked_or_refused_with_a_sentence(reply: dict[str, Any], op: str) -> None:
    for base in ({}, {"status": "ok"}, {"status": "failed", "class": "crash", "reason": "x"}):
        text = answer({**base, **reply}, op)
        assert text.isprintable()
        assert not text.startswith("{") or json.loads(text)["status"] in {"ok", "failed"}


@pytest.mark.parametrize(
    ("kind", "value", "wrong"),
    [
        ("seconds", 0.5, -1.0),
        ("number", -0.5, "x"),
        ("count", 3, 0.5),
        ("amount", 3, "3"),
        ("positive", 2, 0),
        ("flag", True, 1),
        ("text", "a", 1),
        ("texts", ["a"], ["a", 1]),
        ("integers", [1, 2], [1, "2"]),
        ("samples", [0.5], [0.5, "x"]),
        ("errors", {"a": 0.5, "b": None}, {"a": "x"}),
        ("clocks", [1.0, 2.0, 3.0], [1.0, "x", 3.0]),
    ],
)
def test_a_line_in_the_table_is_all_that_a_new_fact_takes(kind: FactType, value: object, wrong: object) -> None:
    table = (*facts.FACTS, Fact("chip_age", "harness", type=kind))
    reply = with_facts(table)
    assert reply.model_validate({"status": "ok", "chip_age": value}).model_dump()["chip_age"] == value
    with pytest.raises(ValidationError, match="chip_age"):
        reply.model_validate({"status": "ok", "chip_age": wrong})
    stored = TypeAdapter(open_dict("Facts", typed_facts(table)))
    assert stored.validate_python({"chip_age": value, "other": [1]}) == {"chip_age": value, "other": [1]}
    if kind != "seconds":  # a stored time may be negative: the clock of an older program was set back
        with pytest.raises(ValidationError, match="chip_age"):
            stored.validate_python({"chip_age": wrong})
    assert "chip_age" not in MEASURED_REPLY.model_fields


def test_the_shape_of_each_type_is_in_both_tables() -> None:
    types = set(get_args(FactType))
    assert set(STORED) == types - {"any"}
    assert set(SENT) == types - {"server", "label"}  # the runner's own


@pytest.mark.parametrize(
    ("field", "value"),
    [("loss_error", 1e308), ("load", -1e301), ("gradient_errors", {"a": 1e301}), ("arithmetic", [2**54])],
)
def test_numbers_that_the_store_cannot_read_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        replies.check({**MEASURED, field: value}, "measure")
    assert replies.check({**MEASURED, "arithmetic": [2**53, 1e300]}, "measure")["arithmetic"] == [2**53, 1e300]
