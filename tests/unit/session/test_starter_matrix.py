"""The small matrix of ``runner init``: short, accepted as it is, and with locks that fit it."""

import platform
from datetime import date
from pathlib import Path

import pytest

from runner.backends.lock_file import read_lock
from runner.core.errors import NothingSelectedError, UsageError
from runner.core.paths import packaged_folder
from runner.matrix import Matrix, load
from runner.plan.specs import specs
from runner.releases import release_files, release_locks
from runner.releases.lock import LockResult, header_of
from runner.releases.lock_check import check_locks
from runner.releases.lock_requests import LockRequest, of_architecture
from runner.session.starter_matrix import StarterMatrix, starter_matrix

WHEELS = {
    ("numpy", "3.11"): ("2.5.0rc1", "2.4.6", "2.4.5", "2.3.0", "1.26.4"),
    ("jax", "3.11"): ("0.10.2", "0.10.1", "0.8.1"),
    ("tensorflow-cpu", "3.11"): ("2.22.0", "2.19.0"),
}
NETWORK = "class {name}:\n    def __init__(self, random): ...\n    def forward(self): ...\n"


def listed(package: str, python: str, _nightly: str) -> tuple[tuple[str, ...], str]:
    """Return what the index has; see ``releases.index.versions``."""
    return WHEELS.get((package, python), ()), ""


def lock(request: LockRequest) -> LockResult:
    """Write a lock with the requirements alone, and the index of the request."""
    lines = [header_of(request, date(2026, 11, 26)), *filter(None, [of_architecture(request)])]
    lines += [f"--extra-index-url {request.index}"] if request.index else []
    pins = (each.replace("<=", "==") for each in request.requirements if "=" in each)
    request.out.write_text("\n".join([*lines, *(f"{pin} --hash=sha256:{'0' * 64}" for pin in pins), ""]))
    return LockResult(path=request.out, changed=True, packages=())


@pytest.fixture(autouse=True)
def _made_up_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_locks, "lock_release", lock)
    monkeypatch.setattr(release_locks, "as_of", lambda *_: None)
    monkeypatch.setattr(release_locks, "answers", lambda *_: True)
    monkeypatch.setattr(release_files, "files_of", lambda *_: [])


def made(folder: Path, *releases: str, model: str | None = None) -> StarterMatrix:
    """Return a small matrix of a folder."""
    return starter_matrix(releases, model, folder, "cpu", folder / "cache", listed)


def written(folder: Path, starter: StarterMatrix) -> Matrix:
    """Write a small matrix and its locks, and read it."""
    for name, content in starter.locks.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "matrix.yaml").write_text(starter.text)
    return load(folder / "matrix.yaml")


def test_two_releases_and_a_network_are_a_dozen_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_network.py").write_text(NETWORK.format(name="NumpyModel"))
    starter = made(tmp_path, "numpy==1.26.4", "numpy==2.3.0", model="my_network.py")
    assert starter.text.splitlines()[1:] == [
        "version: 1",
        "environments:",
        "  numpy-1.26.4:",
        "    framework: numpy",
        '    release: "1.26.4"',
        '    python: "3.11"',
        "    requirements: [numpy==1.26.4]",
        "    lock: locks/numpy-1.26.4.txt",
        "  numpy-2.3.0:",
        "    framework: numpy",
        '    release: "2.3.0"',
        '    python: "3.11"',
        "    requirements: [numpy==2.3.0]",
        "    lock: locks/numpy-2.3.0.txt",
        "workloads:",
        "  my-network: {file: my_network.py, phases: [forward]}",
    ]
    matrix = written(tmp_path, starter)
    assert [*matrix.cases][-1] == "my-network/default"
    assert check_locks(tmp_path / "matrix.yaml", ()) == 2
    complete, skips = specs(matrix, [*matrix.environments], "cpu", tmp_path)
    assert ([spec.lock is not None for spec in complete], skips) == ([True, True], {})


