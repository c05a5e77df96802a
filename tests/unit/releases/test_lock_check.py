"""`runner lock --check` compares locks and pins with the matrix; nothing is asked and nothing written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from runner import cli
from runner.backends.docker.image_names import MAX_PINS, pins
from runner.backends.lock_file import parse_lock
from runner.core.errors import MatrixError, ProvisionError, UsageError
from runner.matrix import load
from runner.releases import lock
from runner.releases.lock_check import check_locks, check_pins, mismatches, refuse_old_locks
from runner.releases.lock_requests import LockRequest

ROOT = Path(__file__).parents[3]
HASH = f"--hash=sha256:{'0' * 64}"
REQUIRED = "numpy<2, six; python_version < '3'"
HEADER = f"# made by `runner lock np` from: {REQUIRED}, Python 3.11, 2026-11-20"
LOCK = f"{HEADER}\nnumpy==1.26.4 {HASH}\n"
REQUEST = LockRequest(
    name="np", requirements=("numpy<2", "six; python_version < '3'"), python="3.11", out=Path("np.txt")
)
MATRIX = """\
version: 1
workloads: {rnn-step: {}}
environments:
  np:
    framework: numpy
    release: "1.26.4"
    python: "3.11"
    requirements: [numpy<2, six; python_version < '3']
    lock: np.txt
  unlocked: {framework: numpy, release: "2.0", python: "3.11", requirements: [numpy]}
  image: {framework: numpy, release: "2.0", image: "x:1"}
