"""Locks are the same on every machine, and change only when a package does."""

import re
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from runner.backends.lock_file import LOCK_BYTES, parse_lock
from runner.core.errors import MatrixError, ProvisionError
from runner.releases import lock
from runner.releases.lock_requests import LockRequest

HERE = Path(__file__).parents[3]
LOCKS = sorted((HERE / "docker" / "locks").glob("*.txt"))
PUBLIC_INDEX = "https://download.pytorch.org/whl/"
DAY = date(2026, 11, 20)
RESOLVED = """\
--index-url https://user:secret@mirror.example/simple
--find-links /somewhere/wheels
numpy==1.19.5 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via
    #   -r -
    #   torch
torch==1.0.0 \\
    --hash=sha256:cc
    # via -r -
"""


def request(path: Path = Path("lock.txt"), *, index: str | None = None, find_links: str | None = None) -> LockRequest:
    return LockRequest(
        name="torch-1.0",
        requirements=("torch==1.0.0", "numpy"),
        python="3.6",
        out=path,
        index=index,
        find_links=find_links,
    )


def test_the_header_says_how_to_make_the_lock_again() -> None:
    expected = "# made by `runner lock torch-1.0` from: torch==1.0.0, numpy, Python 3.6, 2026-11-20"
    assert lock.header_of(request(), DAY) == expected


def test_the_command_asks_for_hashes_and_the_target() -> None:
    command = lock.command_of("uv", request())
    assert command[:4] == ["uv", "pip", "compile", "-"]
    assert "--generate-hashes" in command
    assert command[command.index("--python-version") + 1] == "3.6"
    assert "--index" not in command
    assert "--find-links" not in command


def test_an_index_is_asked_beside_pypi_as_pip_would() -> None:
    command = lock.command_of("uv", request(index="https://index.example/cpu"))
    assert command[command.index("--index") + 1] == "https://index.example/cpu"
    assert command[command.index("--index-strategy") + 1] == "unsafe-best-match"


def test_a_folder_of_wheels_is_asked_instead_of_the_index() -> None:
    command = lock.command_of("uv", request(index="https://index.example/cpu", find_links="wheels"))
    assert command[command.index("--find-links") + 1] == "wheels"
    assert "--index" not in command


def test_the_packages_of_a_day_are_taken_and_the_lock_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    of_day = replace(request(), as_of=date(2023, 8, 4))
    command = lock.command_of("uv", of_day)
    assert command[command.index("--exclude-newer") + 1] == "2023-08-04"
    assert command[command.index("--exclude-newer-package") + 1] == "jaxlib=2100-01-01"
    monkeypatch.setattr(lock, "_resolve", lambda _: f"numpy==1.26.4 --hash=sha256:{'0' * 64}\n")
    assert lock.resolved(of_day, date(2026, 11, 26)).splitlines()[1] == "# the packages of 2023-08-04"
    assert "--exclude-newer" not in lock.command_of("uv", request())


def test_packages_that_were_named_are_of_any_day() -> None:
    command = lock.command_of("uv", replace(request(), as_of=date(2023, 8, 4), exact=("Numpy==1.19.5",)))
    assert "numpy=2100-01-01" in command


def test_overrides_are_given_to_uv_and_named_by_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def output_of(command: list[str], _: LockRequest) -> str:
        given.append(Path(command[command.index("--overrides") + 1]).read_text())
        return f"numpy==1.26.4 --hash=sha256:{'0' * 64}\n"

    monkeypatch.setattr(lock, "_output_of", output_of)
    text = lock.resolved(replace(request(), overrides=("numpy==1.26.4", "six==1.17.0")), DAY)
    assert given == ["numpy==1.26.4\nsix==1.17.0\n"]
    assert parse_lock(text.encode(), "lock").overrides == ("numpy==1.26.4", "six==1.17.0")


