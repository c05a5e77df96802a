"""A new release of a followed package: locked, built, kept; and what becomes of the night without it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import EngineError, Problem, ProvisionError
from runner.core.model import Provisioned, Request, Skip, Spec, Survey
from runner.core.progress import Progress
from runner.matrix import parse
from runner.releases import kept as releases
from runner.releases.followed import current_locks, current_specs, followed_environments
from runner.releases.lock_requests import LockRequest
from runner.session.context import Context
from runner.session.preparation import RunSettings
from runner.watch.nightly import floating
from runner.watch.nightly.floating import update

MATRIX = """\
version: 1
workloads: {rnn-step: {}}
environments:
  torch-1.13: {framework: torch, release: "1.13.1", python: "3.10", lock: old.txt, requirements: [torch==1.13.1]}
  torch-2.x:
    framework: torch
    release: "2.*"
    python: "3.11"
    variants:
      cpu: {lock: lock.txt, requirements: [torch==2.9.0, numpy], follow: "torch>=2,<3"}
  jax: {framework: jax, release: "0.*", python: "3.11", requirements: [jax==0.4.31], follow: jax}
"""
FOLDER = "torch-2.x-cpu"
HASH = f"--hash=sha256:{'ab' * 32}"


def lock_text(**versions: str) -> str:
    return "".join(f"{name}=={version} {HASH}\n" for name, version in versions.items())


class Engine:
    """A backend that makes environments from nothing; ``broken`` is a text of the locks that it cannot install."""

    name = "venv"

    def __init__(self) -> None:
        """Install every lock."""
        self.made: list[tuple[str, str]] = []
        self.broken: list[str] = []
        self.skips: dict[str, Skip] = {}

    def survey(self, specs: Sequence[Spec]) -> Survey:
        """Return what cannot be made."""
        return Survey(skips={spec.environment: self.skips[spec.environment] for spec in specs if self.skips})

    def provision(self, spec: Spec, say: Callable[[str], None]) -> Provisioned:
        """Note the lock, and refuse it if it is broken."""
        say("installing")
        assert spec.lock is not None
        text = spec.lock.read_text()
        self.made.append((spec.environment, text))
        if any(part in text for part in self.broken):
            raise ProvisionError("image-build", Problem("pip ended with 1"))
        name = spec.environment
        return Provisioned(environment=name, framework="torch", handle="", digest="", seconds=0.0, cached=False)

    def cancel(self) -> None:
        """End nothing."""


class Index:
    """What the index has, and what was resolved; an exception is raised."""

    def __init__(self) -> None:
        """Have nothing."""
        self.newest: dict[str, str | Exception] = {}
        self.requests: list[LockRequest] = []

    def resolved(self, request: LockRequest) -> str:
        """Return the lock of an environment."""
        self.requests.append(request)
        answer = self.newest[request.name]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    index = Index()
    monkeypatch.setattr(floating, "resolved", index.resolved)
    return index


def context(folder: Path, engine: Engine) -> Context:
    settings = RunSettings(file=folder / "matrix.yaml", reports=folder / "reports", cache=folder / "cache")
    request = Request(environments=("torch-1.13", "torch-2.x"))
    backend: Any = engine
    return Context(
        matrix=parse(MATRIX.encode(), "m.yaml"), request=request, backend=backend, settings=settings, gpus=()
    )


def night(
    folder: Path, engine: Engine, names: Sequence[str] = ("torch-1.13", "torch-2.x")
) -> tuple[dict[str, Path], list[str]]:
    of = context(folder, engine)
    followed = followed_environments(of.matrix, names, "cpu", folder, of.settings.reports)
    return update(of, followed, Progress(lambda _: None))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lock.txt").write_text(lock_text(torch="2.9.0", numpy="2.3.0"))
    (tmp_path / "old.txt").write_text(lock_text(torch="1.13.1"))
    return tmp_path


def in_use(folder: Path) -> dict[str, Path]:
    of = context(folder, Engine())
    return current_locks(followed_environments(of.matrix, ["torch-2.x"], "cpu", folder, of.settings.reports))


def test_a_new_release_is_locked_built_and_kept_in_the_reports_folder(folder: Path, index: Index) -> None:
    engine, new = Engine(), lock_text(torch="2.9.1+cpu", numpy="2.3.0")
    index.newest["torch-2.x"] = new
    locks, (note,) = night(folder, engine)
    lock = folder / "reports/locks" / FOLDER / "2.9.1+cpu.txt"
    assert locks == {"torch-2.x": lock} == in_use(folder)
    assert lock.read_text() == new
    assert engine.made == [("torch-2.x", new)]
    assert note == f"torch-2.x: torch 2.9.1+cpu, was 2.9.0; its lock is {lock}"
    (request,) = index.requests
    assert request.requirements == ("torch>=2,<3", "numpy")
    assert (request.versions, request.upgrade) == (folder / "lock.txt", "torch")
    assert (folder / "lock.txt").read_text() == lock_text(torch="2.9.0", numpy="2.3.0")  # the matrix's stays


def test_without_a_new_release_nothing_is_built(folder: Path, index: Index) -> None:
    engine = Engine()
    index.newest["torch-2.x"] = lock_text(torch="2.9.0", numpy="2.4.0")  # another NumPy is no release
    assert night(folder, engine) == ({}, [])
    assert engine.made == []
    assert list((folder / "reports").rglob("*.txt")) == []


def test_the_locks_of_earlier_releases_stay(folder: Path, index: Index) -> None:
    for version in ("2.9.1", "2.10.0"):
        index.newest["torch-2.x"] = lock_text(torch=version)
        night(folder, Engine())
    assert set(releases.kept_locks(folder / "reports", FOLDER)) == {"2.9.1", "2.10.0"}
    assert in_use(folder)["torch-2.x"].stem == "2.10.0"
    assert index.requests[-1].versions == folder / "reports/locks" / FOLDER / "2.9.1.txt"


def test_a_release_that_was_withdrawn_returns_to_the_lock_that_the_earlier_one_had(folder: Path, index: Index) -> None:
    first = lock_text(torch="2.9.1", numpy="2.3.0")
    for text in (first, lock_text(torch="2.10.0")):
        index.newest["torch-2.x"] = text
        night(folder, Engine())
    index.newest["torch-2.x"] = lock_text(torch="2.9.1", numpy="2.4.0")
    locks, notes = night(folder, Engine())
    assert locks["torch-2.x"].read_text() == first
    assert "torch 2.9.1, was 2.10.0" in notes[0]
    index.newest["torch-2.x"] = lock_text(torch="2.9.0", numpy="2.4.0")
    assert night(folder, Engine())[0] == {} == in_use(folder)  # that of the matrix


@pytest.mark.parametrize(
    "answer", [ProvisionError("lock", Problem("cannot lock torch-2.x: uv ended with 2:\nno route to host"))]
)
def test_an_index_that_does_not_answer_leaves_the_release_of_before(
    folder: Path, index: Index, answer: Exception
) -> None:
    index.newest["torch-2.x"] = answer
    engine = Engine()
    locks, (note,) = night(folder, engine)
    assert (locks, engine.made) == ({}, [])
    assert note.startswith("torch-2.x: the newest release of torch is not known: ")
    assert note.endswith("no route to host; the night measures torch 2.9.0, as before")


def test_a_release_that_cannot_be_built_leaves_the_one_of_before(folder: Path, index: Index) -> None:
    index.newest["torch-2.x"] = lock_text(torch="2.9.1")
    night(folder, Engine())
    engine = Engine()
    engine.broken = ["2.10.0"]
    index.newest["torch-2.x"] = lock_text(torch="2.10.0")
    locks, (note,) = night(folder, engine)
    assert locks["torch-2.x"].stem == "2.9.1"
    assert "torch 2.10.0 cannot be built: pip ended with 1; the night measures torch 2.9.1, as before" in note
    assert set(releases.kept_locks(folder / "reports", FOLDER)) == {"2.9.1"}
    again = Engine()  # the next night tries again, with the lock of that night
    index.newest["torch-2.x"] = lock_text(torch="2.10.0", numpy="2.4.0")
    assert night(folder, again)[0]["torch-2.x"].read_text() == lock_text(torch="2.10.0", numpy="2.4.0")


def test_a_machine_that_cannot_make_the_environment_says_why(folder: Path, index: Index) -> None:
    engine = Engine()
    engine.skips = {"torch-2.x": Skip("interpreter-missing", "this machine has no Python 3.11")}
    index.newest["torch-2.x"] = lock_text(torch="2.9.1")
    assert "cannot be built: this machine has no Python 3.11" in night(folder, engine)[1][0]


def test_an_environment_without_a_lock_gets_its_first_one(folder: Path, index: Index) -> None:
    index.newest["jax"] = lock_text(jax="0.4.34")
    locks, (note,) = night(folder, Engine(), ["jax"])
    assert locks == {"jax": folder / "reports/locks/jax/0.4.34.txt"}
    assert note.startswith("jax: jax 0.4.34; its lock is ")
    index.newest["jax"] = ProvisionError("lock", Problem("no route"))
    (folder / "reports/locks/current.json").unlink()
    assert night(folder, Engine(), ["jax"])[1][0].endswith("it has no earlier release, so nothing of it is measured")


def test_cleaning_keeps_what_nights_use(folder: Path, index: Index) -> None:
    of = context(folder, Engine())
    assert current_specs(of.matrix, folder, of.settings.reports) == ()
    index.newest["torch-2.x"] = lock_text(torch="2.9.1")
    night(folder, Engine())
    (spec,) = current_specs(of.matrix, folder, of.settings.reports)
    assert (spec.environment, spec.python) == ("torch-2.x", "3.11")
    assert spec.lock == releases.lock_of(of.settings.reports, FOLDER, "2.9.1")


def test_an_engine_that_is_gone_ends_the_night(folder: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> Provisioned:
        raise EngineError("the engine stopped answering")

    engine = Engine()
    monkeypatch.setattr(engine, "provision", gone)
    index.newest["torch-2.x"] = lock_text(torch="2.9.1")
    with pytest.raises(EngineError):
        night(folder, engine)
    assert in_use(folder) == {}
