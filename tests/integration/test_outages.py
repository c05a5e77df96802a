"""An index that is away, broken or without the version: what that is to uv, pip, a lock, a build and a search."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from runner.backends import provision
from runner.backends.venv import VenvBackend
from runner.core.errors import InterruptedRunError, OutageError, ProvisionError
from runner.core.model import Cell, Spec
from runner.core.progress import Progress
from runner.matrix import Environment
from runner.releases import index as listing
from runner.releases.candidates import ReleaseCandidate
from runner.releases.lock import lock
from runner.releases.lock_requests import LockRequest
from runner.search import bisect as workflow
from runner.search.bisect.measured_step import UnmeasurableError
from runner.search.bisect.measuring import Measuring
from runner.search.bisect.state import SEARCHES, SearchState, SearchStep
from runner.search.stored_search import FILE
from runner.session import flow
from tests.support import bundled_pip
from tests.support.package_index import NAME, PackageIndex, package_index, wheel
from tests.unit.search.bisect.test_bisect import state_in

CLOSED = "http://127.0.0.1:9/simple"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """An index with one release that uv and pip ask, and no other, without patience."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    settings = {"UV_HTTP_RETRIES": "0", "UV_NO_CACHE": "1", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    for name, value in {**settings, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("runner.backends.venv.PIP_PATIENCE", ("--retries", "0", "--timeout", "5"))
    with package_index() as server:
        server.wheels = {"1.0": wheel("1.0", "")}
        ask(monkeypatch, server.url)
        yield server


def ask(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Have uv and pip ask an index instead of PyPI."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", url)
    monkeypatch.setenv("PIP_INDEX_URL", url)


def requested(folder: Path, version: str = "1.0") -> LockRequest:
    return LockRequest(name="made", requirements=(f"{NAME}=={version}",), python="3.11", out=folder / "lock.txt")


def spec(folder: Path, version: str = "1.0", digit: str = "0") -> Spec:
    (folder / "lock.txt").write_text(f"{NAME}=={version} --hash=sha256:{digit * 64}\n")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Spec(environment="made", framework="numpy", release=version, python=python, lock=folder / "lock.txt")