def test_nothing_of_this_machine_stays() -> None:
    body = lock.clean(RESOLVED, request())
    assert "example" not in body
    assert "somewhere" not in body
    assert "    #   (asked for)\n    #   torch\n" in body
    assert body.startswith("numpy==1.19.5 \\\n    --hash=sha256:aa \\\n")
    assert body.endswith("# via (asked for)\n")


def test_a_package_from_a_place_is_refused_without_showing_the_password() -> None:
    placed = "torch @ https://me:secret@mirror.example/torch.whl \\\n    --hash=sha256:cc\n"
    with pytest.raises(ProvisionError, match="is a path or an address") as caught:
        lock.clean(placed, request())
    assert "secret" not in str(caught.value)
    assert caught.value.code == "lock"


def test_an_index_with_a_password_is_refused_before_uv_starts() -> None:
    with pytest.raises(ProvisionError, match="use a public index") as caught:
        lock.lock(request(index="https://me:secret@mirror.example/simple"), DAY)
    assert "secret" not in str(caught.value)


def test_a_package_without_a_hash_is_refused() -> None:
    with pytest.raises(ProvisionError, match=r"'six==1\.17\.0' has no hash"):
        lock.clean("six==1.17.0\n    # via -r -\n", request())


@pytest.mark.parametrize("option", ["-e /path", "-r /etc/hostname", "--pre", "--no-binary :all:"])
def test_an_option_is_refused_wherever_it_stands(option: str) -> None:
    for resolved in (option + "\n" + RESOLVED, RESOLVED + option + "\n", f"numpy==1 --hash=sha256:aa\n    {option}\n"):
        with pytest.raises(ProvisionError, match="a lock has no option such as"):
            lock.clean(resolved, request())


def test_what_is_written_was_read_as_a_lock_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"numpy==1.19.5 --hash=sha256:{'0' * 64}\n"
    monkeypatch.setattr(lock, "_resolve", lambda _: body)
    result = lock.lock(request(tmp_path / "lock.txt"), DAY)
    assert (result.changed, result.packages) == (True, (("numpy", "1.19.5"),))
    with pytest.raises(ProvisionError, match="the lock is refused"):
        lock.lock(replace(request(tmp_path / "other.txt"), requirements=("numpy\n-e /path",)), DAY)
    assert not (tmp_path / "other.txt").exists()


MATRIX = """\
version: 1
workloads: {rnn-step: {}}
environments:
  np: {framework: numpy, release: "2.0", python: "3.11", requirements: [numpy], lock: LOCK}
  new: {framework: numpy, release: "2.0", python: "3.11", variants: {cpu: {requirements: [numpy]}}}
"""


def locked_paths(folder: Path, name: str, lock_path: str) -> list[Path]:
    (folder / "matrix.yaml").write_text(MATRIX.replace("LOCK", lock_path))
    return [path for path, _ in lock.lock_environments(folder / "matrix.yaml", [name], None)]


def test_a_lock_is_written_below_the_folder_of_the_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_resolve", lambda _: f"numpy==1.19.5 --hash=sha256:{'0' * 64}\n")
    (tmp_path / "docker" / "locks").mkdir(parents=True)
    assert locked_paths(tmp_path, "np", "np.txt") == [tmp_path / "np.txt"]
    assert locked_paths(tmp_path, "np", "np.txt") == [tmp_path / "np.txt"]
    assert locked_paths(tmp_path, "new", "np.txt") == [tmp_path / "docker" / "locks" / "new-cpu.txt"]


