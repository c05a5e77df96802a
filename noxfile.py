"""What one does with this repository; ``nox -l`` lists it."""

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "tests"]


@nox.session
def matrix(session: nox.Session) -> None:
    """Build and run the quick preset on this machine, then write and name the report."""
    session.install("-e", ".")
    session.run("runner", "run", "--preset", "quick", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests that need no GPU; with ``-- --run-docker`` a missing engine is a failure."""
    session.install("-e", ".", "--group", "test")
    session.run("pytest", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Run every check of .pre-commit-config.yaml on every file."""
    session.install("-e", ".", "--group", "lint", "--group", "test")
    session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure", *session.posargs)


@nox.session
def harness(session: nox.Session) -> None:
    """Run the harness under every interpreter there is here, and its protocol both ways."""
    session.install("-e", ".", "--group", "test")
    session.run("pytest", "tests/harness", *session.posargs)


@nox.session
def integration(session: nox.Session) -> None:
    """Run the tests that need an engine; a missing one is a failure."""
    session.install("-e", ".", "--group", "test")
    session.run("pytest", "tests/integration", "--run-docker", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure what this program costs, side by side with its peers."""
    session.install("-e", ".", "nox")
    session.run("python", "benchmarks/costs.py", *session.posargs)
