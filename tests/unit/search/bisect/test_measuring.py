"""A step of a bisect builds its releases once, and announces them once."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from runner.core.progress import Progress
from runner.search.bisect.measuring import Measuring
from runner.session import execution


@dataclass(frozen=True)
class FakePlan:
    """The part of a plan that building reads and changes."""

    specs: tuple[str, ...]
    survey: SimpleNamespace


def test_what_a_step_has_built_is_there_for_the_run_that_measures_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[str] = []

    def build(prepared: FakePlan, *_: object) -> tuple[dict[str, object], dict[str, object]]:
        there.extend(prepared.specs)
        return {}, {}

    monkeypatch.setattr(execution, "build", build)
    backend = SimpleNamespace(survey=lambda specs: SimpleNamespace(cached=frozenset(there) & frozenset(specs)))
    state = SimpleNamespace(built=[], save=lambda: None)
    measuring = Measuring(
        context=SimpleNamespace(backend=backend),  # type: ignore[arg-type]
        state=state,  # type: ignore[arg-type]
        cell="",
        progress=Progress(lambda _: None),
    )
    base, other = (SimpleNamespace(name=name, source="index") for name in ("jax-0.9.1", "jax-0.9.2"))
    plan = FakePlan((base.name, other.name), backend.survey([]))
    built = measuring._built(plan, base, other)  # type: ignore[arg-type]
    assert plan.survey.cached == frozenset()
    assert built.survey.cached == {"jax-0.9.1", "jax-0.9.2"}
    assert state.built == ["jax-0.9.1", "jax-0.9.2"]