def test_a_lock_that_an_outage_prevents_passes_and_is_made_afterwards(
    index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(monkeypatch, CLOSED)
    with pytest.raises(ProvisionError, match="Connection refused") as refused:
        lock(requested(tmp_path))
    ask(monkeypatch, index.url)
    index.broken = True
    with pytest.raises(ProvisionError, match="500") as broken:
        lock(requested(tmp_path))
    assert refused.value.passing
    assert broken.value.passing
    index.broken = False
    assert lock(requested(tmp_path)).packages == ((NAME, "1.0"),)


def test_a_version_that_an_index_lacks_stays_a_fact(index: PackageIndex, tmp_path: Path) -> None:
    assert index.wheels
    with pytest.raises(ProvisionError, match="No solution") as lacking:
        lock(requested(tmp_path, "9.9"))
    assert not lacking.value.passing


@pytest.mark.slow
def test_pip_says_only_in_its_log_that_an_index_is_away(
    index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = VenvBackend(tmp_path / "cache")
    with pytest.raises(ProvisionError) as lacking:
        backend.provision(spec(tmp_path, "9.9"), lambda _: None)
    with pytest.raises(ProvisionError) as other_file:
        backend.provision(spec(tmp_path, "1.0"), lambda _: None)
    ask(monkeypatch, CLOSED)
    with pytest.raises(ProvisionError) as away:
        backend.provision(spec(tmp_path, "1.0"), lambda _: None)
    assert "No matching distribution found" in lacking.value.log
    assert "DO NOT MATCH THE HASHES" in other_file.value.log
    assert "No matching distribution found" in away.value.log
    assert [lacking.value.passing, other_file.value.passing, away.value.passing] == [False, False, True]
    assert index.wheels


def test_versions_are_not_known_where_the_index_is_away(index: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_pip", bundled_pip.command)
    assert listing.versions(NAME, "3.11") == (("1.0",), "")
    index.broken = True
    with pytest.raises(ProvisionError) as broken:
        listing.versions(NAME, "3.11")
    ask(monkeypatch, CLOSED)
    with pytest.raises(ProvisionError, match="cannot be listed") as away:
        listing.versions(NAME, "3.11")
    assert broken.value.passing
    assert away.value.passing
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    versions, problem = listing.versions(NAME, "3.11")
    assert (versions, bool(problem)) == ((), True)


def test_a_build_that_ctrl_c_ends_is_no_failure_of_the_environment(tmp_path: Path) -> None:
    backend = VenvBackend(tmp_path / "cache")
    backend.cancel()
    with pytest.raises(InterruptedRunError):
        provision([spec(tmp_path)], backend, Progress(lambda _: None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Locking(Measuring):
    """Locks for real, and compares nothing."""

    def step(self, base: ReleaseCandidate, other: ReleaseCandidate, *, confirms: bool = False) -> SearchStep:  # noqa: ARG002  it measures nothing
        """Return that two releases are the same, or that the second cannot be locked."""
        try:
            self._lock(base, base)
            self._lock(other, base)
        except UnmeasurableError as error:
            return SearchStep(base=base.name, other=other.name, outcome="missing", reason=str(error))
        return SearchStep(base=base.name, other=other.name, outcome="same", verdict="same")


def candidate(number: int, version: str) -> ReleaseCandidate:
    environment = Environment(framework="numpy", release="1", python="3.11", requirements=(f"{NAME}=={version}",))
    return ReleaseCandidate(name=f"torch-1.{number}", release=version, source="index", environment=environment)


def locking(state: SearchState) -> Locking:
    context = SimpleNamespace(request=SimpleNamespace(device="cpu"))
    return Locking(context=context, state=state, cell="", progress=Progress(lambda _: None))  # type: ignore[arg-type]


def test_an_index_that_is_away_stops_the_search_and_the_same_command_goes_on(
    index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_in(tmp_path, 2)
    releases = (candidate(0, "1.0"), candidate(1, "1.1"))
    ask(monkeypatch, CLOSED)
    with pytest.raises(OutageError, match="is not available now") as away:
        workflow._searched(releases, locking(state), keep=True)
    assert away.value.exit_code == 4
    ask(monkeypatch, index.url)
    index.broken = True
    with pytest.raises(OutageError, match="500"):
        workflow._searched(releases, locking(state), keep=True)
    assert SEARCHES.read(state.path / FILE).steps == []
    index.broken = False
    index.wheels["1.1"] = wheel("1.1", "")
    workflow._searched(releases, locking(state), keep=True)
    assert [step.outcome for step in SEARCHES.read(state.path / FILE).steps] == ["same"]
    with pytest.raises(UnmeasurableError):  # and what the index lacks is a fact
        locking(state)._lock(candidate(9, "9.9"), releases[0])


@dataclass(frozen=True)
class StepSettings:
    """The settings of a run below a search that this test reads."""

    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepContext:
    """Likewise of its context."""

    settings: StepSettings


def test_an_environment_that_an_outage_takes_from_a_step_is_no_fact_about_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell.parse("torch-1.1/nn-lstm/rnn-step/lstm-b32-h128/forward/fp32")
    record = SimpleNamespace(cell=cell, status="failed", failure="outage", reason="Connection refused")
    run = SimpleNamespace(records=lambda: [record], path=tmp_path, id="a run")
    measured = SimpleNamespace(analysis=SimpleNamespace(comparisons=()), run=run)
    monkeypatch.setattr(flow, "measure_planned", lambda *_, **__: measured)
    context = SimpleNamespace(step_of=lambda *_: StepContext(StepSettings()))
    step = Measuring(
        context=context,  # type: ignore[arg-type]
        state=state_in(tmp_path, 2),
        cell="",
        progress=Progress(lambda _: None),
    )
    with pytest.raises(OutageError, match=r"torch-1\.1 is not available now: Connection refused"):
        step._measured(None, candidate(1, "1.1"))  # type: ignore[arg-type]
    record.failure = "crash"
    with pytest.raises(UnmeasurableError, match="the test fails"):
        step._measured(None, candidate(1, "1.1"))  # type: ignore[arg-type]