def test_a_release_with_builds_for_one_device_has_its_variant(tmp_path: Path) -> None:
    starter = made(tmp_path, "jax==0.8.1", "tf==2.19.0")
    matrix = written(tmp_path, starter)
    assert [*matrix.environments] == ["jax-0.8.1", "tensorflow-2.19.0"]
    variants = [each.variants for each in matrix.environments.values()]
    assert [[*each] for each in variants] == [["cpu"], ["cpu"]]
    assert variants[1]["cpu"].requirements == ("tensorflow-cpu==2.19.0",)
    assert [*matrix.workloads] == ["rnn-step"]
    assert check_locks(tmp_path / "matrix.yaml", ()) == 2


def test_the_matrix_has_what_the_lock_was_made_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_pins(request: LockRequest) -> LockResult:
        return lock(
            LockRequest(name=request.name, requirements=request.requirements[:1], python="3.11", out=request.out)
        )

    monkeypatch.setattr(release_locks, "lock_release", without_pins)
    matrix = written(tmp_path, made(tmp_path, "jax==0.8.1"))
    assert matrix.environments["jax-0.8.1"].variants["cpu"].requirements == ("jax==0.8.1",)
    assert check_locks(tmp_path / "matrix.yaml", ()) == 1


def test_an_environment_of_the_program_comes_with_its_lock(tmp_path: Path) -> None:
    starter = made(tmp_path, "torch-1.12")
    matrix = written(tmp_path, starter)
    variant = matrix.environments["torch-1.12"].variants["cpu"]
    assert (variant.requirements, variant.lock) == (("torch==1.12.1", "numpy<2"), "locks/torch-1.12.txt")
    of_program = packaged_folder() / "docker" / "locks" / "torch-1.12.txt"
    assert read_lock(tmp_path / "locks" / "torch-1.12.txt") == read_lock(of_program)
    assert check_locks(tmp_path / "matrix.yaml", ()) == 1


def test_what_is_excluded_is_not_in_it(tmp_path: Path) -> None:
    words = ("numpy==2.3.0", "torch-2.1", "torch-2.4", "!torch-2.4", "numpy==2.4.5", "!numpy==2.3.0")
    chosen = list(written(tmp_path, made(tmp_path, *words)).environments)
    assert chosen == ["torch-2.1", "numpy-2.4.5"]


def test_without_releases_it_is_the_two_newest_of_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("on.py").write_text(NETWORK.format(name="NumpyModel"))
    matrix = written(tmp_path, made(tmp_path, model="on.py"))
    assert [*matrix.environments] == ["numpy-2.3.0", "numpy-2.4.6"]
    assert [*matrix.workloads] == ["on"]


@pytest.mark.parametrize(
    ("releases", "model", "error", "message"),
    [
        ((), None, UsageError, "nothing to measure"),
        (("numpy==2.3.0",), "nets.py:UNet", UsageError, "names model files"),
        (("numpy==2.3.0",), "../outside.py", UsageError, "outside of"),
        (("numpy==9.9",), None, NothingSelectedError, r"no wheel of numpy 9\.9"),
        (("torch-1.13",), None, UsageError, "torch-1.13 has no build for cpu"),
    ],
)
def test_what_cannot_be_in_a_matrix_is_refused(
    releases: tuple[str, ...],
    model: str | None,
    error: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("../outside.py").write_text(NETWORK.format(name="NumpyModel"))
    with pytest.raises(error, match=message):
        made(folder, *releases, model=model)


def test_a_matrix_that_is_made_on_aarch64_has_its_locks_for_aarch64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    matrix = written(tmp_path, made(tmp_path, "numpy==1.26.4"))
    variant = matrix.environments["numpy-1.26.4"].variant("cpu")
    assert variant is not None
    assert (variant.requirements, variant.lock) == (("numpy==1.26.4",), "locks/numpy-1.26.4.txt")
    assert check_locks(tmp_path / "matrix.yaml", []) == 1
    on_x86_64 = load(tmp_path / "matrix.yaml", architecture="x86_64").environments["numpy-1.26.4"].variant("cpu")
    assert on_x86_64 is not None
    assert (on_x86_64.requirements, on_x86_64.lock) == (("numpy==1.26.4",), None)
