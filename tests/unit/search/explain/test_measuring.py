"""A run of candidates: what is planned, which stored run continues, and what is removed afterwards."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.analysis.analyse import analyse_run
from runner.core.errors import OutageError, Problem, ProvisionError
from runner.core.machine import Capacity
from runner.core.model import Cell
from runner.core.progress import Progress
from runner.matrix import Environment, load
from runner.search.explain import measuring as module
from runner.search.explain.candidates import Candidate
from runner.search.explain.measuring import LOCKS, ROUNDS, CandidateMeasuring
from runner.search.explain.packages import End
from runner.search.explain.question import ExplainCase
from runner.search.explain.state import ExplainQuestion, ExplainState
from runner.session.context import Context
from runner.session.options import Options
from runner.session.plan_request import plan_request
from runner.session.preparation import RunSettings
from tests.support.fake_runs import bad, cell, make, rounds

ROOT = Path(__file__).parents[4]
CELL = "numpy-loop/rnn-step/rnn-b32-h128/forward/fp32"
SWITCH = Candidate(name="one-arena", kind="switch", change="MALLOC_ARENA_MAX=1", variables={"MALLOC_ARENA_MAX": "1"})
PACKAGE = Candidate(name="scipy-1", kind="package", change="scipy 1", pins=("scipy==1",))


def end(name: str) -> End:
    environment = Environment(framework="numpy", release="2.0.0", python="3.11", requirements=("numpy==2.0.0", "scipy"))
    return End(name=name, environment=environment, release="2.0.0", lock=None)


def measuring(folder: Path, *selectors: str) -> CandidateMeasuring:
    """Return what measures two releases of NumPy, with nothing that starts a process."""
    old, new = end("numpy-old"), end("numpy-new")
    shipped = load(ROOT / "matrix.yaml", networks=False)
    matrix = shipped.with_environments({each.name: each.environment for each in (old, new)}, {}, {})
    options = Options(selectors=[new.name, old.name, *selectors])
    request = plan_request(options, matrix, "venv", ("cpu", ()), Capacity(cores=2, memory=8 << 30, glibc=None))
    settings = RunSettings(file=ROOT / "matrix.yaml", reports=folder, cache=folder, controls=True)
    context = Context(matrix=matrix, request=request, backend=SimpleNamespace(), settings=settings, gpus=())
    question = ExplainQuestion(cell=CELL, good="old", bad="new", device="cpu", backend="venv", metric="memory")
    case = ExplainCase(context=context, question=question, good=old, bad=new, candidates=(SWITCH, PACKAGE))
    state = ExplainState(path=folder / "explain" / "x", question=question)
    state.path.mkdir(parents=True)
    return CandidateMeasuring(case=case, state=state, progress=Progress(lambda _: None))


def test_both_releases_and_the_candidates_are_measured_in_a_fixed_number_of_rounds(tmp_path: Path) -> None:
    context = measuring(tmp_path).with_candidates([SWITCH])
    assert context.request.environments == ("numpy-new", "numpy-old", "numpy-new-one-arena")
    assert (context.request.rounds, context.request.max_rounds) == (ROUNDS, ROUNDS)
    assert context.matrix.launch_of("numpy-new-one-arena").variables == {"MALLOC_ARENA_MAX": "1"}
    assert (context.settings.controls, context.settings.profile, context.settings.metrics) == (False, True, ("memory",))
    assert context.origin.part_of == "runner explain"


def test_a_candidate_without_a_solution_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ProvisionError("lock", Problem("no\nsolution"))

    monkeypatch.setattr(module, "make_lock", fail)
    of_both = measuring(tmp_path)
    of_both._make_locks([SWITCH, PACKAGE])
    assert of_both.state.untried == {"numpy-new-scipy-1": "no solution"}


def test_an_outage_is_kept_of_no_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ProvisionError("lock", Problem("no answer"), passing=True)

    monkeypatch.setattr(module, "make_lock", fail)
    of_both = measuring(tmp_path)
    with pytest.raises(OutageError, match="numpy-new-scipy-1 is not available now: no answer"):
        of_both._make_locks([PACKAGE])
    assert of_both.state.untried == {}


def test_the_environments_of_a_stored_run_are_those_of_its_plan(tmp_path: Path) -> None:
    of_run = [cell("torch-1"), cell("torch-2"), cell("torch-2@twin")]
    run = make(tmp_path, [record for each in of_run for record in rounds(each, [0.1])])
    assert module._environments(run) == {"torch-1", "torch-2"}


def test_what_was_built_is_removed_and_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_both, removed = measuring(tmp_path), list[str]()

    def remove(_: Context, name: str, *__: Any) -> bool:
        removed.append(name)
        return True

    monkeypatch.setattr(module, "removed", remove)
    (of_both.state.path / LOCKS).mkdir()
    (of_both.state.path / LOCKS / "numpy-new-scipy-1.txt").write_text("")
    of_both.state.built = ["numpy-new-scipy-1", "somebody-else"]
    of_both.remove_built({"numpy-new-scipy-1": PACKAGE})
    assert removed == ["numpy-new-scipy-1"]
    assert of_both.state.built == []


def test_a_release_without_a_good_record_is_named_with_the_reason(tmp_path: Path) -> None:
    of_both = measuring(tmp_path)
    old, new = (Cell.parse(f"{name}/{CELL}") for name in ("numpy-old", "numpy-new"))
    records = [*rounds(old, [0.1, 0.1]), bad(new, 0, "crash", "it ended")]
    failed = analyse_run(make(tmp_path, records))
    assert of_both._failure(failed) == "numpy-new cannot be measured: it ended"
    complete = analyse_run(make(tmp_path / "other", [*rounds(old, [0.1]), *rounds(new, [0.2])]))
    assert of_both._failure(complete) == ""
