"""The real framework environments, as the venv backend makes them from the locks of the shipped matrix."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.backends.venv import READY, VenvBackend
from runner.core.paths import cache_folder
from runner.matrix import load
from runner.plan.specs import specs
from tests.frameworks import drive
from tests.support import needs, private_folders

ROOT = Path(__file__).parents[2]
LONGEST = ("test_shipped_matrix.py", "test_torch.py", "test_example_networks.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take minutes: a worker that got one of them last would be the only one at work."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


@pytest.fixture(scope="module")
def python(environment: str, request: pytest.FixtureRequest) -> Path:
    """The interpreter of an environment; one that is not made yet is made with --need frameworks, else skipped."""
    return interpreter(environment, request)


def interpreter(environment: str, request: pytest.FixtureRequest) -> Path:
    """Return what ``python`` is for an environment: the user's if it is complete, else that of the tests."""
    backend = VenvBackend(cache_folder(os.environ))
    (spec,), _ = specs(load(ROOT / "matrix.yaml"), [environment], "cpu", ROOT)
    survey = backend.survey([spec])
    users = VenvBackend(private_folders.users_cache())
    if environment not in survey.skips and (users.home(spec) / READY).exists():
        return users.home(spec) / "bin" / "python"
    if not needs.given(request.config, "frameworks"):
        if environment in survey.skips:
            pytest.skip(survey.skips[environment].reason)
        if environment not in survey.cached:
            pytest.skip(f"{environment} is not made yet: --need frameworks makes it")
    return Path(backend.provision(spec, print).handle)


@pytest.fixture(scope="module")
def client(python: Path, environment: str) -> Iterator[drive.Client]:
    """A live server in an environment."""
    framework = load(ROOT / "matrix.yaml").environments[environment].framework
    with drive.server(python, framework) as client:
        hello = client.hello()
        assert hello["status"] == "ok", hello
        yield client
