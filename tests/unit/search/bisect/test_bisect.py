"""A search from its steps to its sentences, with a stand-in for measuring; and a search that was killed."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from runner.core.errors import ProvisionError, RecordError, RunnerError, UsageError
from runner.core.metrics import BY_NAME
from runner.core.progress import Progress
from runner.matrix import Environment
from runner.releases.candidates import ReleaseCandidate
from runner.search import bisect as workflow
from runner.search.bisect.forecast import comparisons
from runner.search.bisect.measuring import Measuring
from runner.search.bisect.question import Ends, label_of, refuse_unmeasured, requested, split_cell, with_other_settings
from runner.search.bisect.rebuilt import lock_again, rebuilt
from runner.search.bisect.result import Bisection, entry
from runner.search.bisect.state import (
    SEARCHES,
    PlainProcesses,
    Question,
    SearchState,
    SearchStep,
)
from runner.search.bisect.walk import SearchResult
from runner.search.stored_search import FILE
from runner.session.options import Options
from runner.stats.bisection import FoundChanges, LocatedChange
from runner.store.documents import NewerVersionError
from tests.support.wrong_types import confused

QUESTION = Question(
    cell="nn-lstm/rnn-step/lstm-b32-h128/forward/fp32",
    good="torch-1.0",
    bad="torch-1.6",
    axis="release",
    every=False,
    environment="",
    device="cpu",
    backend="venv",
)
ENVIRONMENT = Environment(framework="torch", release="1.0", python="3.10", requirements=("torch==1.0",))


def candidates(count: int) -> tuple[ReleaseCandidate, ...]:
    """Return releases 1.0, 1.1, ..., of which the inner ones are of the index."""
    return tuple(
        ReleaseCandidate(
            name=f"torch-1.{minor}",
            release=f"1.{minor}.0",
            source="index" if 0 < minor < count - 1 else "matrix",
            environment=ENVIRONMENT,
        )
        for minor in range(count)
    )


class KilledError(Exception):
    """The process ends in the middle of a step."""


@dataclass
class FakeMeasuring:
    """Compares known times, and notes what is built and removed."""

    state: SearchState
    times: tuple[float | None, ...]
    killed_at: int = 99
    poor: frozenset[str] = frozenset()
    progress: Progress = field(default_factory=lambda: Progress(lambda _: None))
    steps: int = 0
    largest: int = 0

    def step(self, base: ReleaseCandidate, other: ReleaseCandidate, *, confirms: bool = False) -> SearchStep:
        """Return how two releases compare; what confirms a change has plain processes."""
        self.steps += 1
        if self.steps > self.killed_at:
            raise KilledError
        position = int(other.name.removesuffix("-rebuilt").rpartition(".")[2])
        self.state.built = list(dict.fromkeys([*self.state.built, *([other.name] if other.source == "index" else [])]))
        self.largest = max(self.largest, len(self.state.built))
        first, second = self.times[int(base.name.rpartition(".")[2])], self.times[position]
        if first is None or second is None:
            return SearchStep(base=base.name, other=other.name, outcome="missing", reason="cannot be built")
        ratio = second / first * (1.005 if other.name.endswith("-rebuilt") else 1.0)
        same = abs(math.log(ratio)) < 0.02
        verdict = "same" if same else BY_NAME[self.state.question.metric].change(ratio)
        return SearchStep(
            base=base.name,
            other=other.name,
            outcome="same" if same else "changed",
            verdict=verdict,
            ratio=ratio,
            ratio_low=ratio * 0.98,
            ratio_high=ratio * 1.02,
            base_value=first * 2**30,
            value=second * 2**30,
            rounds=5,
            run=f"run-{len(self.state.steps)}",
            base_revisions={"torch": base.release[2] * 40},
            revisions={"torch": f"{position}" * 40},
            plain=PlainProcesses(ratio=ratio, ratio_low=None, ratio_high=None, rounds=1, agrees=True)
            if confirms
            else None,
            grade="poor" if other.name in self.poor else "good",
            issues=("host-drift: the canary became 9 % slower",) if other.name in self.poor else (),
        )

    def remove(self, _: Mapping[str, ReleaseCandidate], kept: set[str]) -> None:
        """Forget what is built."""
        self.state.built = [name for name in self.state.built if name in kept]


def state_in(folder: Path, count: int, question: Question = QUESTION) -> SearchState:
    """Return a stored search that has not begun."""
    state = SEARCHES.new(folder, question, datetime(2026, 11, 20, tzinfo=UTC))
    state.candidates = tuple(entry(candidate) for candidate in candidates(count))
    state.save()
    return state


def searched(
    state: SearchState,
    times: tuple[float | None, ...],
    killed_at: int = 99,
    limit: int | None = None,
    *,
    rebuild: bool = False,
) -> tuple[Bisection, FakeMeasuring]:
    """Search among releases with known times."""
    measuring = FakeMeasuring(state, times, killed_at)
    releases = candidates(len(times))
    answered = workflow._searched(releases, measuring, keep=False, limit=limit, rebuild=rebuild)  # type: ignore[arg-type]
    result = Bisection(
        id=state.id,
        folder=state.path,
        question=state.question,
        label="PyTorch",
        candidates=releases,
        steps=tuple(state.steps),
        searched=answered,
    )
    return result, measuring


SLOWER = (1.0, 1.0, 1.0, 1.0, 1.08, 1.08, 1.08)


def test_the_sentence_names_the_release_the_effect_and_the_runs(tmp_path: Path) -> None:
    result, _ = searched(state_in(tmp_path, 7), SLOWER)
    assert result.exit_code == 0
    sentence = next(result.sentences())
    effect = "8.0 % slower (5.8 % to 10 %) than PyTorch 1.3.0"
    assert sentence.startswith(f"PyTorch 1.4.0 made {QUESTION.cell} {effect}")
    assert sentence.endswith(f"measured alternately in {len(result.steps)} runs")
    (change,) = result.json()["changes"]
    assert (change["before"]["release"], change["after"]["release"], change["named"]) == ("1.3.0", "1.4.0", True)
    assert "torch-1.4" in result.text(120)


def test_the_answer_has_its_sources_and_what_plain_processes_show(tmp_path: Path) -> None:
    result, _ = searched(state_in(tmp_path, 7), SLOWER)
    link = "https://github.com/pytorch/pytorch/compare/3333333333...4444444444"
    sentences = [sentence.strip() for sentence in result.sentences()]
    assert f"changes in the source of PyTorch, 3333333333 to 4444444444: {link}" in sentences
    assert "plain processes agree: 8.0 % slower in 1 round" in sentences
    (change,) = result.json()["changes"]
    assert change["sources"] == [{"package": "torch", "before": "3" * 40, "after": "4" * 40, "compare": link}]
    assert change["plain_processes"]["agrees"] is True


OF_MEMORY = replace(QUESTION, metric="memory")


def test_the_sentence_about_a_metric_has_its_words_and_its_values(tmp_path: Path) -> None:
    result, _ = searched(state_in(tmp_path, 7, OF_MEMORY), SLOWER)
    assert result.exit_code == 0
    sentence = next(result.sentences())
    assert sentence.startswith(
        f"{QUESTION.cell}, peak memory of the steps: 8.0 % more memory (5.8 % to 10 %) with PyTorch 1.4.0 "
        "than with PyTorch 1.3.0, 1.00 GiB → 1.08 GiB; measured alternately in"
    )
    (change,) = result.json()["changes"]
    assert (change["base_value"], change["value"], change["verdict"]) == (2**30, 1.08 * 2**30, "more")
    assert result.json()["question"]["metric"] == "memory"
    assert result.text(120).startswith(f"{QUESTION.cell}, peak memory of the steps on cpu")


def test_what_became_smaller_and_what_stayed_has_the_words_of_the_metric(tmp_path: Path) -> None:
    smaller, _ = searched(state_in(tmp_path / "less", 3, OF_MEMORY), (1.0, 0.9, 0.9))
    assert " less memory (8.2 % to 12 %) with PyTorch 1.1.0 than with PyTorch 1.0.0" in next(smaller.sentences())
    equal, _ = searched(state_in(tmp_path / "same", 3, OF_MEMORY), (1.0, 1.0, 1.0))
    assert "PyTorch 1.2.0 and PyTorch 1.0.0 do not differ, so there is no change to search" in next(equal.sentences())
    stopped, _ = searched(state_in(tmp_path / "range", 33, OF_MEMORY), (1.0,) * 20 + (1.1,) * 13, limit=3)
    assert " and it changed between PyTorch" in next(stopped.sentences())


def test_searches_of_two_metrics_are_two_searches(tmp_path: Path) -> None:
    state = state_in(tmp_path, 7)
    assert SEARCHES.unfinished(tmp_path, OF_MEMORY) is None
    assert SEARCHES.unfinished(tmp_path, QUESTION) == state
    document = json.loads((state.path / FILE).read_text())
    del document["question"]["metric"]  # as in states of older programs
    (state.path / FILE).write_text(json.dumps(document))
    assert SEARCHES.read(state.path / FILE).question == QUESTION


def test_a_change_has_the_scatter_of_releases_and_an_interval_with_it(tmp_path: Path) -> None:
    times = (1.0, 1.004, 0.998, 1.002, 1.079, 1.083, 1.081)
    result, _ = searched(state_in(tmp_path, 7), times)
    (change,) = result.json()["changes"]
    assert change["named"]
    with_scatter = change["with_scatter"]
    assert with_scatter["scatter"] < 0.005
    assert with_scatter["ratio_low"] < 1.08 < with_scatter["ratio_high"]
    assert any("releases on either side differ from each other by 0." in sentence for sentence in result.sentences())


def test_a_change_that_does_not_stand_out_of_its_neighbours_names_no_release(tmp_path: Path) -> None:
    times = (1.0, 1.0, 1.0, 0.985, 1.015, 1.012, 1.045, 1.015, 1.06)
    result, _ = searched(state_in(tmp_path, len(times)), times)
    (change,) = result.json()["changes"]
    assert (change["kind"], change["named"], result.exit_code) == ("scatter", False, 1)
    assert "which does not stand out from how much releases differ from each other" in change["sentence"]


def test_few_releases_do_not_show_how_much_releases_scatter(tmp_path: Path) -> None:
    result, measuring = searched(state_in(tmp_path, 3), (1.0, 1.1, 1.1))
    (change,) = result.json()["changes"]
    assert (change["named"], change["with_scatter"]) == (True, None)
    assert any("too few releases" in sentence for sentence in result.sentences())
    assert measuring.steps == 4


def test_what_is_not_sure_is_measured_around_and_continues_from_its_steps(tmp_path: Path) -> None:
    times = tuple(1.0 + 0.008 * (position % 3 - 1) + 0.05 * (position >= 16) for position in range(33))
    result, measuring = searched(state_in(tmp_path / "one", 33), times)
    (change,) = result.json()["changes"]
    assert change["after"]["name"] == "torch-1.16"
    others = {step.other for step in result.steps}
    assert {"torch-1.14", "torch-1.17"} <= others
    state = state_in(tmp_path / "other", 33)
    with pytest.raises(KilledError):
        searched(state, times, killed_at=measuring.steps - 1)
    continued, rest = searched(state, times)
    assert rest.steps == 1
    assert [step.other for step in continued.steps] == [step.other for step in result.steps]


def test_the_runs_that_a_change_rests_on_have_their_grades_and_serious_issues(tmp_path: Path) -> None:
    state = state_in(tmp_path, 7)
    measuring = FakeMeasuring(state, SLOWER, poor=frozenset({"torch-1.4"}))
    answered = workflow._searched(candidates(7), measuring, keep=False)  # type: ignore[arg-type]
    result, _ = searched(state, SLOWER)
    assert result.searched == answered
    sentences = [sentence.strip() for sentence in result.sentences()]
    (grades,) = (sentence for sentence in sentences if sentence.startswith("trust in the"))
    assert "poor" in grades
    assert "serious in a run that this rests on: host-drift: the canary became 9 % slower" in sentences
    (change,) = result.json()["changes"]
    assert {run["grade"] for run in change["runs"]} == {"poor"}


def test_a_search_stops_at_its_limit_and_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    state = state_in(tmp_path, 33)
    times = (1.0,) * 20 + (1.1,) * 13
    result, _ = searched(state, times, limit=3)
    assert (len(result.steps), result.exit_code, result.json()["stopped"]) == (3, 1, True)
    sentences = list(result.sentences())
    assert "where the search stopped" in sentences[0]
    assert "`--max-comparisons 6` goes on" in sentences[-1]
    longer, measuring = searched(state, times)
    assert [change.after for change in longer.answer.changes] == [20]
    assert measuring.steps == len(longer.steps) - 3


@pytest.mark.parametrize("limit", range(1, 12))
def test_second_builds_of_a_search_that_stopped_are_no_steps_of_it(tmp_path: Path, limit: int) -> None:
    state = state_in(tmp_path, 33)
    times = (1.0,) * 20 + (1.1,) * 13
    searched(state, times, limit=limit, rebuild=True)
    longer, _ = searched(state, times, rebuild=True)
    assert [(change.after, change.is_named) for change in longer.answer.changes] == [(20, True)]


def test_second_builds_of_both_ends_show_the_scatter_of_a_short_search(tmp_path: Path) -> None:
    state = state_in(tmp_path, 3)
    measuring = FakeMeasuring(state, (1.0, 1.1, 1.1))
    answered = workflow._searched(candidates(3), measuring, keep=False, rebuild=True)  # type: ignore[arg-type]
    assert [step.other for step in state.steps[-2:]] == ["torch-1.0-rebuilt", "torch-1.2-rebuilt"]
    (standing,) = answered.standings.values()
    assert standing.p_value <= 0.05
    assert [change.is_named for change in answered.answer.changes] == [True]
    assert state.built == []
    result, again = searched(state, (1.0, 1.1, 1.1), rebuild=True)
    assert again.steps == 0
    sentences = list(result.sentences())
    builds = [sentence for sentence in sentences if sentence.startswith("a second build of")]
    assert len(builds) == 2
    assert builds[0].startswith("a second build of PyTorch 1.0.0 was 0.5 % slower (")


def test_equal_ends_are_not_built_again(tmp_path: Path) -> None:
    result, _ = searched(state_in(tmp_path, 4), (1.0,) * 4, rebuild=True)
    assert [step.other for step in result.steps] == ["torch-1.3"]


def test_a_second_build_has_the_lock_of_the_first_with_another_content(tmp_path: Path) -> None:
    locks, folder = tmp_path / "locks", tmp_path / "matrix"
    locks.mkdir()
    (folder / "docker").mkdir(parents=True)
    (folder / "docker/torch.txt").write_text("torch==1.0\n")
    locked = ENVIRONMENT.model_copy(update={"lock": "docker/torch.txt"})
    of_matrix = rebuilt(replace(candidates(1)[0], environment=locked))
    lock_again(of_matrix, locks, folder, "cpu", locks / f"{of_matrix.name}.txt")
    content = (locks / "torch-1.0-rebuilt.txt").read_text()
    assert content.endswith("torch==1.0\n")
    assert content != "torch==1.0\n"
    (locks / "torch-1.1.txt").write_text("torch==1.1\n")
    of_index = rebuilt(candidates(2)[1])
    lock_again(of_index, locks, folder, "cpu", locks / f"{of_index.name}.txt")
    assert (locks / "torch-1.1-rebuilt.txt").read_text().endswith("torch==1.1\n")
    (locks / "torch-1.1.txt").unlink()
    with pytest.raises(ProvisionError, match="cannot be built a second time"):
        lock_again(of_index, locks, folder, "cpu", locks / "other.txt")


def test_a_name_that_a_search_did_not_build_is_forgotten(tmp_path: Path) -> None:
    state = state_in(tmp_path, 3)
    state.built = ["../../elsewhere"]
    state.save()
    Measuring.remove(cast("Measuring", SimpleNamespace(state=state)), {}, set())
    assert SEARCHES.read(state.path / FILE).built == []


def test_a_stored_ratio_is_positive(tmp_path: Path) -> None:
    state = state_in(tmp_path, 3)
    searched(state, (1.0, 1.1, 1.1))
    document = json.loads((state.path / FILE).read_text())
    document["steps"][0]["ratio"] = -1.0
    (state.path / FILE).write_text(json.dumps(document))
    with pytest.raises(RecordError, match=r"steps\.0\.ratio"):
        SEARCHES.read(state.path / FILE)


def test_gradual_changes_stop_at_the_comparisons_of_all_neighbours(tmp_path: Path) -> None:
    times = tuple(1.1 ** (position / 32) for position in range(33))
    result, measuring = searched(state_in(tmp_path, 33), times)
    assert measuring.steps == len(result.steps) <= 33
    assert result.exit_code == 1


def test_a_forecast_names_the_comparisons_by_noise_and_where_the_search_stops() -> None:
    of_33 = comparisons(33, every=False, limit=None)
    assert of_33.limit == 33
    assert of_33.by_noise[0.02] < of_33.by_noise[0.04] < 33
    assert "stops after 33" in of_33.sentence
    assert comparisons(33, every=False, limit=5).by_noise == {0.02: 5, 0.04: 5}
    assert "about 33 comparisons" in comparisons(33, every=True, limit=None).sentence
    rebuilt = comparisons(33, every=False, limit=None, rebuild=True)
    assert (rebuilt.by_noise, rebuilt.fewest) == (of_33.by_noise, of_33.fewest + 2)
    assert rebuilt.sentence == f"{of_33.sentence}; second builds of the ends take 2 more"


def test_a_faster_release_has_the_inverse_ratio(tmp_path: Path) -> None:
    result, _ = searched(state_in(tmp_path, 3), (1.0, 0.5, 0.5))
    assert "2.00x faster (1.96x to 2.04x) than PyTorch 1.0.0" in next(result.sentences())


def test_a_release_that_cannot_be_built_makes_a_range_with_its_reason(tmp_path: Path) -> None:
    result, _ = searched(state_in(tmp_path, 5), (1.0, 1.0, None, 1.1, 1.1))
    assert result.exit_code == 1
    sentence = next(result.sentences())
    assert "between PyTorch 1.1.0 and PyTorch 1.3.0; 1.2.0 cannot be measured: cannot be built" in sentence


def test_an_unconfirmed_range_has_the_comparison_that_shows_it(tmp_path: Path) -> None:
    result, _ = searched(state_in(tmp_path, 5), (1.0, 1.0, 1.1, 1.1, 1.1))
    unconfirmed = replace(
        result, searched=SearchResult(answer=FoundChanges((LocatedChange(1, 4, (2, 3), "unconfirmed"),)))
    )
    assert unconfirmed.exit_code == 1
    sentence = next(unconfirmed.sentences())
    assert "became 10 % slower (7.8 % to 12 %) " in sentence
    assert "between PyTorch 1.1.0 and PyTorch 1.4.0, which a second run did not confirm" in sentence


def test_equal_ends_are_an_answer(tmp_path: Path) -> None:
    result, _ = searched(state_in(tmp_path, 4), (1.0,) * 4)
    assert result.exit_code == 0
    assert list(result.sentences()) == ["PyTorch 1.3.0 is as fast as PyTorch 1.0.0: there is no change to search"]


def test_an_end_that_cannot_be_measured_ends_the_search(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match=r"torch-1\.2 cannot be measured"):
        searched(state_in(tmp_path, 3), (1.0, 1.0, None))


@pytest.mark.parametrize("killed_at", range(6))
def test_a_killed_search_continues_with_the_steps_that_it_has(killed_at: int, tmp_path: Path) -> None:
    state = state_in(tmp_path, 7)
    with pytest.raises(KilledError):
        searched(state, SLOWER, killed_at)
    continued = SEARCHES.unfinished(tmp_path, QUESTION)
    assert continued is not None
    assert continued.id == state.id
    assert len(continued.steps) == killed_at
    result, measuring = searched(continued, SLOWER)
    assert [change.after for change in result.answer.changes] == [4]
    uninterrupted, _ = searched(state_in(tmp_path / "other", 7), SLOWER)
    assert measuring.steps == len(uninterrupted.steps) - killed_at


def test_few_environments_exist_at_a_time_and_none_in_the_end(tmp_path: Path) -> None:
    times = (1.0,) * 20 + (1.1,) * 12
    result, measuring = searched(state_in(tmp_path, 32), times)
    assert [change.after for change in result.answer.changes] == [20]
    assert measuring.largest <= 4
    assert measuring.state.built == []


def test_a_search_that_ended_or_asks_something_else_is_not_continued(tmp_path: Path) -> None:
    state = state_in(tmp_path, 3)
    assert SEARCHES.unfinished(tmp_path, replace(QUESTION, bad="torch-1.7")) is None
    state.ended = True
    state.save()
    assert SEARCHES.unfinished(tmp_path, QUESTION) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"version": 1, "question": {}}', b"\xff"])
def test_a_damaged_state_is_refused_and_passed_over(content: bytes, tmp_path: Path) -> None:
    state = state_in(tmp_path, 3)
    (state.path / FILE).write_bytes(content)
    with pytest.raises(RecordError):
        SEARCHES.read(state.path / FILE)
    assert SEARCHES.unfinished(tmp_path, QUESTION) is None


def test_a_state_with_a_value_of_a_wrong_type_is_refused(tmp_path: Path) -> None:
    state = state_in(tmp_path, 3)
    state.steps = [SearchStep(base="a", other="b", outcome="same", ratio=1.0, differences=("python",))]
    state.built = ["b"]
    state.save()
    assert SEARCHES.read(state.path / FILE) == state
    stored = json.loads((state.path / FILE).read_text())
    for name, changed in confused(stored):
        (state.path / FILE).write_text(json.dumps(changed))
        with pytest.raises(RecordError):
            pytest.fail(f"{name}: {SEARCHES.read(state.path / FILE)}")
    (state.path / FILE).write_text(json.dumps({**stored, "version": 2}))
    with pytest.raises(NewerVersionError):
        SEARCHES.read(state.path / FILE)


@pytest.mark.parametrize("text", ["", "torch-1.0", "a/b/c", "torch-1.0/nn-lstm/rnn-step/a/b/c/d", "a/ /c/d/e"])
def test_what_is_not_a_cell_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a test"):
        split_cell(text)


def test_a_cell_may_have_no_environment() -> None:
    assert split_cell(QUESTION.cell) == ("", QUESTION.cell)


def test_a_search_has_one_thread_count() -> None:
    options = Options(selectors=[QUESTION.cell], threads="1,4")
    with pytest.raises(UsageError, match="bisect compares releases, with one thread count"):
        requested(options, Ends(good="1.0", bad="2.0"))


def test_an_end_names_a_release_alone() -> None:
    options = Options(selectors=[QUESTION.cell])
    with pytest.raises(UsageError, match=r"--bad torch==2\.0@py3\.9 names more than a release"):
        requested(options, Ends(good="torch==1.0", bad="torch==2.0@py3.9"))


def test_a_package_varies_in_an_environment() -> None:
    with pytest.raises(UsageError, match="the axis numba needs the environment of the test"):
        requested(Options(selectors=[QUESTION.cell]), Ends(good="0.65.0", bad="0.66.0", axis="numba"))
    ends = Ends(good="torch==2.0,timm==1.0", bad="torch==2.0,timm==0.9", axis="numpy")
    with pytest.raises(UsageError, match="the ends differ in timm, and the axis is numpy"):
        requested(Options(selectors=[QUESTION.cell]), ends)


def test_the_answer_about_a_package_names_it_and_its_environment(tmp_path: Path) -> None:
    question = replace(QUESTION, axis="numba", environment="numpy==2.2.6")
    result, _ = searched(state_in(tmp_path, 3, question), (1.0, 1.1, 1.1))
    of_package = replace(result, label=label_of(question.axis, "numpy"))
    assert of_package.text(120).startswith(f"{QUESTION.cell} on cpu, venv, numba in numpy==2.2.6\n")
    assert next(of_package.sentences()).startswith(f"numba 1.1.0 made {QUESTION.cell} 10 % slower")


def test_a_metric_has_to_exist_and_to_be_measured_on_the_device() -> None:
    ends = Ends(good="1.0", bad="2.0", metric="memry")
    with pytest.raises(UsageError, match="there is no metric 'memry'"):
        requested(Options(selectors=[QUESTION.cell]), ends)
    with pytest.raises(UsageError, match="energy of a step is not measured on cpu: CPUs and some GPUs"):
        refuse_unmeasured(BY_NAME["energy"], "cpu", QUESTION.cell)
    for name in ("time", "memory", "p95"):
        refuse_unmeasured(BY_NAME[name], "cpu", QUESTION.cell)
    refuse_unmeasured(BY_NAME["energy"], "cuda", QUESTION.cell)


def test_a_metric_has_to_be_measured_in_the_phase_of_the_cell() -> None:
    for phase in ("compile", "compile-warm"):
        cell = QUESTION.cell.replace("forward", phase)
        for name in ("memory", "p95", "energy"):
            with pytest.raises(UsageError, match=f"not measured in the phase {phase}: it is measured over many calls"):
                refuse_unmeasured(BY_NAME[name], "cuda", cell)
        for name in ("time", "first-call", "import", "size"):
            refuse_unmeasured(BY_NAME[name], "cuda", cell)
    with pytest.raises(UsageError, match=r"not measured in the phase forward\+published: it is not read for"):
        refuse_unmeasured(BY_NAME["energy"], "cuda", QUESTION.cell.replace("forward", "forward+published"))


def test_a_search_with_other_settings_is_another_and_is_named(tmp_path: Path) -> None:
    state = state_in(tmp_path, 3)
    changed = replace(QUESTION, settings={"threads": 2, "clocks": {"sm": "base"}})
    assert SEARCHES.unfinished(tmp_path, changed) is None
    assert f"bisect {state.id} was measured with other threads, clocks" in with_other_settings(tmp_path, changed)
    state.question = changed
    state.save()
    continued = SEARCHES.unfinished(tmp_path, replace(changed))
    assert continued is not None
    assert continued.id == state.id
    fewer = replace(changed, settings={**changed.settings, "threads": 1})
    assert SEARCHES.unfinished(tmp_path, fewer) is None
    assert "with other threads: this is another search" in with_other_settings(tmp_path, fewer)
    assert with_other_settings(tmp_path, replace(changed, cell="numpy-loop/rnn-step/rnn-b32-h128/forward/fp32")) == ""


def test_ends_of_a_framework_that_the_matrix_lacks_have_the_command_that_writes_one() -> None:
    options = Options(selectors=["model/mm/default/forward/fp32"])
    with pytest.raises(UsageError, match=r"no environment of numpy.*\nhint: `runner init numpy==1\.0 numpy==2\.0 --mo"):
        requested(options, Ends(good="numpy==1.0", bad="numpy==2.0"))
