"""Releases that the command line names, with uv, pip and an index on this machine."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.backends.lock_file import read_lock
from runner.backends.venv import VenvBackend
from runner.core.errors import NothingSelectedError
from runner.matrix import parse
from runner.plan.specs import specs, with_locks
from runner.releases import index as listing
from runner.releases import nightly_builds
from runner.releases.release_files import default_index
from runner.session.named_releases import NamedReleases, with_named_releases
from runner.session.options import Options
from tests.support import bundled_pip
from tests.support.package_index import PackageIndex, package_index, wheel

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
MATRIX = f"""
version: 1
environments:
  torch-2.x: {{framework: torch, release: "2.*", python: "{PYTHON}", requirements: [torch==2.9.1]}}
workloads: {{rnn-step: {{}}}}
"""
CUDNN = "nvidia-cudnn-cu12"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """The only index that uv, pip and the program ask: it has a release that pins cuDNN, and nightly builds."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(listing, "_pip", bundled_pip.command)  # uv would ask an index for it
    with package_index() as server:
        settings = {"UV_HTTP_RETRIES": "0", "UV_NO_CACHE": "1", "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1"}
        addresses = {"UV_DEFAULT_INDEX": server.url, "PIP_INDEX_URL": server.url, "no_proxy": "127.0.0.1"}
        for name, value in {**settings, **addresses}.items():
            monkeypatch.setenv(name, value)
        cudnn = {version: wheel(version, "", CUDNN) for version in ("9.10.2", "9.15.1")}
        server.files = {f"nvidia_cudnn_cu12-{version}-py3-none-any.whl": content for version, content in cudnn.items()}
        for version in ("2.9.1", "2.16.0.dev20261101", "2.16.0.dev20261103"):
            content = wheel(version, "", "torch", [f"{CUDNN}==9.10.2"])
            server.files[f"torch-{version}-py3-none-any.whl"] = content
        server.files["torch-1.5.0-cp27-cp27mu-manylinux1_x86_64.whl"] = b""
        monkeypatch.setattr(nightly_builds, "INDEXES", {"torch": server.url})
        yield server


@pytest.fixture
def named(tmp_path: Path) -> Callable[..., NamedReleases]:
    """Return a function that takes words of the command line."""
    matrix = parse(MATRIX.encode(), "matrix.yaml")

    def name(*words: str, upgrade: bool = False) -> NamedReleases:
        options = Options(matrix=tmp_path / "matrix.yaml", selectors=[*words], upgrade=upgrade)
        return with_named_releases(matrix, options, "cpu", tmp_path / "locks")

    return name


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_a_package_counts_instead_of_what_the_release_pins_and_is_installed(
    named: Callable[..., NamedReleases], tmp_path: Path
) -> None:
    made = named("torch==2.9.1", f"torch==2.9.1,{CUDNN}==9.15.1")
    pinned, overridden = (read_lock(path)[1] for path in made.locks.values())
    assert {package.key: package.version for package in pinned.packages} == {"torch": "2.9.1", CUDNN: "9.10.2"}
    assert {package.key: package.version for package in overridden.packages} == {"torch": "2.9.1", CUDNN: "9.15.1"}
    assert (pinned.overrides, overridden.overrides) == ((), (f"{CUDNN}==9.15.1",))
    assert f"{CUDNN}==9.15.1 counts instead" in made.notes[-1]
    complete, _ = specs(made.matrix, [*made.locks], "cpu", tmp_path)
    backend = VenvBackend(tmp_path / "cache")
    for spec in with_locks(complete, made.locks):
        ready = backend.provision(spec, lambda _: None)
        (site,) = Path(ready.handle).parent.parent.glob("lib/python*/site-packages")
        version = "9.15.1" if "cudnn" in spec.environment else "9.10.2"
        assert [path.name for path in site.glob("nvidia_cudnn*-info")] == [f"nvidia_cudnn_cu12-{version}.dist-info"]


@pytest.mark.slow
def test_a_nightly_build_is_that_of_its_day_until_its_lock_is_renewed(
    index: PackageIndex, named: Callable[..., NamedReleases]
) -> None:
    made = named("torch@nightly-20261101")
    (lock,) = made.locks.values()
    assert read_lock(lock)[1].packages[-1].version == "2.16.0.dev20261101"
    del index.files["torch-2.16.0.dev20261101-py3-none-any.whl"]
    assert named("torch@nightly-20261101").locks == made.locks  # its index need not have it any more
    with pytest.raises(NothingSelectedError, match="no wheel of torch nightly-20261101") as caught:
        named("torch@nightly-20261101", upgrade=True)
    assert caught.value.problems[0].hint == "did you mean torch@nightly-20261103?"


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("torch==2.9.2", "did you mean torch==2.9.1?"),
        ("torch==1.5.0", "it has wheels for Python 2.7, and the harness needs Python 3.5 or newer"),
    ],
)
def test_a_release_that_cannot_be_had_has_a_hint(word: str, hint: str, named: Callable[..., NamedReleases]) -> None:
    with pytest.raises(NothingSelectedError) as caught:
        named(word)
    assert caught.value.problems[0].hint == hint


def test_uv_names_its_default_index() -> None:
    default_index.cache_clear()
    assert default_index().startswith("https://")