@pytest.mark.parametrize(
    ("name", "path", "message"),
    [
        ("np", "no/such/folder/x.txt", "there is no folder"),
        ("new", "x.txt", "there is no folder"),
        ("np", "../x", "has to be below"),
        ("np", "/abs/x", "has to be below"),
        ("np", "folder", "is a folder"),
        ("np", "outside/x", "is outside of"),
        ("np", "link.txt", "is a link"),
        ("np", "matrix.yaml", "is a file that `runner lock` did not write"),
    ],
)
def test_a_lock_that_cannot_be_written_is_a_mistake_of_the_matrix_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, path: str, message: str
) -> None:
    folder = tmp_path / "matrix"
    (folder / "folder").mkdir(parents=True)
    (folder / "outside").symlink_to(tmp_path)
    (folder / "target.txt").touch()
    (folder / "link.txt").symlink_to("target.txt")
    monkeypatch.setattr(lock, "_resolve", lambda _: pytest.fail("nothing is resolved"))
    with pytest.raises(MatrixError, match=message.replace("has to be below", "below the matrix file's")) as caught:
        locked_paths(folder, name, path)
    (problem,) = caught.value.problems
    assert problem.hint
    assert problem.where is not None
    assert (problem.where.file, problem.where.line) == (str(folder / "matrix.yaml"), 4 if name == "np" else 5)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["matrix"]


def test_uv_is_asked_by_the_client_of_indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives uv no folder with settings, and limits its time and memory."""
    texts = []

    def run(_command: object, text: str, _seconds: float) -> subprocess.CompletedProcess[str]:
        texts.append(text)
        return subprocess.CompletedProcess([], 0, f"numpy==1.19.5 --hash=sha256:{'0' * 64}\n", "")

    monkeypatch.setattr("runner.releases.lock.run_client", run)
    lock.lock(request(tmp_path / "lock.txt"), DAY)
    assert texts == ["torch==1.0.0\nnumpy\n"]


def test_pins_are_names_and_versions() -> None:
    text = RESOLVED + "tensorflow[and-cuda]==2.21.0 \\\n    --hash=sha256:dd\nsix==1.17.0 ; python_version < '3'\n"
    assert lock.pins(text) == (
        ("numpy", "1.19.5"),
        ("torch", "1.0.0"),
        ("tensorflow", "2.21.0"),
        ("six", "1.17.0"),
    )


def test_the_date_alone_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "lock.txt"
    old = lock.header_of(request(), date(2020, 1, 1)) + "\n" + RESOLVED
    new = lock.header_of(request(), DAY) + "\n" + RESOLVED
    assert not lock.same(new, path)
    path.write_text(old)
    assert lock.same(new, path)
    path.write_text(old + "#" * LOCK_BYTES)
    assert not lock.same(new, path)


def test_other_requirements_or_another_hash_are_a_change(tmp_path: Path) -> None:
    path = tmp_path / "lock.txt"
    text = lock.header_of(request(), DAY) + "\n" + RESOLVED
    path.write_text(text)
    assert not lock.same(text.replace("from: torch", "from: torchvision, torch"), path)
    assert not lock.same(text.replace("sha256:cc", "sha256:cd"), path)


def test_of_uv_s_complaints_the_last_without_warnings_are_shown() -> None:
    stderr = (
        "warning: Failed to inspect an interpreter\n  cause: it answered 127\n\n     [stderr] noise\n"
        "error: No solution found\n  cause: only numpy<=2 is available at https://me:secret@mirror.example/simple\n"
    )
    assert lock.useful_lines(stderr) == (
        "error: No solution found\n  cause: only numpy<=2 is available at https://mirror.example/simple"
    )
    assert lock.useful_lines(stderr, limit=1).startswith("  cause:")


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_a_shipped_lock_is_complete_and_names_no_machine(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    names = (path.stem, re.sub(r"-(cpu|cuda)(-[0-9.]+)?(-aarch64)?$", "", path.stem))
    assert lines[0].startswith(tuple(f"# made by `runner lock {name}` from: " for name in names))
    options = [line for line in lines if line.startswith("-")]
    assert all(line.startswith(f"--extra-index-url {PUBLIC_INDEX}") for line in options)
    rest = "\n".join(line for line in lines if line not in options)
    assert "://" not in rest
    assert " @ " not in rest
    assert lock.clean(rest, request()) == rest + "\n"
