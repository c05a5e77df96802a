"""The inner loop: ruff, mypy's daemon, and the unit tests, those of what changed first; ``nox -s quick``.

Only the tests of ``tests/unit`` run, without simulations and without plans of the whole matrix. The first step that
fails is the last.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNNER = ROOT / "runner"
UNIT = ROOT / "tests" / "unit"
INNER_LOOP = "not simulation and not whole_matrix"
NOTHING_RAN = 5  # pytest's exit code where the markers leave out every test
DAEMON = ".mypy_cache/daemon.json"
"""Where mypy's daemon says how to reach it. It ends after an idle hour."""
SLOWEST = ("--durations=5", "--durations-min=1")


def main(options: Sequence[str]) -> int:
    """Run the steps; print the seconds of each.

    Args:
        options: for pytest, such as ``-k name``.
    """
    first = tests_of(changed_files())
    commands = [
        ("ruff check", "ruff", "check", "--quiet"),
        ("ruff format", "ruff", "format", "--check", "--quiet"),
        ("mypy", "dmypy", "--status-file", DAEMON, "run", "--timeout", "3600"),
        ("import-linter", "lint-imports"),
    ]
    pytest = (sys.executable, "-m", "pytest", "-m", INNER_LOOP, *SLOWEST)
    if first:
        commands.append(("tests of what changed", *pytest, *map(str, first), *options))
    # --dist worksteal: a core that has no test left takes tests from the other
    others = ("-n", "2", "--dist", "worksteal", *(f"--ignore={path}" for path in first))
    commands.append(("other unit tests", *pytest, *others, str(UNIT), *options))
    begin = time.monotonic()
    for what, *command in commands:
        if code := timed(what, command):
            return code
    print(f"quick: {time.monotonic() - begin:.0f} s")
    return 0


def timed(what: str, command: Sequence[str]) -> int:
    """Run a command, print its seconds, and return its exit code; print the output of a check only if it fails."""
    begin = time.monotonic()
    is_check = "pytest" not in command
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=is_check, text=True)
    if is_check and done.returncode:
        print(done.stdout + done.stderr)
    code = 0 if not is_check and done.returncode == NOTHING_RAN else done.returncode
    print(f"{what}: {time.monotonic() - begin:.1f} s{f', exit code {code}' if code else ''}", flush=True)
    return code


def changed_files() -> list[Path]:
    """Return the files that differ from the branch point of ``main``, and those that git does not know."""
    branched = _git("merge-base", "HEAD", "main") or _git("merge-base", "HEAD", "origin/main") or ["HEAD"]
    names = _git("diff", "--name-only", "--no-renames", branched[0])
    names += _git("ls-files", "--others", "--exclude-standard")
    return sorted(path for path in {ROOT / name for name in names} if path.exists())


def tests_of(files: Sequence[Path]) -> list[Path]:
    """Return the unit tests of files: of ``runner/a/b.py`` those in ``tests/unit/a/test_b.py`` or ``tests/unit/a/b/``.

    Where no test has the name of the module, the tests of the nearest folder stand for it.
    """
    tests: dict[Path, None] = {}
    for path in files:
        if path.suffix != ".py":
            continue
        if path.is_relative_to(UNIT) and path.name.startswith("test_"):
            tests[path] = None
        elif path.is_relative_to(RUNNER):
            tests.update(dict.fromkeys(_tests_of_module(path.relative_to(RUNNER))))
    return [path for path in tests if not tests.keys() & set(path.parents)]


def _tests_of_module(module: Path) -> list[Path]:
    """Return the tests of a module, given below ``runner``."""
    if module.name == "__init__.py":
        module = module.parent
    folder = UNIT / module.parent
    named = [folder / f"test_{module.stem}.py", *sorted(folder.glob(f"test_{module.stem}_*.py")), folder / module.stem]
    tests = [path for path in named if path.exists()]
    while not tests and folder != UNIT:
        tests = [folder] if folder.is_dir() and any(folder.rglob("test_*.py")) else []
        folder = folder.parent
    return tests


def _git(*arguments: str) -> list[str]:
    """Return the lines that git prints; none where it fails."""
    done = subprocess.run(("git", *arguments), cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