"""


def differences(text: str = LOCK, **changes: Any) -> list[str]:
    return list(mismatches(parse_lock(text.encode(), "np.txt"), replace(REQUEST, **changes)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "np.txt").write_text(LOCK)
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    return tmp_path / "matrix.yaml"


def test_a_lock_is_for_one_architecture() -> None:
    of_aarch64 = LOCK.replace("\n", "\n# for aarch64\n", 1)
    assert differences(of_aarch64, architecture="aarch64") == []
    assert differences(of_aarch64) == ["is for aarch64, but the matrix requires it for x86_64"]
    assert differences(architecture="aarch64") == ["is for x86_64, but the matrix requires it for aarch64"]


def test_a_lock_that_fits_has_no_mismatch() -> None:
    assert differences() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"python": "3.12"}, ["was made for Python 3.11, and the matrix has 3.12"]),
        (
            {"requirements": ("numpy<2",)},
            ["was made from numpy<2, six; python_version < '3', and the matrix requires numpy<2"],
        ),
        ({"index": "https://x/y"}, ["names no index, and the matrix https://x/y"]),
        (
            {"requirements": ("numpy<2", "six")},
            [
                "was made from numpy<2, six; python_version < '3', and the matrix requires numpy<2, six",
                "has no six, and the matrix requires six",
            ],
        ),
        (
            {"requirements": ("NumPy>=2", "six; python_version < '3'")},
            [
                f"was made from {REQUIRED}, and the matrix requires {REQUIRED.replace('numpy<2', 'NumPy>=2')}",
                "has NumPy 1.26.4, and the matrix requires NumPy>=2",
            ],
        ),
    ],
)
def test_a_change_of_the_matrix_is_a_mismatch(changes: dict[str, Any], expected: list[str]) -> None:
    assert differences(**changes) == expected


def test_a_change_of_the_lock_is_a_mismatch() -> None:
    assert differences(LOCK.replace("1.26.4", "2.0.0")) == ["has numpy 2.0.0, and the matrix requires numpy<2"]
    assert differences(LOCK.partition("\n")[2]) == ["does not say what it was made from"]
    head, _, rest = LOCK.partition("\n")
    assert differences(f"{head}\n--extra-index-url https://x/y\n{rest}") == [
        "names https://x/y, and the matrix no index"
    ]


def test_locks_are_counted_and_an_environment_whose_lock_the_matrix_does_not_name_is_not(path: Path) -> None:
    assert check_locks(path, []) == 1
    assert check_locks(path, ["unlocked"]) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "np.txt is missing"),
        (LOCK + "-e /path\n", "the lock is refused"),
        (LOCK.replace(HASH, ""), "numpy has no hash"),
        (LOCK.replace("3.11", "3.10"), "was made for Python 3.10"),
    ],
)
def test_a_lock_that_is_missing_refused_or_old_is_a_problem_with_its_place(
    path: Path, text: str | None, expected: str
) -> None:
    file = path.with_name("np.txt")
    file.unlink()
    if text is not None:
        file.write_text(text)
    with pytest.raises(ProvisionError) as caught:
        check_locks(path, [])
    (problem,) = caught.value.problems
    assert expected in problem.message
    assert problem.where is not None
    assert problem.where.file in {str(path), str(file)}
    assert "runner lock" in str(problem.hint)
    assert caught.value.exit_code == 1


def test_a_lock_of_an_extension_follows_the_versions_of_the_other_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text(f"{MATRIX}  np-tqdm: {{extends: np, add: [tqdm]}}\n")
    resolved = f"numpy==1.26.4 {HASH}\ntqdm==4.67.1 {HASH}\n"
    monkeypatch.setattr(lock, "_resolve", lambda _: resolved)
    ((written, _),) = lock.lock_environments(path, ["np-tqdm"], None)
    assert check_locks(path, ["np-tqdm"]) == 1
    base = path.with_name("np.txt")
    base.write_text(LOCK.replace("2026-11-20", "2026-11-25").replace("0" * 64, "1" * 64))
    assert check_locks(path, ["np-tqdm"]) == 1
    base.write_text(LOCK.replace("1.26.4", "1.26.5"))
    with pytest.raises(ProvisionError, match=f"{written} was made before the lock of np got its versions"):
        check_locks(path, [])
    assert [changed for _, changed in lock.lock_environments(path, ["np-tqdm"], None)] == [True]
    assert check_locks(path, []) == 2
    base.write_text("--index-url https://x\n")
    with pytest.raises(ProvisionError) as caught:
        check_locks(path, [])
    assert len(caught.value.problems) == 1


def test_pins_are_of_images_that_the_matrix_names(path: Path) -> None:
    folder = path.parent / "docker"
    names = ("python:3.11-slim", "x:1")
    assert check_pins(path, complete=False) == names
    with pytest.raises(ProvisionError) as caught:
        check_pins(path, complete=True)
    assert len(caught.value.problems) == 2
    folder.mkdir()
    text = "[images]\n" + "".join(f'"{name}" = "sha256:{"0" * 64}"\n' for name in names)
    (folder / "pins.toml").write_text(text)
    assert check_pins(path, complete=True) == ()
    (folder / "pins.toml").write_text(f'{text}"gone:1" = "sha256:{"0" * 64}"\n')
    with pytest.raises(ProvisionError, match="pins gone:1, which the matrix does not use"):
        check_pins(path, complete=False)


@pytest.mark.parametrize(
    "content",
    [
        *(b"[images", b"images = 'x'", b"[images]\n'x' = 1", b"[images]\n'x' = 'sha256:00'", b"images = 3", b"\xff"),
        *(b"images = " + b"[" * 3000, b"images = [[]]", b"[images]\nx.y = 'z'", b"#" * (MAX_PINS + 1)),
    ],
)
def test_pins_that_cannot_be_read_are_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pins.toml").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        pins(tmp_path / "pins.toml")
    assert caught.value.problems[0].hint


def test_pins_that_do_not_exist_are_none(tmp_path: Path) -> None:
    assert pins(tmp_path / "pins.toml") == {}


def test_the_shipped_locks_fit_the_shipped_matrix() -> None:
    assert check_locks(ROOT / "matrix.yaml", []) == 37
    check_pins(ROOT / "matrix.yaml", complete=False)


def test_the_command_names_what_does_not_fit(path: Path) -> None:
    good = CliRunner().invoke(cli.app, ["lock", "--check", "--matrix", str(path)], standalone_mode=False)
    assert (good.exception, good.return_value) == (None, 0)
    path.with_name("np.txt").write_text(LOCK.replace("3.11", "3.10"))
    bad = CliRunner().invoke(cli.app, ["lock", "--check", "--matrix", str(path)], standalone_mode=False)
    assert isinstance(bad.exception, ProvisionError)


def test_an_old_lock_is_refused_and_one_of_unknown_origin_is_not(path: Path) -> None:
    def refuse() -> None:
        refuse_old_locks(path, load(path), ["np"], "cpu")

    refuse()
    for text in (LOCK.partition("\n")[2], "-e /path\n"):
        path.with_name("np.txt").write_text(text)
        refuse()
    path.with_name("np.txt").write_text(LOCK)
    path.write_text(path.read_text().replace("numpy<2", "numpy<2.1"))
    with pytest.raises(MatrixError) as caught:
        refuse()
    assert {problem.hint for problem in caught.value.problems} == {"`runner lock np` writes it"}
    assert (
        "was made from numpy<2, six; python_version < '3', and the matrix requires numpy<2.1"
        in caught.value.problems[0].message
    )
    path.with_name("np.txt").unlink()
    refuse()
