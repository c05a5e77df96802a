"""Every release that the matrix ships, and each minor release of four frameworks, starts on the CPU and says its facts.

Environments of the matrix are those of conftest.py. Of a release without one, a virtual environment is made and removed
at once: with ``--need releases``, one at a time, for it takes up to 2 GB.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from uv import find_uv_bin

from runner.backends import interpreters
from runner.matrix import Environment, load
from runner.matrix.environments import package_name
from tests.frameworks import drive
from tests.frameworks.conftest import ROOT, interpreter
from tests.support import needs

pytestmark = pytest.mark.frameworks

MATRIX = load(ROOT / "matrix.yaml")
INSTALL_SECONDS = 1800.0
FIRST_OF_UV = (3, 8)
"""The first Python that uv installs packages for; pip does for older ones."""


class Release(NamedTuple):
    """A release to start.

    Attributes:
        framework: the framework.
        minor: the beginning of its version.
        python: the version of Python.
        requirements: what is installed, the framework first.
        extra_index: a further index; empty for none.
    """

    framework: str
    minor: str
    python: str
    requirements: tuple[str, ...]
    extra_index: str = ""

    def __str__(self) -> str:
        """Return the id of its test."""
        return f"{self.framework}-{self.minor}"


def tensorflow() -> Iterator[Release]:
    """Yield the minor releases of TensorFlow 2; those before 2.9 break with a newer protobuf or Keras."""
    for minor, python in [(0, "3.7"), (1, "3.7"), (2, "3.7"), *((n, "3.8") for n in range(3, 8)), (8, "3.10")]:
        package = "tensorflow" if minor == 0 else "tensorflow-cpu"
        keras = (f"keras==2.{minor}.*", f"tensorflow-estimator==2.{minor}.*") if minor >= 6 else ()
        requirements = (f"{package}==2.{minor}.*", "protobuf<3.20", "numpy<1.24", *keras)
        yield Release("tensorflow", f"2.{minor}", python, requirements)
    for minor in range(9, 22):
        yield Release("tensorflow", f"2.{minor}", "3.10" if minor < 12 else "3.11", (f"tensorflow-cpu==2.{minor}.*",))


def jax() -> Iterator[Release]:
    """Yield releases of JAX; those up to 0.4.26 were made for NumPy 1."""
    old = ("numpy<2", "scipy<1.13", "ml_dtypes<0.3")
    for release in ("0.4.13", "0.4.20", "0.4.25"):  # the index has no older jaxlib
        yield Release("jax", release, "3.10", (f"jax=={release}", f"jaxlib=={release}", *old))
    for release in ("0.4.30", "0.4.35", "0.4.38"):
        yield Release("jax", release, "3.11", (f"jax=={release}", f"jaxlib=={release}"))
    for minor in range(5, 11):
        yield Release("jax", f"0.{minor}", "3.11", (f"jax==0.{minor}.*", f"jaxlib==0.{minor}.*"))


def keras() -> Iterator[Release]:
    """Yield the minor releases of Keras 3, on TensorFlow."""
    for minor in range(16):
        of_tensorflow = {range(5): "==2.16.*", range(5, 11): "==2.18.*", range(11, 16): ""}
        backend = next(f"tensorflow-cpu{version}" for minors, version in of_tensorflow.items() if minor in minors)
        yield Release("keras", f"3.{minor}", "3.11", (f"keras==3.{minor}.*", backend))


def numpy() -> Iterator[Release]:
    """Yield the minor releases of NumPy that run on a Python of the harness."""
    pythons = {range(13, 20): "3.6", range(20, 22): "3.7", range(22, 25): "3.8", range(25, 27): "3.10"}
    for minors, python in pythons.items():
        yield from (Release("numpy", f"1.{minor}", python, (f"numpy==1.{minor}.*",)) for minor in minors)
    yield from (Release("numpy", f"2.{minor}", "3.11", (f"numpy==2.{minor}.*",)) for minor in range(5))


def torch() -> Iterator[Release]:
    """Yield the releases of PyTorch that the matrix has no lock of for the CPU, as builds for the CPU."""
    index = MATRIX.environments["torch-2.x"].variants["cpu"].index or ""
    for environment in (*gpu_only(), *locked_when_named()):
        if environment.framework == "torch":
            minor = ".".join(environment.release.split(".")[:2])
            of_numpy = "numpy<2" if minor in {"1.13", "2.1"} else "numpy"
            requirements = (f"torch=={environment.release}+cpu", of_numpy)
            yield Release("torch", minor, environment.python or "3.11", requirements, index)


def gpu_only() -> list[Environment]:
    """Return the environments of the matrix that are made of packages, and have no build for the CPU."""
    return [
        each
        for each in MATRIX.environments.values()
        if each.python and each.variant("cpu") is None and any(not of.image for of in each.all_variants().values())
    ]


def locked_when_named() -> list[Environment]:
    """Return the environments of the matrix whose lock for the CPU is made where they are named."""
    of_cpu = ((each, each.variant("cpu")) for each in MATRIX.environments.values())
    return [each for each, variant in of_cpu if variant is not None and variant.is_locked_when_named]


RELEASES = (*numpy(), *jax(), *tensorflow(), *keras(), *torch())
ON_CPU = sorted(
    name
    for name, each in MATRIX.environments.items()
    if (variant := each.variant("cpu")) and variant.lock and (ROOT / variant.lock).is_file() and not each.extends
)
USED = ("torch-1.0", "torch-2.x", "tf-1.8", "tf-2.x", "keras-3", "jax")
"""Environments in which other tests plant errors: they exist by now. The others are made with --need slow."""


@pytest.mark.parametrize("environment", [*USED, *needs.slow(*(name for name in ON_CPU if name not in USED))])
def test_a_shipped_environment_starts_and_says_its_facts(environment: str, request: pytest.FixtureRequest) -> None:
    of = MATRIX.environments[environment]
    assert_starts(interpreter(environment, request), of.framework, of.release.partition("*")[0])


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_release_starts_and_says_its_facts(release: Release, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if not needs.given(request.config, "releases"):
        pytest.skip("--need releases installs each release")
    home = tmp_path / "venv"
    try:
        assert_starts(installed(release, home), release.framework, release.minor)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_each_shipped_release_without_a_lock_for_the_cpu_is_started_in_its_build_for_the_cpu() -> None:
    started = {(release.framework, release.minor) for release in RELEASES}
    started |= {("jax", ".".join(release.minor.split(".")[:2])) for release in RELEASES if release.framework == "jax"}
    without_lock = (*gpu_only(), *locked_when_named())
    needed = {(each.framework, ".".join(each.release.split(".")[:2])) for each in without_lock}
    assert ("tensorflow", "2.15") in needed
    assert needed <= started


def installed(release: Release, home: Path) -> Path:
    """Return the interpreter of a new virtual environment with a release; skip where its index is not reached."""
    python = interpreters.find(release.python)
    if python is None:
        pytest.fail(f"there is no Python {release.python}: install it, for example by pyenv")
    subprocess.run([str(python), "-m", "venv", str(home)], check=True)
    interpreter_of_venv = home / "bin" / "python"
    pip = [str(interpreter_of_venv), "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--quiet"]
    command = [find_uv_bin(), "pip", "install", "--quiet", "--no-cache", "--python", str(interpreter_of_venv)]
    if tuple(map(int, release.python.split("."))) < FIRST_OF_UV:
        subprocess.run([*pip, "pip<21.4"], check=True)  # the last for Python 3.6
        command = pip
    index = ["--extra-index-url", release.extra_index] if release.extra_index else []
    done = subprocess.run(
        [*command, *index, *release.requirements], capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
    )
    if done.returncode and release.extra_index:
        package = package_name(release.requirements[0])
        pytest.skip(f"{package} cannot be installed from {release.extra_index}: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr[-2000:]
    return interpreter_of_venv


def assert_starts(python: Path, framework: str, version: str) -> None:
    """Start a server, import the framework, and read the facts."""
    with drive.server(python, framework) as client:
        hello = client.hello()
    assert hello["status"] == "ok", hello
    assert hello["facts"]["version"].startswith(version), hello["facts"]
    assert hello["import_seconds"] > 0
    assert hello["import_cpu_seconds"] > 0
    described = {name for name, value in hello["facts"].items() if value not in (None, "")}
    assert described >= {"version", "numpy", "c_library"}, hello["facts"]
