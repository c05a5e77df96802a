"""The short run of CI: the kept inputs of every target, and some new ones, the same in each run."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from runner.core.errors import RecordError
from tests.fuzz import limits
from tests.fuzz.draws import Draws
from tests.fuzz.edits import Edit, draw_bytes, draw_edit, edited
from tests.fuzz.engine import Totals, generate, keep, shorter
from tests.fuzz.examples import reply
from tests.fuzz.strategies import GENERATORS, inputs
from tests.fuzz.targets import TARGETS, corpus, from_bytes
from tests.fuzz.values import RAW, to_json

EXAMPLES = {
    "matrix": 150,
    "planning": 25,
    "machine": 60,
    "document": 100,
    "folder": 60,
    "wire": 400,
    "session": 20,
    "database": 60,
    "model": 60,
    "typed": 300,
}
"""Target -> new inputs; some seconds for each target on a slow machine."""
KEPT = [(target, name, value) for target in TARGETS for name, value in corpus(target)]


@pytest.mark.parametrize(
    ("target", "value"),
    [(target, value) for target, _, value in KEPT],
    ids=[f"{target}-{name}" for target, name, _ in KEPT],
)
def test_what_once_broke_something_does_so_no_more(target: str, value: Any) -> None:
    trial = limits.attempt(TARGETS[target], value)
    assert trial.broken is None, trial.broken.traceback or trial.broken.message


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_takes_inputs_that_are_almost_right(target: str) -> None:
    @settings(
        max_examples=EXAMPLES[target],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs(target))
    def holds(value: Any) -> None:
        trial = limits.attempt(TARGETS[target], value)
        assert trial.broken is None, trial.broken.traceback or trial.broken.message

    holds()


@pytest.mark.parametrize("target", TARGETS)
def test_not_every_input_is_rejected(target: str) -> None:
    values = generate(target, 3, [])
    assert any(not limits.attempt(TARGETS[target], next(values)).rejected for _ in range(60))


def _raise(error: BaseException) -> Callable[[object], None]:
    def target(_value: object) -> None:
        raise error

    return target


def test_an_error_for_people_is_allowed_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.attempt(_raise(RecordError("damaged")), 1).rejected
    broken = limits.attempt(_raise(KeyError("status")), 1).broken
    assert broken is not None
    assert (broken.what, broken.message) == ("KeyError", "'status'")
    monkeypatch.setattr(limits, "SECONDS", 0.0)
    slow = limits.attempt(lambda _: sum(range(100_000)), 1).broken
    assert slow is not None
    assert slow.what == "slow"
    monkeypatch.setattr(limits, "WAIT_SECONDS", 0.01)
    hang = limits.attempt(_for_ever, 1).broken
    assert hang is not None
    assert hang.what == "hang"


def _for_ever(_value: object) -> None:
    while True:
        try:
            _for_a_while()
        except Exception:  # noqa: BLE001  the program may catch what it likes
            continue


def _for_a_while() -> None:
    for _ in range(1000):
        pass


def test_more_memory_than_allowed_is_a_breakage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BYTES", 10**7)
    assert limits.attempt(lambda _: None, 1).broken is None
    broken = limits.attempt(lambda _: bytearray(b"x") * (3 * 10**7), 1).broken
    assert broken is not None
    assert broken.what == "memory"


def test_edits_change_a_copy_and_ignore_paths_that_are_not_there() -> None:
    document = {"a": [1, 2], "b": {"c": 3}}
    edits: list[Edit] = [
        ["set", ["a", 0], 9],
        ["delete", ["b", "x"], None],
        ["rename", ["b", "c"], "d"],
        ["repeat", ["a"], 2],
        ["wrap", ["b"], None],
        ["set", ["a", 7], 1],
    ]
    assert edited(document, edits) == {"a": [9, 2, 9, 2], "b": [{"d": 3}]}
    assert edited(document, [["swap", ["a"], ["b", "c"]]]) == {"a": 3, "b": {"c": [1, 2]}}
    assert document == {"a": [1, 2], "b": {"c": 3}}


def test_draws_of_a_seed_repeat_and_reach_every_kind_of_edit() -> None:
    kinds = {draw_edit(Draws.from_seed(seed), reply())[0] for seed in range(200)}
    assert kinds == {"set", "delete", "rename", "repeat", "wrap", "swap"}
    for generator in GENERATORS.values():
        assert generator(Draws.from_seed(5)) == generator(Draws.from_seed(5))
        assert generator(Draws.from_bytes(b"")) == generator(Draws.from_bytes(b"\x00" * 99))
    assert draw_bytes(Draws.from_bytes(b"\x00" * 9), b"abc", (b"x",)) == b""


def test_marks_become_text_that_json_dumps_does_not_write() -> None:
    assert to_json({"a": ["@raw:overflow", "@raw:x"]}) == '{"a": [1e999, "@raw:x"]}'
    assert len(to_json("@raw:digits")) == len(RAW["digits"]) > 4300


def test_totals_count_by_place_and_keep_the_shortest_input(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(value: Any) -> None:
        if any(change == [1] for change in value["changes"]):
            raise TypeError("broken")

    monkeypatch.setitem(TARGETS, "wire", breaks)
    totals = Totals("wire")
    for changes in ([[0], [1], [2]], [[2]], [[1]]):
        totals.try_input({"changes": changes})
    (count, broken, value) = next(iter(totals.broken.values()))
    assert (totals.inputs, count, broken.what, value) == (3, 2, "TypeError", {"changes": [[1]]})
    assert "2 broke something in 1 places" in next(totals.lines())
    keep(totals, tmp_path)
    kept = next(tmp_path.glob("*.json"))
    assert from_bytes("wire", kept.read_bytes()) == {"changes": [[1]]}


def test_bytes_are_made_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(content: bytes) -> None:
        if b"!" in content:
            raise TypeError("broken")

    monkeypatch.setitem(TARGETS, "matrix", breaks)
    broken = limits.attempt(breaks, b"a!b").broken
    assert broken is not None
    assert shorter("matrix", b"abcdefgh!ijklmnop", broken.key) == b"!"
