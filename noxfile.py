"""What one does with this repository; ``nox -l`` lists it."""

import hashlib
import os
import shutil
import tomllib
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|venv"  # uv installs in seconds what takes pip a minute; `pip install nox[uv]`
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "tests"]


CONSTRAINTS = "constraints.txt"
"""The version of every package that a session may install; ``nox -s lock`` renews it."""
PARALLEL = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
"""Two files of tests at a time, in the order of their names: the slow ones do not come last."""
PATIENT = {"interrupt_timeout": 60.0, "terminate_timeout": 60.0}
"""After Ctrl-C, the seconds in which a run removes its containers and says how to continue; nox gives it half a one."""
BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Where this variable is set, each command that a test runs compiles all of its libraries again: twice the seconds."""
GROUPS = ("audit", "bench", "docs", "lint", "release", "test")


def install(session: nox.Session, *groups: str) -> None:
    """Install this project and dependency groups in the versions of CONSTRAINTS, again only if one of them changed."""
    arguments = ["-c", CONSTRAINTS, "-e", ".", *(word for group in groups for word in ("--group", group))]
    made = Path(session.virtualenv.location, "installed")
    declared = Path("pyproject.toml").read_bytes() + Path(CONSTRAINTS).read_bytes()
    digest = hashlib.sha256(declared + " ".join(arguments).encode()).hexdigest()
    if not made.exists() or made.read_text() != digest:
        if session.venv_backend != "uv":
            session.install("-c", CONSTRAINTS, "pip>=25.1")  # the first that knows dependency groups
        session.install(*arguments)
        made.write_text(digest)


@nox.session
def matrix(session: nox.Session) -> None:
    """Build and run the quick preset on this machine, then write and name the report."""
    install(session)
    session.run("runner", "run", "--preset", "quick", *session.posargs, **PATIENT)
    program = Path(os.path.relpath(session.bin), "runner")
    session.log(f"{program} open: shows the report; {program} new my_network.py: starts with a network of yours")


@nox.session
def quick(session: nox.Session) -> None:
    """Run ruff, mypy and the unit tests that what changed can break, without simulations and whole matrices."""
    install(session, "lint", "test")
    session.run("python", "tests/quick.py", *session.posargs, env=BYTECODE)


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests that need no GPU and no framework, two files at a time.

    With ``-- --need docker`` a missing engine is a failure; ``-- -n 0`` runs one test at a time.
    """
    install(session, "test")
    session.run("pytest", "--ignore=tests/frameworks", *PARALLEL, *session.posargs, env=BYTECODE)


@nox.session
def lint(session: nox.Session) -> None:
    """Run every check of .pre-commit-config.yaml on every file."""
    install(session, "lint", "test")
    session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Write the generated pages and pictures, and build the site of the documentation into build/docs."""
    install(session, "docs")
    session.run("python", "docs/generate.py")
    session.run("mkdocs", "build", "--strict", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def harness(session: nox.Session) -> None:
    """Run the harness under every interpreter there is here, and its protocol both ways."""
    install(session, "test")
    session.run("pytest", "tests/harness", *session.posargs)


@nox.session
def frameworks(session: nox.Session) -> None:
    """Check every implementation, and planted errors, in the real framework environments (downloads 3 GB)."""
    install(session, "test")
    session.run("pytest", "tests/frameworks", "--need", "frameworks", *session.posargs, env=BYTECODE)


@nox.session
def releases(session: nox.Session) -> None:
    """Install each minor release of the frameworks for the CPU, start it, remove it; ``-- -k tensorflow`` chooses."""
    install(session, "test")
    session.run(
        "pytest", "tests/frameworks/test_releases.py", "-n", "0", "--need", "releases", *session.posargs, env=BYTECODE
    )


@nox.session
def integration(session: nox.Session) -> None:
    """Run the tests that need an engine; a missing one is a failure."""
    install(session, "test")
    session.run("pytest", "tests/integration", "--need", "docker", *PARALLEL, *session.posargs, env=BYTECODE)


@nox.session
def faults(session: nox.Session) -> None:
    """Run the real program and break it, in every way of docs/faults.md; ``-- -k disk`` chooses."""
    install(session, "test")
    session.run("pytest", "tests/faults", "--need", "faults", "-n", "3", *session.posargs, env=BYTECODE)


@nox.session
def nightly(session: nox.Session) -> None:
    """Measure a night, compare with the last good runs, and fail where a regression is confirmed in turns."""
    install(session)
    session.run("runner", "nightly", *session.posargs, **PATIENT)


@nox.session
def pins(session: nox.Session) -> None:
    """Ask the registries what the images of the matrix stand for now, and write docker/pins.toml."""
    install(session)
    session.run("runner", "lock", "--images", *session.posargs)


@nox.session
def lock(session: nox.Session) -> None:
    """Write the newest versions that pyproject.toml allows to CONSTRAINTS; ``-- -P NAME`` renews one package."""
    session.install("uv>=0.7")
    words = [word for group in GROUPS for word in ("--group", group)]
    words += ["--universal", "--python-version", "3.11", "--no-annotate", "--custom-compile-command", "nox -s lock"]
    renewed = session.posargs or ["--upgrade"]
    session.run("uv", "pip", "compile", "pyproject.toml", "--all-extras", *words, "-q", "-o", CONSTRAINTS, *renewed)


@nox.session
def audit(session: nox.Session) -> None:
    """Look for known vulnerabilities in what the runner depends on; where no advisory service answers, say so."""
    install(session, "audit")
    session.run("python", "tests/audit.py", *session.posargs)


@nox.session
def release(session: nox.Session) -> None:
    """Build the sdist and the wheel, try the wheel in a clean environment, and print what is left; pushes nothing."""
    install(session, "release")
    version = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]
    shutil.rmtree("dist", ignore_errors=True)
    session.run("uv", "build", "--quiet", "--out-dir", "dist")
    session.run("python", "tests/wheel.py", f"dist/matrix_runner-{version}-py3-none-any.whl")
    session.run("towncrier", "build", "--draft", "--version", version)
    session.log(f"dist/ has {version}. If CHANGELOG.md has it, too: git tag -s v{version} -m 'matrix-runner {version}'")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure what this program costs, side by side with its peers; ``-- startup planning`` chooses figures."""
    install(session, "bench")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def regressions(session: nox.Session) -> None:
    """Measure the public regressions that docs/regressions.md has no line for; ``-- jax-while-loop`` chooses."""
    install(session)
    session.run("python", "-m", "benchmarks.regressions", *session.posargs, **PATIENT)


@nox.session
def gpu(session: nox.Session) -> None:
    """Try the first day with a GPU, in half an hour: one folder, with a page that says what held and what did not."""
    install(session)
    session.run("python", "-m", "benchmarks.first_day", *session.posargs, **PATIENT)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Give the readers inputs that are almost right, for ten minutes each; ``-- wire --inputs 1000000`` chooses."""
    install(session, "test")
    session.run("python", "-m", "tests.fuzz", *(session.posargs or ["all", "--minutes", "10", "--inputs", "1000000"]))
