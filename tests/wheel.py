"""Check a wheel as a user gets it: what is in it, and that it works in a clean environment, away from this repository.

``nox -s release`` runs it with the wheel that it built.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "runner"
MUST_HAVE = (
    *("harness/server.py", "report/templates/page.html.j2", "catalog/hardware/builds.csv"),
    *("defaults/matrix.yaml", "defaults/docker/numpy.Dockerfile", "defaults/docker/locks/jax-cpu.txt"),
    *("defaults/docker/pins.toml", "defaults/examples/starters/torch.py"),
)
"""One file of each kind that is easily left out, in case this check looks into the wrong folder."""
MATRIX = """\
version: 1
environments:
  torch-1.0: {framework: torch, release: "1.0.0", image: "python:3.6"}
workloads:
  rnn-step: {phases: [forward]}
"""
SELECTOR = "*/rnn-step/lstm-b32-h128"
MEASURE = ("--backend", "host", "--framework", "numpy", "--device", "cpu", "--no-pin", "--busy-ok")
SHORT = ("--rounds", "1", "--max-rounds", "1", "--seconds", "0.05")
NETWORK = "my_network.py"
NEWCOMERS: tuple[tuple[str, ...], ...] = (
    ("plan", "numpy==2.3.0"),
    ("list", "environments"),
    ("new", NETWORK, "--framework", "numpy"),
    ("init", "numpy==2.2.6", "numpy==2.3.0", "--model", NETWORK),
    ("plan",),
    ("doctor", "--device", "cpu"),
)
"""What a newcomer types in an empty folder; the wheel has the matrix, the Dockerfiles, the locks and the starters."""


def missing(wheel: Path) -> list[str]:
    """Return the files of the package, and the licence, that the wheel lacks."""
    paths = [path for path in (ROOT / PACKAGE).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    names = [path.relative_to(ROOT).as_posix() for path in paths] + [f"{PACKAGE}/{name}" for name in MUST_HAVE]
    with zipfile.ZipFile(wheel) as archive:
        packed = archive.namelist()
    licence = [] if any(name.endswith(".dist-info/licenses/LICENSE") for name in packed) else ["LICENSE"]
    return sorted({*names} - {*packed}) + licence


def private(folder: Path) -> dict[str, str]:
    """Return an environment in which the program knows nothing of this user and of this checkout."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "MATRIX_RUNNER_"))}
    names = ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PIPX_HOME", "PIPX_BIN_DIR")
    caches = {"PIP_CACHE_DIR": Path.home() / ".cache" / "pip", "UV_CACHE_DIR": Path.home() / ".cache" / "uv"}
    return {
        **environ,
        **{name: str(folder / name) for name in names},
        **{name: environ.get(name, str(path)) for name, path in caches.items()},
    }


def use(wheel: Path, folder: Path) -> None:
    """Install a wheel into a clean environment below a folder, and measure one cell with it.

    Raises:
        subprocess.CalledProcessError: a command failed; its output is on the terminal.
        ValueError: the program has another version than the wheel.
    """
    environment, work, empty = folder / "environment", folder / "work", folder / "empty"
    for each in (work, empty):
        each.mkdir()
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python, runner = (environment / "bin" / name for name in ("python", "runner"))
    quiet = ("--quiet", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt")
    subprocess.run([python, "-m", "pip", "install", *quiet, wheel], check=True)
    (work / "matrix.yaml").write_text(MATRIX)
    for arguments in (
        ("--version",),
        ("--help",),
        ("plan", "--backend", "host", "--python", python, SELECTOR),
        ("run", SELECTOR, "--python", python, *MEASURE, *SHORT),
        ("accuracy",),
        ("report",),
    ):
        subprocess.run([runner, *arguments], check=True, cwd=work, env=private(folder))
    for words in NEWCOMERS:
        subprocess.run([environment / "bin" / "matrix-runner", *words], check=True, cwd=empty, env=private(folder))
    printed = subprocess.run([runner, "--version"], check=True, capture_output=True, text=True).stdout.split()
    version = wheel.name.split("-")[1]
    if printed != ["runner", version]:
        raise ValueError(f"the wheel has version {version}, and `runner --version` prints {' '.join(printed)}")


def use_as_tool(wheel: Path, folder: Path) -> None:
    """Start the program of a wheel by ``uvx`` and by ``pipx``, each in an empty folder.

    Raises:
        subprocess.CalledProcessError: a command failed; its output is on the terminal.
    """
    constraints = str(ROOT / "constraints.txt")
    uvx = ("uv", "tool", "run", "--quiet", "--python", sys.executable)
    pipx = (*uvx, "pipx", "run", "--quiet", "--python", sys.executable, f"--pip-args=--constraint={constraints}")
    for number, starter in enumerate(
        (
            (*uvx, "--constraints", constraints, "--from", str(wheel), "matrix-runner"),
            (*pipx, "--spec", str(wheel), "matrix-runner"),
        )
    ):
        empty = folder / f"empty-{number}"
        empty.mkdir()
        subprocess.run([*starter, "plan", "numpy==2.3.0"], check=True, cwd=empty, env=private(folder))


def main(path: str) -> int:
    """Check a wheel; return the exit status."""
    wheel = Path(path).resolve()
    lacking = missing(wheel)
    if lacking:
        print(f"{wheel.name} lacks {', '.join(lacking)}", file=sys.stderr)  # noqa: T201  it is a program
        return 1
    with tempfile.TemporaryDirectory(prefix="matrix-runner-wheel-") as folder:
        use(wheel, Path(folder))
        use_as_tool(wheel, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
