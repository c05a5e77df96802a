"""The inner loop: ruff, mypy's daemon, and the unit tests that what changed can break; ``nox -s quick``.

Only files of ``tests/unit`` run that import what changed, directly or through others, and those that read the project
as text; no simulations, and no plans of the whole matrix. The first step that fails is the last.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import grimp

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
        options: for pytest, such as ``-k name``; ``--all`` runs every unit test, whatever changed.
    """
    changed = changed_files()
    first = tests_of(changed)
    others = [path for path in affected_tests(changed) if not {path, *path.parents} & set(first)]
    if "--all" in options:
        options = [option for option in options if option != "--all"]
        others = [path for path in unit_tests() if not {path, *path.parents} & set(first)]
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
    commands.append(("other unit tests", *pytest, "-n", "2", "--dist", "worksteal", *map(str, others), *options))
    print(f"{len(others)} of {len(unit_tests())} files of unit tests run beside those of what changed")
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


def unit_tests() -> list[Path]:
    """Return all files of unit tests."""
    return sorted(UNIT.rglob("test_*.py"))


def affected_tests(files: Sequence[Path]) -> list[Path]:
    """Return the files of unit tests that a change of files can break.

    They import a changed module, directly or through others, or stand in ``tests/unit`` itself: those read the project
    as text. Where a file is neither a page nor a module that can be imported, such as a template, a conftest or
    ``pyproject.toml``, all can break.
    """
    graph = grimp.build_graph("runner", "tests", cache_dir=str(ROOT / ".mypy_cache" / "grimp"))
    seen: set[str] = set()
    for path in files:
        if path.suffix == ".md":
            continue
        module = _module(path)
        if path.name == "conftest.py" or module not in graph.modules:
            return unit_tests()
        seen |= {module, *graph.find_downstream_modules(module)}
    return [path for path in unit_tests() if path.parent == UNIT or _module(path) in seen]


def _module(path: Path) -> str:
    """Return the name by which a file is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


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
