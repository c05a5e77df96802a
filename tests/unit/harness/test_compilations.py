"""What a compiler counts, in the spans in which a program is built, called and timed."""

import sys
from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness.adapters.base import Implementation
from runner.harness.adapters.torch import dynamo
from runner.harness.adapters.torch.modules import MODULES
from runner.harness.compilations import MAX_REASONS, REASON_LENGTH, Compilations


class Compiler:
    """Counts as TorchDynamo does."""

    def __init__(self) -> None:
        """Count from nothing."""
        self.counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.reasons: list[SimpleNamespace] = []
        self.frames = Counter[int]()

    def compile(self, frame: int, *reasons: str) -> None:
        """Compile a frame, whose graph is broken for some reasons."""
        self.counters["frames"]["total"] += 1
        self.counters["stats"]["unique_graphs"] += 1 + len(reasons)
        self.reasons += [SimpleNamespace(reason=reason, graph_break=True) for reason in reasons]
        self.reasons.append(SimpleNamespace(reason="return_value", graph_break=False))
        self.frames[frame] += 1


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    made = Compiler()
    monkeypatch.setitem(
        sys.modules, "torch._dynamo.utils", SimpleNamespace(counters=made.counters, graph_break_reasons=made.reasons)
    )
    frames = SimpleNamespace(FRAME_COMPILE_COUNTER=made.frames)
    monkeypatch.setitem(sys.modules, "torch._dynamo.convert_frame", frames)
    return made


def test_graphs_breaks_and_recompilations_of_the_spans_are_added_up(compiler: Compiler) -> None:
    compilations = Compilations(dynamo.counts)
    compiler.compile(0, "print() is no graph\n  Explanation: it writes", "a branch on data")
    compilations.end()
    compiler.compile(0, "of a check")
    compiler.compile(1)
    compilations.begin()
    compiler.compile(1)
    compiler.compile(2, "a branch on data")
    compilations.end()
    assert compilations.facts() == {
        "compiled_graphs": 3 + 1 + 2,
        "graph_breaks": 3,
        "graph_break_reasons": ["a branch on data", "print() is no graph"],
        "recompilations": 1,
    }


def test_a_program_that_compiles_nothing_has_no_facts(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    compilations = Compilations(dynamo.counts)
    compilations.end()
    assert not compilations.facts()
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils")
    compilations.end()
    assert not compilations.facts()
    assert "torch._dynamo.utils" not in sys.modules


def test_the_first_releases_do_not_count_recompilations(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["torch._dynamo.convert_frame"], "FRAME_COMPILE_COUNTER")
    compilations = Compilations(dynamo.counts)
    compiler.compile(0)
    compilations.end()
    assert compilations.facts() == {"compiled_graphs": 1, "graph_breaks": 0, "graph_break_reasons": []}


def test_reasons_are_few_and_short(compiler: Compiler) -> None:
    compilations = Compilations(dynamo.counts)
    compiler.compile(0, *(f"{number} {'x' * 1000}" for number in range(20)), "")
    compilations.end()
    facts: dict[str, Any] = compilations.facts()
    assert facts["graph_breaks"] == 21
    assert len(facts["graph_break_reasons"]) == MAX_REASONS
    assert max(map(len, facts["graph_break_reasons"])) == REASON_LENGTH


def test_a_release_that_counts_otherwise_gives_no_facts(compiler: Compiler) -> None:
    compilations = Compilations(dynamo.counts)
    compiler.compile(0)
    compiler.counters["stats"] = None  # type: ignore[assignment]
    compilations.end()
    assert not compilations.facts()


def test_each_program_of_pytorch_asks_dynamo_and_others_nobody() -> None:
    assert {module.compilations for module in MODULES} == {dynamo.counts}
    assert not Implementation.compilations()
